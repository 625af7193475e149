"""What the parser stands on: its place among the tokens, its two stacks, and what it does about mistakes.

Whatever is open and unfinished (a body, a call, a sign, an operator that waits for its right side, ...) is a *frame* on
a stack in scratch memory; what belongs to it so far is on a second stack, from the frame's `mark` on. When a frame
ends, it becomes a node, and the node goes to the frame below. So nesting costs scratch memory and no recursion, and
nodes are made after what they consist of.

After a mistake the frames up to the innermost body or match are given up, with the item that they are part of, and the
tokens up to where the next item or arm seems to begin are skipped (`_recover`). A token is blamed once. What is missing
but plain to see, as the `:` behind a field name, is taken to stand there.

Costs: a frame takes 15 bytes, a finished child of an open frame 4. Every token is skipped at most once.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec
from garden.diagnostics import Diagnostic
from garden.syntax import ast as nodes
from garden.syntax import frames, tokens
from garden.syntax.ast import Ast

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

_SIGN_HELP: Final = "a sign with a blank before it and none after it begins a new expression"

#: Longer texts are cut in messages.
_SHOWN_BYTES: Final = 40


@mypyc_attr(native_class=True)
class Automaton(Generic[A, S]):
    """One parse: where it stands among the tokens, and its stacks.

    `_form` and `_level` repeat those of the frame on top, `_kind` that of the current token. `_silenced` is the token
    that was blamed last. `_resumed` is where the last recovery ended, `_stray` how many delimiters it gave up without
    meeting their ends.
    """

    __slots__ = (
        "_children",
        "_form",
        "_frames",
        "_in_extern",
        "_kind",
        "_kinds",
        "_level",
        "_position",
        "_resumed",
        "_roots",
        "_silenced",
        "_stray",
        "_surplus",
        "_text",
        "ast",
        "diagnostics",
    )

    def __init__(self, ast: Ast[A], scratch: S, diagnostics: list[Diagnostic]) -> None:
        self.ast: Final = ast
        self.diagnostics: Final = diagnostics
        #: Inside `extern` an identifier is a type: a generic parameter.
        self._in_extern = False
        # Columns: form, level, token, operand, mark.
        self._frames: Final[Table[S]] = Table(scratch, "BHIII")
        self._children: Final[Vec[S]] = Vec(scratch, "I")
        self._roots: Final[Vec[S]] = Vec(scratch, "I")
        self._text: Final = ast.source.text
        self._kinds: Final = ast.tokens.kinds
        self._position: i64 = 0
        self._kind: i64 = tokens.NONE
        self._form: i64 = frames.ROOT
        self._level: i64 = 0
        self._silenced: i64 = -1
        self._resumed: i64 = -1
        self._stray: i64 = 0
        self._surplus: i64 = -1

    def close(self) -> None:
        self._roots.close()
        self._children.close()
        self._frames.close()

    # Tokens.

    def _advance(self) -> None:
        self._position += 1
        self._kind = self._kinds[self._position]
        if self._kind == tokens.DOC:
            self._skip_misplaced_docs()

    def _skip_misplaced_docs(self) -> None:
        """Report and skip the doc comments that begin here, unless something follows that can be documented."""
        first = self._position
        end = self._end_of_docs()
        kind: i64 = self._kinds[end]
        if kind != tokens.LET and kind != tokens.FN and kind != tokens.EXTERN:
            self._report("E0207", "a doc comment can only stand before `let`, `fn` or `extern`", first)
            self._position = end
            self._kind = kind

    def _end_of_docs(self) -> i64:
        """The token behind the doc comments that begin here."""
        end = self._position
        while self._kinds[end] == tokens.DOC:
            end += 1
        return end

    def _want(self, kind: i64) -> bool:
        """Go past a token of this kind, or blame the current one for not being it."""
        if self._kind == kind:
            self._advance()
            return True
        helps = (_SIGN_HELP,) if frames.CONTINUATIONS[self._kind] == frames.SUM else ()
        self._blame("E0201", f"expected `{tokens.SPELLINGS[kind]}`, got {self._found()}", helps)
        return False

    def _is_first_on_line(self) -> bool:
        previous: i64 = self.ast.tokens.ends[self._position - 1]
        return self._text.find(b"\n", previous, self.ast.tokens.starts[self._position]) >= 0

    def _docs(self) -> int:
        """Go past the doc comments that begin here; the list of their tokens."""
        if self._kind != tokens.DOC:
            return 0
        first = self._position
        end = self._end_of_docs()
        extra = self.ast.extra
        index = len(extra)
        extra.append(end - first)
        for token in range(first, end):
            extra.append(token)
        self._position = end
        self._kind = self._kinds[end]
        return index

    def _name(self, what: str) -> i64:
        """The identifier here, or 0, and reported."""
        token = self._position
        if self._kind == tokens.IDENT:
            self._advance()
            return token
        self._blame("E0202", f"expected {what}, got {self._found()}")
        return 0

    # Stacks.

    def _open(self, form: i64, token: i64, operand: i64) -> bool:
        """Put a frame on the stack. False, and reported, where that is one level too many."""
        level = self._level
        if frames.NESTS[form] != 0 or (form == frames.LET and self._form == frames.LET):
            level += 1
            if level > frames.MAX_NESTING:
                self._report("E0209", f"nested more than {frames.MAX_NESTING} levels deep", token)
                return False
        row = self._frames.add()
        forms, levels, frame_tokens, operands, marks = self._frames.columns
        forms[row] = form
        levels[row] = level
        frame_tokens[row] = token
        operands[row] = operand
        marks[row] = len(self._children)
        self._form = form
        self._level = level
        return True

    def _enter(self, form: i64, operand: i64) -> None:
        """Go past the current token into a frame that it opens."""
        if self._open(form, self._position, operand):
            self._advance()
        else:
            self._recover(True)

    def _pop(self) -> None:
        top = len(self._frames) - 1
        self._frames.truncate(top)
        self._form = self._frames.columns[0][top - 1]
        self._level = self._frames.columns[1][top - 1]

    def _drop(self) -> None:
        """Take the top frame off together with its children."""
        self._children.truncate(self._top()[2])
        self._pop()

    def _top(self) -> tuple[int, int, int]:
        """Token, operand and mark of the frame on top."""
        top = len(self._frames) - 1
        columns = self._frames.columns
        return columns[2][top], columns[3][top], columns[4][top]

    def _set_operand(self, operand: int) -> None:
        """Change the operand of the frame on top."""
        self._frames.columns[3][len(self._frames) - 1] = operand

    def _list(self, stack: Vec[S], mark: i64) -> int:
        """Move what is on a stack from `mark` on to a list in `extra`."""
        if len(stack) == mark:
            return 0
        return self._new_list(stack, mark)

    def _new_list(self, stack: Vec[S], mark: i64) -> int:
        """The same, but an empty list is a list of its own."""
        extra = self.ast.extra
        index = len(extra)
        extra.append(len(stack) - mark)
        extra.extend_from(stack, mark)
        stack.truncate(mark)
        return index

    def _close_body(self, name: i64, signature: i64, mark: i64) -> None:
        """Functions always go to the top level, also those that stand inside others against the rule."""
        body = self._list(self._children, mark)
        self._pop()
        if signature != frames.BROKEN:
            self._roots.append(self.ast.add(nodes.FN, name, signature, body))

    # Mistakes.

    def _report(self, code: str, message: str, token: i64, helps: tuple[str, ...] = ()) -> None:
        start: i64 = self.ast.tokens.starts[token]
        self.diagnostics.append(Diagnostic(code, message, start, self.ast.tokens.ends[token] - start, helps=helps))

    def _blame(self, code: str, message: str, helps: tuple[str, ...] = ()) -> None:
        """Report the current token, unless it has been reported."""
        if self._position == self._silenced:
            return
        self._silenced = self._position
        self._report(code, message, self._position, helps)

    def _found(self) -> str:
        """The current token, for messages."""
        kind = self._kind
        if kind == tokens.IDENT or kind == tokens.INT or kind == tokens.DOUBLE:
            text = self.ast.text(self._position)
            shown = text if len(text) <= _SHOWN_BYTES else text[:_SHOWN_BYTES] + b"..."
            return f"{tokens.SPELLINGS[kind]} `{shown.decode()}`"
        if kind < tokens.LPAREN:
            return tokens.SPELLINGS[kind]
        return f"`{tokens.SPELLINGS[kind]}`"

    def _unclosed(self) -> i64:
        """How many more `{` than `}` the source has, less those already reported.

        While there are any, a function inside a body is taken for a sign that the body lacks its end.
        """
        if self._surplus < 0:
            kinds = bytes(self._kinds[: len(self.ast.tokens)])
            self._surplus = max(0, kinds.count(tokens.LBRACE) - kinds.count(tokens.RBRACE))
        return self._surplus

    def _end_early(self) -> None:
        """End everything that is open, as no more of it can come. Of functions, keep what is there."""
        if self._position != self._silenced:
            self._silenced = self._position
            form = self._form
            token = self._top()[0]
            if form == frames.BODY:
                self._report("E0201", f"the body of `{self.ast.text(token).decode()}` is not closed", token)
            elif form == frames.LET or form >= frames.COMPARISON:
                self._report("E0203", f"expected an expression, got {self._found()}", self._position)
            else:
                self._report("E0201", f"`{self.ast.text(token).decode()}` is not closed", token)
        while self._form != frames.ROOT:
            if frames.CLOSERS[self._form] == tokens.RBRACE and self._surplus > 0:
                self._surplus -= 1
            if self._form == frames.BODY:
                token, signature, mark = self._top()
                self._close_body(token, signature, mark)
            else:
                self._drop()

    def _recover(self, skip: bool) -> None:
        """Give up what is open up to the innermost body or match, and skip to where that seems to go on.

        That is, outside of delimiters that open on the way: the end of the body; a keyword that begins an item; or,
        once the delimiters of what was given up are closed, a line that begins with a name or literal. Of a match it is
        a brace. With `skip`, or where the last recovery ended here, the current token is skipped in any case.
        """
        pending_braces = 0
        pending = 0
        while self._form > frames.DEFAULT and self._form != frames.MATCH:
            if self._form == frames.RECORD:
                pending_braces += 1
            elif self._form == frames.CALL or self._form == frames.ARRAY or self._form == frames.PAREN:
                pending += 1
            self._drop()
        if self._form == frames.MATCH:
            self._set_operand(frames.BROKEN)
        if self._position == self._resumed:
            skip = True
        braces = 0
        while self._kind != tokens.EOF:
            kind = self._kind
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
            elif kind == tokens.FN and self._unclosed() > 0:
                break
            self._advance()
        self._resumed = self._position
        self._stray = pending_braces + pending
        if self._kind == tokens.EOF:
            self._silenced = self._position

    def _is_stray(self) -> bool:
        """Whether this ends something that the last recovery gave up."""
        kind = self._kind
        if self._stray == 0 or (kind != tokens.RPAREN and kind != tokens.RBRACKET and kind != tokens.RBRACE):
            return False
        self._stray -= 1
        return True

    def _recover_from_name(self) -> None:
        """Recover where a name is missing."""
        self._recover(self._is_meant_as_name())

    def _is_meant_as_name(self) -> bool:
        """Whether a keyword stands where a name is missing, on the same line: then it begins nothing."""
        return self._kind >= tokens.IMPORT and not self._is_first_on_line()

    def _is_resumption(self, pending_braces: int, pending: int) -> bool:
        """Whether recovery ends here; see `_recover`."""
        kind = self._kind
        if kind == tokens.RBRACE:
            return pending_braces == 0 and self._form != frames.ROOT
        if self._form == frames.MATCH:
            return kind == tokens.LBRACE and pending_braces == 0 and pending == 0
        if kind == tokens.DOC or tokens.IMPORT <= kind <= tokens.FN:
            # What follows `=` or `as` is part of what is skipped.
            return kind != tokens.AS and self._kinds[self._position - 1] != tokens.ASSIGN
        if pending_braces > 0 or pending > 0:
            return False
        if kind == tokens.MATCH:
            return int(self._kinds[self._position - 1]) != tokens.ASSIGN
        return frames.ATOMS[kind] != 0 and self._is_first_on_line()
