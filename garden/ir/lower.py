"""Lowering: from the checked AST to the IR.

SSA form comes for free: bindings are immutable, so a name simply stands for a value, and the one place where control
flow meets, the end of a `match`, passes the value of its arm as a block parameter. All other blocks see the values of
the blocks that dominate them.

The walk keeps two stacks in scratch memory rather than recursing, so nesting costs no Python frames. The *work stack*
holds what is left to do, next on top: tasks, a word each (`task | node << 8`), some with an offset below. The *value
stack* holds what evaluated nodes gave, 0 where a node has no value, and in between what open matches must remember.
The checker has resolved all names, so `bound` simply has the value of each `let` and parameter at its name token.

Blocks are added when their first instruction is due, so the layout follows the source: test, arm, test, arm, default,
join. Edges to blocks that do not exist yet are patched later: the pending edges to a join form a chain through their
target words.

Decided here:

* A minus right before a number literal is part of it. So -9223372036854775808 can be written, as that minus and a
  literal that would be out of range without it (parentheses leave no node, so they may stand between); a cast or an
  operator between the two makes the literal an error again.
* Records are laid out inline, in other records and in arrays: a nested literal is built in place, any other record
  value is copied into place, word by word if it has up to `FEW_WORDS` (passes see what these are), else as a block. A
  field that is a record is an address inside the outer one.
* Declarations (`fn`, `import`, `extern`) are no part of `entry`; its value is that of the last other item, and a `let`
  has none.

Costs: time and memory are linear in the number of nodes: a node becomes at most `2 * FEW_WORDS` instructions, which
copy a small record.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.common import WORD_SIZE
from garden.diagnostics import Diagnostic
from garden.ir import ir as op
from garden.ir.builder import Builder
from garden.ir.ir import Ir
from garden.ir.literals import double_literal, int_literal
from garden.ir.operators import BINARY, CASTS, is_swapped
from garden.semantics import MAX_INT, MIN_INT
from garden.syntax import ast as node_kind
from garden.syntax import tokens as token_kind
from garden.types.program import CheckedProgram
from garden.types.types import BOOL, DOUBLE, FEW_WORDS, INT, VOID, Type

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

# Tasks. Each but `_DROP` takes a node, `_BODY` the index of a list of items instead.
_EVALUATE: Final = 0  # lower the node; push its value
_FINISH: Final = 1  # the operands of the node are pushed: replace them by its value
_BODY: Final = 2  # lower the items of the list; push the value of the last
_DROP: Final = 3  # pop a value
_BUILD: Final = 4  # build the record literal at an offset into the object on top of the value stack
_STORE: Final = 5  # pop the node's value and put it at an offset into the object then on top
_TEST: Final = 6  # the condition, this node, is pushed: branch, and go on in its arm
_ARM: Final = 7  # an arm of this match ends
_JOIN: Final = 8  # the default arm of this match ends


@mypyc_attr(native_class=True)
class Lowerer(Generic[A, S]):
    """Lowers checked programs. `allocator` holds the IR, `scratch` what is needed on the way."""

    __slots__ = ("_allocator", "_diagnostics", "_scratch")

    def __init__(self, allocator: A, scratch: S, diagnostics: list[Diagnostic]) -> None:
        self._allocator: Final[A] = allocator
        self._scratch: Final[S] = scratch
        self._diagnostics: Final = diagnostics

    def lower(self, checked: CheckedProgram[Allocator]) -> Ir[A]:
        """The IR of a program that was parsed and checked without diagnostics.

        Appends a diagnostic for each literal out of range and each call of a function that is only declared. The IR is
        well-formed even then, but does not mean the program. Raises `AllocError`, and then keeps nothing.
        """
        ir = Ir(self._allocator, checked)
        try:
            lowering = _Lowering(ir, self._scratch, self._diagnostics)
            try:
                lowering.lower()
            finally:
                lowering.close()
        except BaseException:
            ir.close()
            raise
        return ir


@mypyc_attr(native_class=True)
class _Lowering(Generic[A, S]):
    """The lowering of one program: the IR that it fills, and the stacks."""

    __slots__ = (
        "_ast",
        "_bound",
        "_build",
        "_checked",
        "_diagnostics",
        "_function",
        "_ir",
        "_kinds",
        "_left",
        "_node_types",
        "_right",
        "_starts",
        "_symbols",
        "_targets",
        "_tokens",
        "_types",
        "_values",
        "_work",
    )

    def __init__(self, ir: Ir[A], scratch: S, diagnostics: list[Diagnostic]) -> None:
        checked = ir.checked
        ast = checked.ast
        self._ir: Final = ir
        self._build: Final = Builder(ir, 0)
        self._checked: Final = checked
        self._ast: Final = ast
        self._types: Final = checked.types
        self._diagnostics: Final = diagnostics
        # Nothing that these view grows any more.
        self._kinds: Final = ast.kinds
        self._tokens: Final = ast.token
        self._left: Final = ast.a
        self._right: Final = ast.b
        self._starts: Final = ast.tokens.starts
        self._symbols: Final = ast.tokens.symbols
        self._node_types: Final = checked.node_types.items
        self._targets: Final = checked.targets.items
        self._work: Vec[S] = Vec(scratch, "q")
        self._values: Vec[S] = Vec(scratch, "q")
        self._bound: Vec[S] = Vec(scratch, "I")
        self._function = 0

    def close(self) -> None:
        self._bound.close()
        self._values.close()
        self._work.close()

    def lower(self) -> None:
        ir = self._ir
        functions = self._checked.functions
        self._bound.fill(0, len(self._ast.tokens))
        nodes, results, parameters, names = functions.typed_columns
        # Any function may call any other, so all have their rows before the first call.
        for row in range(1, len(functions)):
            count: i64 = self._checked.extra.items[parameters[row]]
            ir.add_function(names[row], results[row], self._start(nodes[row]), count)
        entry = ir.add_function(0, VOID, 0, 0)
        for row in range(1, len(functions)):
            self._lower_function(row, nodes[row], parameters[row])
        self._lower_entry(entry)

    def _lower_function(self, row: i64, node: i64, types: i64) -> None:
        ast = self._ast
        ir = self._ir
        self._function = row
        self._build.block = ir.add_block(row)
        extra = ast.extra.items
        signature: i64 = self._left[node]
        parameters: i64 = extra[signature + node_kind.SIGNATURE_PARAMETERS]
        count: i64 = ir.function_parameters[row]
        for index in range(count):
            token: i64 = extra[parameters + 1 + 2 * index]
            type: i64 = self._checked.extra.items[types + 1 + index]
            value = ir.add(op.PARAM, type, self._starts[token])
            self._bound.items[token] = value
            self._values.append_i64(value)
        ir.block_params[self._build.block] = self._pop_list(count)
        body: i64 = self._right[node]
        self._lower_items(body, ir.function_result[row], self._start(node))

    def _lower_entry(self, row: i64) -> None:
        ir = self._ir
        self._function = row
        self._build.block = ir.add_block(row)
        roots = self._ast.roots
        last = self._last_item(roots)
        if last and self._kinds[last] != node_kind.LET:
            ir.function_result[row] = max(VOID, self._node_types[last])
        self._lower_items(roots, ir.function_result[row], 0)

    def _lower_items(self, items: i64, result: i64, start: i64) -> None:
        """Lower the items of a function and return the value of the last, unless `result` is Void."""
        self._push(_BODY, items)
        self._run()
        value: i64 = self._values.pop_i64()
        last = self._last_item(items)
        self._build.ret(value if result != VOID else 0, self._start(last) if last else start)

    def _run(self) -> None:
        """Do all tasks."""
        work = self._work
        values = self._values
        while len(work):
            word: i64 = work.pop_i64()
            task = word & 0xFF
            node = word >> 8
            if task == _EVALUATE:
                self._evaluate(node)
            elif task == _FINISH:
                values.append_i64(self._finish(node))
            elif task == _BODY:
                self._push_items(node)
            elif task == _DROP:
                values.pop_i64()
            elif task == _BUILD:
                self._push_fields(node, work.pop_i64())
            elif task == _STORE:
                value: i64 = values.pop_i64()
                self._store(node, value, values.items[len(values) - 1], work.pop_i64())
            elif task == _TEST:
                self._branch(node)
            elif task == _ARM:
                self._end_arm(node)
            else:
                self._join(node)

    def _push(self, task: i64, node: i64) -> None:
        self._work.append_i64(task | node << 8)

    def _push_items(self, items: i64) -> None:
        """Push what evaluates the items of a body in turn, and keeps the value of the last."""
        extra = self._ast.extra.items
        last = True
        for index in range(items + extra[items], items, -1):
            node: i64 = extra[index]
            if self._is_declaration(node):
                continue
            if not last:
                self._push(_DROP, 0)
            self._push(_EVALUATE, node)
            last = False
        if last:
            self._values.append_i64(0)

    def _is_declaration(self, node: i64) -> bool:
        kind: i64 = self._kinds[node]
        return kind in (node_kind.FN, node_kind.IMPORT, node_kind.EXTERN)

    def _last_item(self, items: i64) -> i64:
        """The last item of a list that is no declaration, or 0."""
        extra = self._ast.extra.items
        for index in range(items + extra[items], items, -1):
            node: i64 = extra[index]
            if not self._is_declaration(node):
                return node
        return 0

    def _evaluate(self, node: i64) -> None:
        """Push the value of a leaf, or the tasks that lead to the value of an inner node."""
        kind: i64 = self._kinds[node]
        left: i64 = self._left[node]
        if kind == node_kind.IDENT:
            self._values.append_i64(self._bound.items[self._targets[node]])
        elif kind == node_kind.BINARY:
            self._push(_FINISH, node)
            self._push(_EVALUATE, self._right[node])
            self._push(_EVALUATE, left)
        elif kind == node_kind.CALL:
            self._push(_FINISH, node)
            extra = self._ast.extra.items
            arguments: i64 = self._right[node]
            for index in range(arguments + extra[arguments], arguments, -1):
                self._push(_EVALUATE, extra[index])
        elif kind in (node_kind.LET, node_kind.FIELD, node_kind.CAST):
            self._push(_FINISH, node)
            self._push(_EVALUATE, left)
        elif kind == node_kind.MATCH:
            self._push_match(node)
        elif kind == node_kind.UNARY:
            self._evaluate_unary(node, left)
        elif kind == node_kind.ARRAY:
            self._push_members(node)
        elif kind == node_kind.RECORD:
            self._values.append_i64(self._allocate(node, self._type(node).size))
            self._push_fields(node, 0)
        else:
            self._values.append_i64(self._literal(node, kind, False, self._start(node)))

    def _finish(self, node: i64) -> i64:
        """The value of a node whose operands are on the value stack, and now taken off."""
        kind: i64 = self._kinds[node]
        if kind == node_kind.CALL:
            return self._call(node)
        values = self._values
        operand: i64 = values.pop_i64()
        left: i64 = self._left[node]
        if kind == node_kind.BINARY:
            return self._binary(node, values.pop_i64(), operand)
        if kind == node_kind.FIELD:
            return self._field(node, operand)
        if kind == node_kind.CAST:
            return self._cast(node, operand)
        if kind == node_kind.LET:
            self._bound.items[self._tokens[node]] = operand
            return 0
        opcode = op.DNEG if self._node_types[left] == DOUBLE else op.INEG
        return self._build.unary(opcode, self._node_types[node], operand, self._start(node))

    # Scalars.

    def _literal(self, node: i64, kind: i64, negative: bool, pos: i64) -> i64:
        token: i64 = self._tokens[node]
        if kind == node_kind.STRING:
            return self._build.const_str(self._symbols[token], pos)
        if kind in (node_kind.TRUE, node_kind.FALSE):
            return self._build.const(BOOL, 1 if kind == node_kind.TRUE else 0, pos)
        bits = 0
        try:
            if kind == node_kind.INT:
                bits = int_literal(self._ast.text(token), negative)
            else:
                bits = double_literal(self._ast.text(token), negative)
        except OverflowError as error:
            if kind == node_kind.INT:
                self._report("E0401", str(error), token, f"an Int goes from {MIN_INT} to {MAX_INT}")
            else:
                self._report("E0402", str(error), token, "the largest Double has 309 digits before the point")
        return self._build.const(INT if kind == node_kind.INT else DOUBLE, bits, pos)

    def _evaluate_unary(self, node: i64, operand: i64) -> None:
        kind: i64 = self._kinds[operand]
        if self._ast.tokens.kinds[self._tokens[node]] == token_kind.PLUS:
            self._push(_EVALUATE, operand)
        elif kind in (node_kind.INT, node_kind.DOUBLE):
            self._values.append_i64(self._literal(operand, kind, True, self._start(node)))
        else:
            self._push(_FINISH, node)
            self._push(_EVALUATE, operand)

    def _binary(self, node: i64, left: i64, right: i64) -> i64:
        operator: i64 = self._ast.tokens.kinds[self._tokens[node]]
        opcode = BINARY[self._node_types[self._left[node]]][operator]
        if is_swapped(operator):
            left, right = right, left
        return self._build.binary(opcode, self._node_types[node], left, right, self._start(node))

    def _cast(self, node: i64, operand: i64) -> i64:
        target: i64 = self._node_types[node]
        opcode = CASTS[self._node_types[self._left[node]]][target]
        return self._build.unary(opcode, target, operand, self._start(node))

    # Calls.

    def _call(self, node: i64) -> i64:
        extra = self._ast.extra.items
        arguments = self._pop_list(extra[self._right[node]])
        token: i64 = self._tokens[self._left[node]]
        type: i64 = self._node_types[node]
        if type == VOID:
            type = 0
        target: i64 = self._targets[node]
        if target & 1:
            row = self._build.call(type, target >> 1, arguments, self._starts[token])
        else:
            index = (target >> 1) - 1
            host = self._checked.hosts[index]
            if not host.implemented:
                note = f"no package has `{host.signature}`"
                self._report("E0325", f"`{host.path}` is declared but not implemented", token, note)
            row = self._build.sys(type, index, arguments, self._starts[token])
        return row if type else 0

    # Records and arrays.

    def _allocate(self, node: i64, size: i64) -> i64:
        return self._build.alloc(self._node_types[node], size, self._start(node))

    def _push_fields(self, node: i64, offset: i64) -> None:
        """Push what puts the fields of a record literal at their offsets from `offset`."""
        extra = self._ast.extra.items
        fields: i64 = self._left[node]
        type = self._type(node)
        for index in range(extra[fields] // 2 - 1, -1, -1):
            self._push_part(extra[fields + 2 + 2 * index], offset + type.field_offset(index))

    def _push_members(self, node: i64) -> None:
        """Make an array and store its length; push what stores its members."""
        extra = self._ast.extra.items
        members: i64 = self._left[node]
        count: i64 = extra[members]
        size = self._type(extra[members + 1]).size
        array = self._allocate(node, WORD_SIZE + count * size)
        length = self._build.const(INT, count, self._start(node))
        self._build.store(length, array, 0, self._start(node))
        self._values.append_i64(array)
        for index in range(count - 1, -1, -1):
            self._push_part(extra[members + 1 + index], WORD_SIZE + index * size)

    def _push_part(self, node: i64, offset: i64) -> None:
        """Push what puts the value of `node` at an offset into the object on top of the value stack."""
        self._work.append_i64(offset)
        if self._kinds[node] == node_kind.RECORD:
            self._push(_BUILD, node)
        else:
            self._push(_STORE, node)
            self._push(_EVALUATE, node)

    def _store(self, node: i64, value: i64, base: i64, offset: i64) -> None:
        """Put the value of `node` at an offset from `base`: a record with all that it has, anything else is a word."""
        build = self._build
        pos = self._start(node)
        type = self._type(node)
        if type.name != "Record":
            build.store(value, base, offset, pos)
        elif type.size > FEW_WORDS * WORD_SIZE:
            target = build.addrof(self._node_types[node], base, offset, pos) if offset else base
            build.copy(value, target, type.size, pos)
        else:
            source = 0
            for inside in self._types.words(self._node_types[node]):
                word = build.load(inside, value, source, pos)
                build.store(word, base, offset + source, pos)
                source += WORD_SIZE

    def _field(self, node: i64, record: i64) -> i64:
        type: i64 = self._node_types[node]
        offset: i64 = self._targets[node]
        if self._type(node).name == "Record":
            return self._build.addrof(type, record, offset, self._start(node))
        return self._build.load(type, record, offset, self._start(node))

    # Matches. While one is open, the value stack holds the chain of edges to its join, and above it, inside an arm, the
    # edge to what comes next if the condition is false.

    def _push_match(self, node: i64) -> None:
        extra = self._ast.extra.items
        arms: i64 = self._left[node]
        self._values.append_i64(0)
        self._push(_JOIN, node)
        self._push(_BODY, self._right[node])
        for index in range(arms + extra[arms] - 1, arms, -2):
            condition: i64 = extra[index]
            self._push(_ARM, node)
            self._push(_BODY, extra[index + 1])
            self._push(_TEST, condition)
            self._push(_EVALUATE, condition)

    def _branch(self, condition: i64) -> None:
        ir = self._ir
        value: i64 = self._values.pop_i64()
        arm = ir.add_block(self._function)
        taken = ir.add_list([arm])
        other = ir.add_list([0])
        self._build.branch(value, taken, other, self._start(condition))
        self._values.append_i64(other)
        self._build.block = arm

    def _end_arm(self, node: i64) -> None:
        ir = self._ir
        values = self._values
        value: i64 = values.pop_i64()
        other: i64 = values.pop_i64()
        values.append_i64(self._jump_to_join(node, value, values.pop_i64()))
        self._build.block = ir.add_block(self._function)
        ir.pool.items[other + 1] = self._build.block

    def _join(self, node: i64) -> None:
        ir = self._ir
        values = self._values
        value: i64 = values.pop_i64()
        chain: i64 = values.pop_i64()
        if chain:
            type: i64 = self._node_types[node]
            chain = self._jump_to_join(node, value, chain)
            self._build.block = ir.add_block(self._function)
            targets = ir.pool.items
            while chain:
                before: i64 = targets[chain + 1]
                targets[chain + 1] = self._build.block
                chain = before
            value = 0
            if type != VOID:
                value = ir.add(op.PARAM, type, self._start(node))
                ir.block_params[self._build.block] = ir.add_list([value])
        values.append_i64(value)

    def _jump_to_join(self, node: i64, value: i64, chain: i64) -> i64:
        """End an arm's last block; return the new head of the chain of edges to the join."""
        edge = self._ir.add_list([chain] if self._node_types[node] == VOID else [chain, value])
        self._build.jump(edge, self._start(node))
        return edge

    # What all of them use.

    def _start(self, node: i64) -> i64:
        """The byte offset of a node's main token."""
        start: i64 = self._starts[self._tokens[node]]
        return start

    def _type(self, node: i64) -> Type:
        return self._types.type(self._node_types[node])

    def _pop_list(self, count: i64) -> i64:
        """Move the last `count` values into a list of the pool, and return its index; the empty list is 0."""
        if count == 0:
            return 0
        values = self._values
        pool = self._ir.pool
        start = len(values) - count
        index = len(pool)
        pool.reserve(count + 1)
        pool.append_i64(count)
        for position in range(start, start + count):
            pool.append_i64(values.items[position])
        values.truncate(start)
        return index

    def _report(self, code: str, message: str, token: i64, note: str) -> None:
        start: i64 = self._starts[token]
        length: i64 = self._ast.tokens.ends[token] - start
        self._diagnostics.append(Diagnostic(code, message, start, length, notes=(note,)))
