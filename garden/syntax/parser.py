"""The parser: tokens to an AST.

An automaton with a stack of frames (see `frames`): the frame on top decides what may come next. When a frame ends, it
becomes a node, and the node goes to the frame below. So nesting costs scratch memory and no recursion, has no limit,
and nodes are made after what they consist of. Operators are frames too, of a form a level of precedence; one ends
before an operator that binds no tighter (operator precedence parsing, after Floyd). Parentheses are frames, but no
nodes. Types end before any other frame continues: when `_type` returns, its frames are gone.

Above the methods stand the productions of the grammar (`docs/language/grammar.md`) that they recognise. Some read more
than that, to report an error where it is made and continue.

After an error the frames up to the innermost body or match are given up, with the item that they are part of, and the
tokens up to where the next item or arm seems to begin are skipped (`_recover`). What is missing but plain to see, as
the `:` after a field name, is taken to stand there.

Costs: time and memory linear in the number of tokens, each of which is skipped at most once; compiled about 0.5 us a
token beside the lexer's 0.4, uncompiled 1.6 beside 1.3.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Interner, Vec
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax import ast as nodes
from garden.syntax import frames, tokens
from garden.syntax.ast import Ast
from garden.syntax.cursor import Cursor
from garden.syntax.frames import FrameStack
from garden.syntax.lexer import Lexer

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

#: By form, what is missing where an expression cannot begin.
_WANTED: Final[dict[int, str]] = {
    frames.CALL: "an argument or `)`",
    frames.ARRAY: "a member or `]`",
    frames.MATCH: "a condition, a default arm or `}`",
}


@mypyc_attr(native_class=True)
class Parser(Generic[A, S]):
    """Makes ASTs over `allocator`, with stacks over `scratch`, and appends what is wrong to `diagnostics`."""

    __slots__ = ("allocator", "diagnostics", "scratch")

    def __init__(self, allocator: A, scratch: S, diagnostics: list[Diagnostic]) -> None:
        self.allocator: Final[A] = allocator
        self.scratch: Final[S] = scratch
        self.diagnostics: Final = diagnostics

    def parse(self, source: Source) -> Ast[A]:
        """The AST of `source`: of what is left of it, where diagnostics (in source order) say what is wrong.

        Raises `AllocError`, and then keeps no memory.
        """
        first = len(self.diagnostics)
        symbols: Interner[A] = Interner(self.allocator)
        try:
            lexed = Lexer(self.allocator, self.diagnostics).lex(source, symbols)
        except BaseException:
            symbols.close()
            raise
        ast = Ast(self.allocator, source, symbols, lexed)
        try:
            automaton = _Automaton(ast, self.scratch, self.diagnostics)
            try:
                automaton.run()
            finally:
                automaton.close()
        except BaseException:
            ast.close()
            raise
        self.diagnostics[first:] = sorted(self.diagnostics[first:], key=attrgetter("start"))
        return ast


@mypyc_attr(native_class=True)
class _Automaton(Generic[A, S]):
    """One parse.

    `_resumed` is where the last recovery ended, `_stray` how many delimiters it gave up without meeting their ends.
    """

    __slots__ = ("_ast", "_children", "_cursor", "_in_extern", "_resumed", "_roots", "_stack", "_stray")

    def __init__(self, ast: Ast[A], scratch: S, diagnostics: list[Diagnostic]) -> None:
        self._ast: Final = ast
        self._cursor: Final = Cursor(ast, diagnostics)
        self._stack: Final[FrameStack[S]] = FrameStack(scratch)
        self._children: Final[Vec[S]] = self._stack.children
        self._roots: Final[Vec[S]] = Vec(scratch, "I")
        #: Inside `extern` an identifier is a type: a generic parameter.
        self._in_extern = False
        self._resumed: i64 = -1
        self._stray: i64 = 0

    def close(self) -> None:
        self._roots.close()
        self._stack.close()

    # program = { function | item }
    def run(self) -> None:
        cursor = self._cursor
        cursor.advance()
        while True:
            form = self._stack.form
            kind = cursor.kind
            if kind == tokens.EOF:
                if form == frames.ROOT:
                    break
                self._end_early()
            elif kind == frames.CLOSERS[form]:
                self._close_frame()
            elif kind == tokens.FN and form != frames.ROOT and cursor.unclosed() > 0:
                self._end_early()
            elif form <= frames.LET:
                self._item()
            elif form == frames.RECORD:
                self._field()
            elif form == frames.MATCH and kind == tokens.LBRACE:
                self._enter(frames.DEFAULT, 0)
            else:
                self._operand()
        self._ast.roots = self._list(self._roots, 0)

    # Items.

    # item = let | match | import | extern | expression
    def _item(self) -> None:
        docs = self._cursor.docs()
        kind = self._cursor.kind
        if kind < tokens.IMPORT:
            self._operand()
        elif kind == tokens.LET:
            self._let(docs)
        elif kind == tokens.FN:
            self._function(docs)
        elif kind == tokens.MATCH:
            self._match()
        elif kind == tokens.IMPORT:
            self._import()
        elif kind == tokens.EXTERN:
            self._extern(docs)
        else:
            self._operand()

    # let = docs "let" name "=" item
    def _let(self, docs: i64) -> None:
        cursor = self._cursor
        cursor.advance()
        name = cursor.name("a name")
        if name == 0:
            self._recover_from_name()
            return
        cursor.want(tokens.ASSIGN)
        self._stack.open(frames.LET, name, docs)

    # function = docs "fn" name signature body
    def _function(self, docs: i64) -> None:
        cursor = self._cursor
        if self._stack.form != frames.ROOT:
            if cursor.unclosed() > 0:
                self._end_early()
            else:
                cursor.report("E0208", "a function can only stand at the top level", cursor.position)
        token = cursor.position
        cursor.advance()
        name = cursor.name("the name of the function")
        signature: i64 = 0
        if name != 0:
            token = name
            signature = self._signature(docs)
        if signature == 0:
            signature = frames.BROKEN
            self._skip_to_body()
        if cursor.want(tokens.LBRACE):
            self._stack.open(frames.BODY, token, signature)
        else:
            self._recover(False)

    def _skip_to_body(self) -> None:
        """After an error in a function's head, continue at its body, so that it is checked too."""
        cursor = self._cursor
        if cursor.is_meant_as_name():
            cursor.advance()
        kind = cursor.kind
        while (
            kind != tokens.LBRACE
            and kind != tokens.RBRACE
            and kind != tokens.DOC
            and kind != tokens.EOF
            and not tokens.IMPORT <= kind <= tokens.FN
        ):
            cursor.advance()
            kind = cursor.kind
        cursor.silenced = cursor.position

    # signature = "(" { name ":" type } ")" [ type ]
    def _signature(self, docs: i64) -> i64:
        """Parameters and return type. The index of the three words of a signature in `extra`, or 0, and reported."""
        cursor = self._cursor
        if not cursor.want(tokens.LPAREN):
            return 0
        children = self._children
        mark = len(children)
        while cursor.kind != tokens.RPAREN:
            name = cursor.name("a parameter or `)`")
            parameter_type = 0
            if name != 0:
                cursor.want(tokens.COLON)
                parameter_type = self._type()
            if parameter_type == 0:
                children.truncate(mark)
                return 0
            children.append_i64(name)
            children.append_i64(parameter_type)
        cursor.advance()
        result = 0
        # A head ends with the body, or inside `extern` with the next function or the end.
        if cursor.kind != tokens.LBRACE and not (self._in_extern and cursor.is_next_signature()):
            result = self._type()
            if result == 0:
                children.truncate(mark)
                return 0
        parameters = self._list(children, mark)
        extra = self._ast.extra
        index = len(extra)
        extra.append_i64(result)
        extra.append_i64(parameters)
        extra.append_i64(docs)
        return index

    # match = "match" "{" { arm } default { arm | default } "}"
    def _match(self) -> None:
        cursor = self._cursor
        token = cursor.position
        cursor.advance()
        if cursor.kind != tokens.LBRACE:
            cursor.want(tokens.LBRACE)
            self._recover(False)
        else:
            self._stack.open(frames.MATCH, token, 0)
            cursor.advance()

    # import = "import" ( string | "(" { string } ")" )
    def _import(self) -> None:
        cursor = self._cursor
        token = cursor.position
        children = self._children
        mark = len(children)
        cursor.advance()
        if cursor.kind == tokens.LPAREN:
            cursor.advance()
            while cursor.kind != tokens.RPAREN:
                if not self._import_path():
                    children.truncate(mark)
                    self._recover(False)
                    return
            cursor.advance()
        elif not self._import_path():
            self._recover(False)
            return
        self._attach(self._ast.add(nodes.IMPORT, token, self._list(children, mark), 0))

    def _import_path(self) -> bool:
        """The path of a package, and then True. A name that lacks its quotes is reported, but taken for one."""
        cursor = self._cursor
        if cursor.kind != tokens.STRING:
            cursor.blame("E0205", f"expected the name of a package in quotes, got {cursor.found()}")
            if cursor.kind != tokens.IDENT:
                return False
        self._children.append_i64(cursor.position)
        cursor.advance()
        return True

    # extern = docs "extern" string "{" { docs "fn" name signature } "}"
    def _extern(self, docs: i64) -> None:
        cursor = self._cursor
        cursor.advance()
        package = cursor.position
        if cursor.kind != tokens.STRING:
            cursor.blame("E0201", f"expected the name of a package in quotes, got {cursor.found()}")
            self._recover(False)
            return
        cursor.advance()
        brace = cursor.position
        if not cursor.want(tokens.LBRACE):
            self._recover(False)
            return
        mark = len(self._children)
        self._in_extern = True
        while cursor.kind != tokens.RBRACE and cursor.kind != tokens.EOF:
            self._extern_function()
        self._in_extern = False
        signatures = self._list(self._children, mark)
        if cursor.kind == tokens.EOF:
            cursor.silenced = cursor.position
            cursor.report("E0201", "`{` is not closed", brace)
        else:
            cursor.advance()
        self._attach(self._ast.add(nodes.EXTERN, package, signatures, docs))

    def _extern_function(self) -> None:
        """One function inside `extern`, or what stands there instead."""
        cursor = self._cursor
        docs = cursor.docs()
        if cursor.kind == tokens.FN:
            cursor.advance()
            name = cursor.name("the name of the function")
            if name != 0:
                signature = self._signature(docs)
                if signature != 0:
                    self._children.append_i64(self._ast.add(nodes.SIGNATURE, name, signature, 0))
                    return
        else:
            cursor.blame("E0201", f"expected `fn` or `}}`, got {cursor.found()}")
        braces = 0
        while braces > 0 or not cursor.is_next_signature():
            if cursor.kind == tokens.LBRACE:
                braces += 1
            elif cursor.kind == tokens.RBRACE:
                braces -= 1
            elif cursor.kind == tokens.EOF:
                break
            cursor.advance()

    # Expressions.

    # expression = sum { comparison sum }
    # comparison = "==" | "!=" | "<" | ">" | "<=" | ">="
    # sum = product { addition product }
    # product = signed { ( "*" | "/" | "%" ) signed }
    # signed = { "+" | "-" } operand
    # value = integer | double | string | "true" | "false" | array | record | "(" expression ")"
    # array = "[" { expression } "]"
    # record = "{" { name ":" expression } "}"
    def _operand(self) -> None:
        """What an expression begins with, and what a sign, an operator or an opening delimiter stands before."""
        cursor = self._cursor
        kind = cursor.kind
        atom: i64 = frames.ATOMS[kind]
        if atom != 0:
            node = self._ast.add(atom, cursor.position, 0, 0)
            cursor.advance()
            self._after_operand(node)
        elif kind == tokens.LPAREN:
            self._enter(frames.PAREN, 0)
        elif kind == tokens.MINUS or kind == tokens.PLUS:
            self._enter(frames.SIGN, 0)
        elif kind == tokens.LBRACKET:
            self._enter(frames.ARRAY, 0)
        elif kind == tokens.LBRACE:
            self._enter(frames.RECORD, 0)
        elif self._stack.form <= frames.DEFAULT and self._is_stray():
            cursor.advance()
        else:
            if self._stack.form <= frames.DEFAULT:
                cursor.blame("E0201", f"unexpected {cursor.found()}")
            else:
                wanted = _WANTED.get(self._stack.form, "an expression")
                cursor.blame("E0203", f"expected {wanted}, got {cursor.found()}")
            self._recover(False)

    def _field(self) -> None:
        """A field of a record literal, up to its value."""
        name = self._cursor.name("a field name or `}`")
        if name == 0:
            self._recover_from_name()
            return
        self._children.append_i64(name)
        self._cursor.want(tokens.COLON)
        self._operand()

    # operand = callee [ arguments ] { cast } | value { cast }
    # callee = ( name | "(" callee ")" | value { cast } field ) { [ arguments ] { cast } field }
    # field = "." name
    # arguments = "(" { item } ")"
    # cast = "as" type
    def _after_operand(self, node: i64) -> None:
        """What continues an operand, or the expression that ends with it."""
        ast = self._ast
        cursor = self._cursor
        stack = self._stack
        while True:
            token = cursor.position
            continuation: i64 = frames.CONTINUATIONS[cursor.kind]
            if continuation >= frames.COMPARISON and not (continuation == frames.SUM and cursor.is_new_expression()):
                while stack.form >= continuation:
                    node = self._reduce(node)
                self._enter(continuation, node)
                return
            if continuation == frames.APPLY and (ast.kinds[node] == nodes.IDENT or ast.kinds[node] == nodes.FIELD):
                self._enter(frames.CALL, node)
                return
            if continuation == frames.SELECT:
                cursor.advance()
                name = cursor.name("a field name")
                if name == 0:
                    self._recover_from_name()
                    return
                node = ast.add(nodes.FIELD, name, node, 0)
            elif continuation == frames.CONVERT:
                cursor.advance()
                target = self._type()
                if target == 0:
                    self._recover(False)
                    return
                node = ast.add(nodes.CAST, token, node, target)
            else:
                while stack.form >= frames.COMPARISON:
                    node = self._reduce(node)
                if stack.form != frames.PAREN:
                    self._attach(node)
                    return
                if cursor.kind == tokens.EOF:
                    return
                if not cursor.want(tokens.RPAREN):
                    self._recover(False)
                    return
                stack.pop()

    def _reduce(self, node: i64) -> i64:
        """End the operator on top, with `node` as its right side."""
        token, left, _ = self._stack.top()
        if self._stack.form == frames.SIGN:
            node = self._ast.add(nodes.UNARY, token, node, 0)
        else:
            node = self._ast.add(nodes.BINARY, token, left, node)
        self._stack.pop()
        return node

    # Types.

    # type = scalar | slot | foreign | option | array_type | record_type
    # slot = ? a name inside `extern` ?
    # scalar = "Str" | "Int" | "Double" | "Bool" | "Void"
    # option = "Option" "<" type ">"
    # array_type = "Array" "<" type ">"
    # record_type = "Record" "<" { name ":" type } ">"
    def _type(self) -> i64:
        """The type that begins here. 0, and reported, if there is none; then its frames are gone."""
        bottom = len(self._stack)
        node = self._parse_type(bottom)
        if node == 0:
            while len(self._stack) > bottom:
                self._stack.drop()
        return node

    def _parse_type(self, bottom: i64) -> i64:
        cursor = self._cursor
        stack = self._stack
        while True:
            token = cursor.position
            kind = cursor.kind
            if tokens.T_STR <= kind <= tokens.T_VOID:
                cursor.advance()
                node = self._ast.add(nodes.TYPE, token, 0, 0)
            elif kind == tokens.IDENT and self._in_extern:
                cursor.advance()
                node = self._ast.add(nodes.TYPE_SLOT, token, 0, 0)
            elif kind == tokens.T_FOREIGN:
                node = self._foreign_type()
            elif kind == tokens.T_OPTION or kind == tokens.T_ARRAY:
                if not self._enter_type(frames.OPTION_TYPE if kind == tokens.T_OPTION else frames.ARRAY_TYPE):
                    return 0
                continue
            elif kind == tokens.T_RECORD:
                if not self._enter_type(frames.RECORD_TYPE):
                    return 0
                if cursor.kind != tokens.GT:
                    if not self._type_label():
                        return 0
                    continue
                node = self._close_type()
            else:
                cursor.blame("E0210", f"expected a type, got {cursor.found()}")
                return 0
            # What ends with this type.
            while True:
                if node == 0 or len(stack) == bottom:
                    return node
                self._children.append_i64(node)
                if stack.form == frames.RECORD_TYPE and cursor.kind != tokens.GT:
                    if not self._type_label():
                        return 0
                    break
                node = self._close_type()

    def _enter_type(self, form: i64) -> bool:
        self._enter(form, 0)
        return self._cursor.want_angle(tokens.LT)

    def _type_label(self) -> bool:
        """A field's name in a record type, and the colon."""
        name = self._cursor.name("a field name or `>`")
        if name == 0:
            return False
        self._children.append_i64(name)
        self._cursor.want(tokens.COLON)
        return True

    # foreign = "Foreign" "<" name ">"
    def _foreign_type(self) -> i64:
        cursor = self._cursor
        cursor.advance()
        if not cursor.want_angle(tokens.LT):
            return 0
        name = cursor.name("the name of a foreign type")
        if name == 0 or not cursor.want_angle(tokens.GT):
            return 0
        return self._ast.add(nodes.TYPE_FOREIGN, name, 0, 0)

    def _close_type(self) -> i64:
        """End the type frame on top; its node, or 0, and reported."""
        if not self._cursor.want_angle(tokens.GT):
            return 0
        form = self._stack.form
        token, _, mark = self._stack.top()
        if form == frames.RECORD_TYPE:
            fields = self._list(self._children, mark)
            self._stack.pop()
            return self._ast.add(nodes.TYPE_RECORD, token, fields, 0)
        member = self._children.pop_i64()
        self._stack.pop()
        kind = nodes.TYPE_OPTION if form == frames.OPTION_TYPE else nodes.TYPE_ARRAY
        return self._ast.add(kind, token, member, 0)

    # Where frames begin and end.

    def _enter(self, form: i64, operand: i64) -> None:
        """Go past the current token into a frame that it opens."""
        self._stack.open(form, self._cursor.position, operand)
        self._cursor.advance()

    # arm = condition body
    # condition = ? no "{" here ? expression
    def _attach(self, node: i64) -> None:
        """Give a finished item or expression to the frame on top."""
        stack = self._stack
        while stack.form == frames.LET:
            name, docs, _ = stack.top()
            node = self._ast.add(nodes.LET, name, node, docs)
            stack.pop()
        if stack.form == frames.ROOT:
            self._roots.append_i64(node)
            return
        self._children.append_i64(node)
        if stack.form == frames.MATCH:
            if self._cursor.kind != tokens.LBRACE:
                self._cursor.want(tokens.LBRACE)
                self._recover(False)
            else:
                self._enter(frames.ARM, 0)

    # body = "{" { item } "}"
    # default = body
    def _close_frame(self) -> None:
        """Go past the token that ends the top frame."""
        self._cursor.advance()
        ast = self._ast
        stack = self._stack
        form = stack.form
        token, operand, mark = stack.top()
        if form == frames.CALL:
            arguments = self._list(self._children, mark)
            stack.pop()
            self._after_operand(ast.add(nodes.CALL, token, operand, arguments))
        elif form == frames.ARRAY:
            members = self._list(self._children, mark)
            stack.pop()
            self._after_operand(ast.add(nodes.ARRAY, token, members, 0))
        elif form == frames.RECORD:
            fields = self._list(self._children, mark)
            stack.pop()
            self._after_operand(ast.add(nodes.RECORD, token, fields, 0))
        elif form == frames.ARM:
            body = self._list(self._children, mark)
            stack.pop()
            self._children.append_i64(body)
        elif form == frames.DEFAULT:
            body = self._new_list(self._children, mark)
            stack.pop()
            if stack.top()[1] != frames.BROKEN:
                stack.set_operand(body)
        elif form == frames.MATCH:
            self._close_match(token, operand, mark)
        else:
            self._close_body(token, operand, mark)
            if stack.form == frames.LET or stack.form == frames.CALL:
                # A function is no value. That it stands here has been reported.
                self._recover(False)

    def _close_match(self, token: i64, default: i64, mark: i64) -> None:
        if default == frames.BROKEN:
            self._stack.drop()
            if self._stack.form > frames.DEFAULT:
                self._recover(False)
            return
        if default == 0:
            self._cursor.report("E0204", "this match has no default arm", token)
        arms = self._list(self._children, mark)
        self._stack.pop()
        self._attach(self._ast.add(nodes.MATCH, token, arms, default))

    def _close_body(self, name: i64, signature: i64, mark: i64) -> None:
        """Functions always go to the top level, also those that stand inside others against the rule."""
        body = self._list(self._children, mark)
        self._stack.pop()
        if signature != frames.BROKEN:
            self._roots.append_i64(self._ast.add(nodes.FN, name, signature, body))

    def _list(self, stack: Vec[S], mark: i64) -> i64:
        """Move what is on a stack from `mark` on to a list in `extra`."""
        if len(stack) == mark:
            return 0
        return self._new_list(stack, mark)

    def _new_list(self, stack: Vec[S], mark: i64) -> i64:
        """The same, but an empty list gets its own index."""
        extra = self._ast.extra
        index = len(extra)
        extra.append_i64(len(stack) - mark)
        extra.extend_from(stack, mark)
        stack.truncate(mark)
        return index

    # Errors.

    def _end_early(self) -> None:
        """End everything that is open, since no token is left. Of functions, keep what was parsed."""
        cursor = self._cursor
        stack = self._stack
        if cursor.position != cursor.silenced:
            cursor.silenced = cursor.position
            form = stack.form
            token = stack.top()[0]
            if form == frames.BODY:
                cursor.report("E0201", f"the body of `{self._ast.text(token).decode()}` is not closed", token)
            elif form == frames.LET or form >= frames.COMPARISON:
                cursor.report("E0203", f"expected an expression, got {cursor.found()}", cursor.position)
            else:
                cursor.report("E0201", f"`{self._ast.text(token).decode()}` is not closed", token)
        while stack.form != frames.ROOT:
            if frames.CLOSERS[stack.form] == tokens.RBRACE:
                cursor.take_unclosed()
            if stack.form == frames.BODY:
                token, signature, mark = stack.top()
                self._close_body(token, signature, mark)
            else:
                stack.drop()

    def _recover(self, skip: bool) -> None:
        """Give up what is open up to the innermost body or match, and skip to where that seems to go on.

        That is, outside of delimiters that open on the way: the end of the body; a keyword that begins an item; or,
        once the delimiters of what was given up are closed, a line that begins with a name or literal. Of a match it is
        a brace. With `skip`, or where the last recovery ended here, the current token is skipped in any case.
        """
        cursor = self._cursor
        stack = self._stack
        pending_braces = 0
        pending = 0
        while stack.form > frames.DEFAULT and stack.form != frames.MATCH:
            if stack.form == frames.RECORD:
                pending_braces += 1
            elif stack.form == frames.CALL or stack.form == frames.ARRAY or stack.form == frames.PAREN:
                pending += 1
            stack.drop()
        if stack.form == frames.MATCH:
            stack.set_operand(frames.BROKEN)
        if cursor.position == self._resumed:
            skip = True
        braces = 0
        while cursor.kind != tokens.EOF:
            kind = cursor.kind
            if not skip and braces == 0 and self._is_resumption(pending_braces, pending):
                break
            skip = False
            if kind == tokens.LBRACE:
                braces += 1
            elif kind == tokens.RBRACE:
                if braces > 0:
                    braces -= 1
                elif pending_braces > 0:
                    pending_braces -= 1
            elif kind == tokens.LPAREN or kind == tokens.LBRACKET:
                pending += 1
            elif (kind == tokens.RPAREN or kind == tokens.RBRACKET) and pending > 0:
                pending -= 1
            elif kind == tokens.FN and cursor.unclosed() > 0:
                break
            cursor.advance()
        self._resumed = cursor.position
        self._stray = pending_braces + pending
        if cursor.kind == tokens.EOF:
            cursor.silenced = cursor.position

    def _recover_from_name(self) -> None:
        """Recover where a name is missing."""
        self._recover(self._cursor.is_meant_as_name())

    def _is_resumption(self, pending_braces: i64, pending: i64) -> bool:
        """Whether recovery ends here; see `_recover`."""
        kind = self._cursor.kind
        if kind == tokens.RBRACE:
            return pending_braces == 0 and self._stack.form != frames.ROOT
        if self._stack.form == frames.MATCH:
            return kind == tokens.LBRACE and pending_braces == 0 and pending == 0
        if kind == tokens.DOC or tokens.IMPORT <= kind <= tokens.FN:
            # What follows `=` or `as` is part of what is skipped.
            return kind != tokens.AS and self._cursor.previous() != tokens.ASSIGN
        if pending_braces > 0 or pending > 0:
            return False
        if kind == tokens.MATCH:
            return self._cursor.previous() != tokens.ASSIGN
        return frames.ATOMS[kind] != 0 and self._cursor.is_first_on_line()

    def _is_stray(self) -> bool:
        """Whether this ends something that the last recovery gave up."""
        kind = self._cursor.kind
        if self._stray == 0 or (kind != tokens.RPAREN and kind != tokens.RBRACKET and kind != tokens.RBRACE):
            return False
        self._stray -= 1
        return True
