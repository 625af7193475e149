"""Translator: translates the functions of an IR to LLVM functions, one text each.

An IR value is an LLVM value: Int, addresses and all other words are i64, Double is double, Bool is i1; Void is the word
0. A block is a block, its parameters are phis.

Calls. A function is an internal LLVM function with its garden parameters. A tail call of another function needs the
signature of its caller, so functions that are connected by tail calls share one: as many words and Doubles as any of
them needs, if they fit registers; the rest goes through the global `arguments`. A tail call of the function itself is a
jump to its start.

Stack. Every cycle of calls contains a call of a function that is not declared before its caller. These calls, except
those of an inlined copy, compare the stack pointer with the limit; between two of them each function is active at most
once.

Ctrl-C. Jumps back and tail calls look at a word of the context; calls find the stack limit moved.

Functions of the runtime have a last parameter, `where`: the position at which a trap inside is reported.

Costs: linear in the size of the program; some 40 bytes of text per instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from allocators import Allocator
from allocators.collections import Vec
from garden.host import HostFunction
from garden.ir import ir as op
from garden.ir.blocks import postorder
from garden.ir.calls import instructions
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.native.codegen.body import UNLIKELY, Body, field
from garden.native.codegen.hosts import native_call
from garden.native.codegen.intrinsics import LLVM, OUT_OF_LINE
from garden.native.context import ARGUMENT_WORDS, HOST_CALL
from garden.strings import append_string
from garden.types.types import BOOL, DOUBLE, STR

#: Parameters of functions connected by tail calls that travel in registers, by LLVM type. More would go to the stack,
#: where LLVM 22 loses them.
_REGISTERS: Final = {"i64": 5, "double": 8}
#: A table may have this many slots, and this many more for each key.
_SPARE_SLOTS: Final = 64
_SLOTS_PER_KEY: Final = 16
#: Instructions of a function of which a copy is inlined into it.
_SMALL: Final = 60
#: Lines of LLVM text of a block and of a function. LLVM does not optimise functions beyond them: it would take time for
#: the square of the length, and recurse as deep as values depend on each other, until the stack overflows.
_LONGEST_BLOCK: Final = 2000
_LONGEST_FUNCTION: Final = 50_000


def llvm_type(type: int) -> str:
    """The LLVM type of values of a garden type."""
    return "double" if type == DOUBLE else "i1" if type == BOOL else "i64"


class Signature:
    """How an LLVM function is called: its name in LLVM, the type of its result, and those of its parameters.

    With `slots`, the parameters go where these say: the number of an LLVM parameter of `shape`, or if negative, `~n`
    for word n of `arguments`.
    """

    __slots__ = ("name", "parameters", "result", "shape", "slots")

    def __init__(self, name: str, result: str, parameters: list[str]) -> None:
        self.name: Final = name
        self.result: Final = result
        self.parameters: Final = parameters
        self.shape = parameters
        self.slots: list[int] | None = None

    def share(self, words: int, doubles: int) -> None:
        """Take `words` words and `doubles` Doubles as parameters."""
        self.shape = ["i64"] * words + ["double"] * doubles
        free = {"i64": list(range(words)), "double": list(range(words, words + doubles))}
        self.slots = []
        spilled = 0
        for type in self.parameters:
            places = free["double" if type == "double" else "i64"]
            if places:
                self.slots.append(places.pop(0))
            else:
                self.slots.append(~spilled)
                spilled += 1


class Translator:
    """Translates one IR. `prefix` begins the LLVM names of its functions and data.

    `runtime` are the signatures of the runtime's functions by name; without them the IR is the runtime itself. `needed`
    has, once functions are translated, the runtime's functions that they call. `signatures` are by function row.
    Functions from the offset `small_from` of the source on become small rather than fast, and are not inlined.
    """

    def __init__(
        self,
        ir: Ir[Allocator],
        scratch: Allocator,
        prefix: str,
        runtime: Mapping[str, Signature] | None = None,
        *,
        backtrace: bool = False,
        small_from: int | None = None,
    ) -> None:
        self._ir: Final = ir
        self._prefix: Final = prefix
        self._runtime: Final = runtime
        self._backtrace: Final = backtrace
        self._small_from: Final = small_from
        self._starts: Final[dict[int, int]] = {}
        self._tables = 0
        self._order: Final[Vec[Allocator]] = Vec(scratch, "I")
        self._visited: Final[Vec[Allocator]] = Vec(scratch, "B")
        self._pending: Final[Vec[Allocator]] = Vec(scratch, "i")
        self.strings: Final[Vec[Allocator]] = Vec(scratch, "Q")
        self.needed: Final[dict[str, None]] = {}
        self.signatures: Final[list[Signature]] = []
        self._body = Body()
        self._data: list[str] = []
        self._row = 0
        self._itself = Signature("", "i64", [])
        self._is_copy = False
        self._names: dict[int, str] = {}
        self._incoming: dict[int, list[tuple[str, list[str]]]] = {}
        for row in range(ir.function_count):
            self.signatures.append(self._signature(row))
        self._connect_tail_calls()
        self._visited.fill(0, ir.block_count)

    def close(self) -> None:
        self.strings.close()
        self._pending.close()
        self._visited.close()
        self._order.close()

    @property
    def argument_words(self) -> int:
        """Words that `arguments` must have."""
        return max([ARGUMENT_WORDS, *[len(signature.parameters) for signature in self.signatures]])

    # Signatures.

    def _signature(self, row: int) -> Signature:
        ir = self._ir
        first: int = ir.function_first[row]
        if not first:
            return Signature("", "i64", [])
        is_entry = row == ir.function_count - 1
        name = "entry" if is_entry else ir.checked.ast.symbols.lookup(ir.function_name[row]).decode()
        parameters = [llvm_type(ir.type[value]) for value in ir.list_at(ir.block_params[first])]
        # Names of a program are unique but for what stands for the whole of it.
        suffix = "" if self._runtime is None else f".{row}"
        return Signature(f"{self._prefix}{name}{suffix}", llvm_type(ir.function_result[row]), parameters)

    def _connect_tail_calls(self) -> None:
        """Give functions that are connected by tail calls one signature."""
        ir = self._ir
        leader = list(range(ir.function_count))

        def find(row: int) -> int:
            while leader[row] != row:
                leader[row] = leader[leader[row]]
                row = leader[row]
            return row

        connected = False
        for block in range(1, ir.block_count):
            function: int = ir.block_function[block]
            last: int = ir.block_last[block]
            if function and last and ir.op[last] == op.TAIL and ir.a[last] != function:
                leader[find(function)] = find(ir.a[last])
                connected = True
        if not connected:
            return
        members: dict[int, list[int]] = {}
        for row in range(1, ir.function_count):
            members.setdefault(find(row), []).append(row)
        for rows in members.values():
            if len(rows) < 2:
                continue
            doubles = [self.signatures[row].parameters.count("double") for row in rows]
            words = [len(self.signatures[row].parameters) - count for row, count in zip(rows, doubles, strict=True)]
            for row in rows:
                self.signatures[row].share(min(max(words), _REGISTERS["i64"]), min(max(doubles), _REGISTERS["double"]))

    # Functions.

    def function(self, row: int) -> str:
        """The LLVM text of a function and of the tables that it uses.

        A small one that calls itself calls a copy of itself instead, which is inlined and calls it in turn. That saves
        every other call, and all that lead to nothing but a base case.
        """
        if self._runtime is None or self._backtrace or not self._recurses(row):
            return self._function(row, self.signatures[row], self.signatures[row])
        original = self.signatures[row]
        copy = Signature(f"{original.name}.copy", original.result, original.parameters)
        copy.shape, copy.slots = original.shape, original.slots
        return self._function(row, original, copy) + self._function(row, copy, original)

    def _recurses(self, row: int) -> bool:
        """Whether a function is small and calls itself."""
        ir = self._ir
        found = False
        for count, inst in enumerate(instructions(ir, row)):
            if count == _SMALL:
                return False
            found = found or (ir.op[inst] == op.CALL and ir.a[inst] == row)
        return found

    def _function(self, row: int, signature: Signature, itself: Signature) -> str:
        """The LLVM text of a function under some name, which knows itself by another."""
        ir = self._ir
        self._row = row
        self._itself = itself
        self._is_copy = signature is not self.signatures[row]
        self._body = body = Body()
        self._data = []
        self._names = {}
        self._incoming = {}
        parts: list[tuple[int, str]] = []
        first: int = ir.function_first[row]
        self._enter(signature, first)
        head = body.take()
        postorder(ir, row, self._order, self._visited.items, self._pending)
        for index in range(len(self._order) - 1, -1, -1):
            block: int = self._order.items[index]
            # A copy of the function comes this way again.
            self._visited.items[block] = 0
            for value in ir.list_at(ir.block_params[block]):
                self._names[value] = f"%v{value}"
            body.block = f"b{block}"
            inst: int = ir.block_first[block]
            while inst:
                self._instruction(inst)
                inst = ir.next[inst]
            parts.append((block, body.take()))
        self._order.clear()
        where = ", i64 %where" if self._runtime is None else ""
        parameters = ", ".join([f"{type} %p{index}" for index, type in enumerate(signature.shape)])
        if not parameters:
            where = where.removeprefix(", ")
        attributes = " alwaysinline" if self._is_copy else ""
        if self._runtime is None and signature.name.removeprefix(self._prefix) in OUT_OF_LINE:
            attributes = " noinline"
        if self._small_from is not None and ir.function_pos[row] >= self._small_from:
            attributes = " noinline minsize optsize"
        if self._backtrace:
            attributes = ' noinline "frame-pointer"="all" "disable-tail-calls"="true"'
        lengths = [lines.count("\n") for _, lines in parts]
        if max(lengths) > _LONGEST_BLOCK or sum(lengths) > _LONGEST_FUNCTION:
            attributes = f"{attributes.replace(' noinline', '')} optnone noinline"
        text = [
            *self._data,
            f'define internal fastcc {signature.result} @"{signature.name}"({parameters}{where}){attributes} {{\n',
            head,
        ]
        for block, lines in parts:
            text.append(f"b{block}:\n")
            text.extend(self._phis(block))
            text.append(lines)
        text.append(body.take_traps())
        text.append("}\n")
        return "".join(text)

    def _enter(self, signature: Signature, first: int) -> None:
        """Write the block before the first one, which collects the arguments."""
        body = self._body
        body.place("entry")
        if signature.slots is None:
            arguments = [f"%p{index}" for index in range(len(signature.parameters))]
        else:
            arguments = []
            for type, slot in zip(signature.parameters, signature.slots, strict=True):
                if slot < 0:
                    arguments.append(body.from_word(type, body.value(f"load i64, ptr {argument(~slot)}")))
                elif type == "i1":
                    arguments.append(body.from_word("i1", f"%p{slot}"))
                else:
                    arguments.append(f"%p{slot}")
        self._incoming[first] = [("entry", arguments)]
        body.line(f"br label %b{first}")

    def _phis(self, block: int) -> list[str]:
        ir = self._ir
        lines = []
        incoming = self._incoming.get(block, [])
        for index, value in enumerate(ir.list_at(ir.block_params[block])):
            pairs = ", ".join([f"[ {arguments[index]}, %{label} ]" for label, arguments in incoming])
            lines.append(f"  %v{value} = phi {llvm_type(ir.type[value])} {pairs}\n")
        return lines

    def wrapper(self, row: int, name: str) -> str:
        """The text of a function that calls one with the words in `arguments`, and returns the word of its result."""
        body = Body()
        signature = self.signatures[row]
        arguments = []
        for index, type in enumerate(signature.parameters):
            arguments.append(body.from_word(type, body.value(f"load i64, ptr {argument(index)}")))
        # The function stands by itself already, and once is enough.
        result = body.value(f"{call_text(body, signature, arguments, [])} noinline")
        body.line(f"ret i64 {body.to_word(signature.result, result)}")
        return f'define hidden i64 @"{name}"() {{\n{body.take()}}}\n'

    # Instructions.

    def _where(self, inst: int) -> str:
        return "%where" if self._runtime is None else str(self._ir.pos[inst])

    def _instruction(self, inst: int) -> None:
        ir = self._ir
        body = self._body
        names = self._names
        operation: int = ir.op[inst]
        if operation >= op.FIRST_TERMINATOR:
            self._terminator(operation, inst)
            return
        type = llvm_type(ir.type[inst])
        if operation == op.CONST:
            names[inst] = _constant(type, ir.imm[inst])
        elif operation == op.CONST_STR:
            names[inst] = self._string(ir.imm[inst])
        elif operation == op.UNDEFINED:
            names[inst] = _constant(type, 0)
        elif operation == op.CALL:
            names[inst] = self._call(inst)
        elif operation == op.SYS:
            names[inst] = self._host_call(inst)
        elif operation == op.ALLOC:
            names[inst] = self._runtime_call("alloc", [str(ir.imm[inst])], "i64", self._where(inst))
        elif operation == op.LOAD:
            word = body.value(f"load i64, ptr {body.pointer(names[ir.a[inst]], ir.imm[inst])}")
            names[inst] = body.from_word(type, word)
        elif operation == op.STORE:
            value = body.to_word(llvm_type(ir.type[ir.a[inst]]), names[ir.a[inst]])
            body.line(f"store i64 {value}, ptr {body.pointer(names[ir.b[inst]], ir.imm[inst])}")
        elif operation == op.COPY:
            arguments = [names[ir.b[inst]], names[ir.a[inst]], str(ir.imm[inst])]
            names[inst] = self._runtime_call("copy_words", arguments, "i64", self._where(inst))
        elif operation == op.ADDROF:
            names[inst] = body.value(f"add i64 {names[ir.a[inst]]}, {ir.imm[inst]}")
        elif operation == op.LOOKUP:
            names[inst] = self._lookup(inst, type)
        elif operation != op.NOP:
            entry = op.OPS[operation]
            a = names[ir.a[inst]]
            if entry.b == op.VALUE:
                operand_type = llvm_type(ir.type[ir.a[inst]])
                names[inst] = body.binary(operation, a, names[ir.b[inst]], self._where(inst), operand_type)
            elif entry.imm == op.IMM:
                names[inst] = body.binary(operation, a, str(ir.imm[inst]), self._where(inst))
            else:
                names[inst] = body.unary(operation, a)

    def _string(self, symbol: int) -> str:
        return (
            f'ptrtoint (ptr getelementptr (i8, ptr @"{self._prefix}strings", i64 {self._string_offset(symbol)}) to i64)'
        )

    def _string_offset(self, symbol: int) -> int:
        start = self._starts.get(symbol)
        if start is None:
            start = 8 * append_string(self.strings, self._ir.checked.ast.symbols.lookup(symbol))
            self._starts[symbol] = start
        return start

    def begin_strings(self, words: bytes) -> None:
        """Have these constant strings, laid out as `Code.strings`, before all others."""
        symbols = self._ir.checked.ast.symbols
        at = 0
        while at < len(words):
            end = at + 8 + int.from_bytes(words[at : at + 4], "little")
            symbol = symbols.find(words[at + 8 : end])
            if symbol >= 0:
                self._starts[symbol] = at
            at = end + 7 & -8
        self.strings.extend(memoryview(words).cast("Q"))

    def string_data(self) -> str:
        """The LLVM text of the constant strings of all functions that were translated."""
        words = ", ".join([f"i64 {word}" for word in self.strings.view])
        count = len(self.strings)
        return f'@"{self._prefix}strings" = hidden constant [{count} x i64] [{words}], align 8\n'

    def _call(self, inst: int) -> str:
        ir = self._ir
        callee: int = ir.a[inst]
        arguments = [self._names[value] for value in ir.list_at(ir.b[inst])]
        signature = self._itself if callee == self._row else self.signatures[callee]
        if callee >= self._row and self._runtime is not None and signature is self.signatures[callee]:
            self._check_stack(inst)
        extra = ["i64 %where"] if self._runtime is None else []
        # A call that LLVM made a jump of would take no stack, so that endless recursion had no end.
        keep = "notail " if self._runtime is not None else ""
        return self._body.value(keep + call_text(self._body, signature, arguments, extra))

    def _check_stack(self, inst: int) -> None:
        body = self._body
        pointer = body.value("call i64 @llvm.read_register.i64(metadata !0)")
        limit = body.value(f"load atomic i64, ptr {field('stack_limit')} monotonic, align 8")
        self._call_if(body.value(f"icmp ult i64 {pointer}, {limit}"), "garden_low", inst)

    def _check_interrupt(self, inst: int) -> None:
        """Look for Ctrl-C."""
        body = self._body
        # Atomic, lest LLVM look only once.
        flag = body.value(f"load atomic i64, ptr {field('interrupted')} monotonic, align 8")
        self._call_if(body.value(f"icmp ne i64 {flag}, 0"), "garden_poll", inst)

    def _call_if(self, condition: str, name: str, inst: int) -> None:
        """Call one of the functions of `declarations` where a condition holds, which is hardly ever."""
        body = self._body
        cold, after = body.label(), body.label()
        body.line(f"br i1 {condition}, label %{cold}, label %{after}, {UNLIKELY}")
        body.place(cold)
        body.line(f"call preserve_mostcc void @{name}(i64 {self._where(inst)})")
        body.line(f"br label %{after}")
        body.place(after)

    def _host_call(self, inst: int) -> str:
        ir = self._ir
        function: HostFunction = ir.checked.hosts[ir.a[inst]]
        values = list(ir.list_at(ir.b[inst]))
        result = llvm_type(ir.type[inst])
        if self._runtime is None:
            return self._body.template(LLVM[function.name], [self._names[value] for value in values])
        call = native_call(function)
        if call is not None:
            name, constants = call
            wanted = self._runtime[name].parameters
            arguments = []
            for value, want in zip(values, wanted, strict=False):
                have = llvm_type(ir.type[value])
                operand = self._names[value]
                arguments.append(operand if have == want else self._body.to_word(have, operand))
            arguments.extend([str(constant) for constant in constants])
            return self._runtime_call(name, arguments, result, self._where(inst))
        body = self._body
        for index, value in enumerate(values):
            word = body.to_word(llvm_type(ir.type[value]), self._names[value])
            body.line(f"store i64 {word}, ptr {argument(index)}")
        body.store_field("where", self._where(inst))
        return body.from_word(
            result,
            body.value(f"call i64 @garden_request(i64 {HOST_CALL}, i64 {ir.a[inst]}, i64 {len(values)})"),
        )

    def _runtime_call(self, name: str, arguments: list[str], result: str, where: str) -> str:
        """A call of a runtime function, whose result becomes one of another type where that is wanted."""
        body = self._body
        if self._runtime is None:
            signature = next(known for known in self.signatures if known.name == f"{self._prefix}{name}")
        else:
            signature = self._runtime[name]
            self.needed[name] = None
        word = body.value(call_text(body, signature, arguments, [f"i64 {where}"]))
        return word if signature.result == result else body.from_word(result, word)

    # Tables.

    def _lookup(self, inst: int, type: str) -> str:
        ir = self._ir
        body = self._body
        words = list(ir.list_at(ir.b[inst]))
        is_str = ir.type[ir.a[inst]] == STR
        values = [self._table_word(ir.type[inst], word) for word in words[::2]]
        keys = [self._string_offset(word) if is_str else word for word in words[1::2]]
        first, last = min(keys), max(keys)
        subject = self._subject(ir.a[inst], is_str)
        step = 8 if is_str else 1
        count = (last - first) // step + 1
        if count > _SPARE_SLOTS + _SLOTS_PER_KEY * len(keys):
            word = self._sparse_lookup(subject, keys, values)
        else:
            slots = [values[0]] * count
            for key, value in zip(keys, values[1:], strict=True):
                slots[(key - first) // step] = value
            self._tables += 1
            table = f'@"{self._prefix}table.{self._tables}"'
            items = ", ".join([f"i64 {slot}" for slot in slots])
            self._data.append(f"{table} = internal constant [{count} x i64] [{items}]\n")
            slot = body.value(f"sub i64 {subject}, {first}")
            if is_str:
                slot = body.value(f"ashr exact i64 {slot}, 3")
            inside = body.value(f"icmp ult i64 {slot}, {count}")
            found, after = body.label(), body.label()
            before = body.block
            body.line(f"br i1 {inside}, label %{found}, label %{after}")
            body.place(found)
            pointer = body.value(f"getelementptr inbounds [{count} x i64], ptr {table}, i64 0, i64 {slot}")
            item = body.value(f"load i64, ptr {pointer}")
            body.line(f"br label %{after}")
            body.place(after)
            word = body.value(f"phi i64 [ {item}, %{found} ], [ {values[0]}, %{before} ]")
        if ir.type[inst] == STR:
            base = f'ptrtoint (ptr @"{self._prefix}strings" to i64)'
            return body.value(f"add i64 {word}, {base}")
        return body.from_word(type, word)

    def _table_word(self, type: int, word: int) -> int:
        """What stands for a value in a table: of a Str, where it is among the constant strings."""
        return self._string_offset(word) if type == STR else word

    def _sparse_lookup(self, subject: str, keys: list[int], values: list[int]) -> str:
        body = self._body
        labels = {value: body.label() for value in values}
        after = body.label()
        cases = " ".join([f"i64 {key}, label %{labels[value]}" for key, value in zip(keys, values[1:], strict=True)])
        body.line(f"switch i64 {subject}, label %{labels[values[0]]} [ {cases} ]")
        for label in labels.values():
            body.place(label)
            body.line(f"br label %{after}")
        body.place(after)
        pairs = ", ".join([f"[ {value}, %{label} ]" for value, label in labels.items()])
        return body.value(f"phi i64 {pairs}")

    def _subject(self, value: int, is_str: bool) -> str:
        """What is looked for in a table: of a Str, where it is among the constant strings."""
        name = self._names[value]
        if not is_str:
            return self._body.to_word(llvm_type(self._ir.type[value]), name)
        base = f'ptrtoint (ptr @"{self._prefix}strings" to i64)'
        return self._body.value(f"sub i64 {name}, {base}")

    # Terminators.

    def _terminator(self, operation: int, inst: int) -> None:
        ir = self._ir
        body = self._body
        names = self._names
        if operation == op.RET:
            result = self.signatures[self._row].result
            value = names[ir.a[inst]] if ir.a[inst] else _constant(result, 0)
            body.line(f"ret {result} {value}")
        elif operation == op.TAIL:
            self._tail(inst)
        elif operation == op.SWITCH:
            self._switch(inst)
        elif operation == op.JUMP:
            body.line(f"br label %{self._edge(ir.c[inst])}")
        else:
            condition = self._condition(operation, inst)
            # Each edge gets a block where both could lead to one with different arguments.
            edges = [edge_at(ir, inst, index) for index in range(edge_count(ir, inst))]
            split = ir.pool.items[edges[0] + 1] == ir.pool.items[edges[1] + 1]
            self._branch(f"i1 {condition}", edges, split)

    def _condition(self, operation: int, inst: int) -> str:
        ir = self._ir
        names = self._names
        a = names[ir.a[inst]]
        if operation == op.BRANCH:
            return a
        if operation == op.BRANCH_CMP_IMM:
            return self._body.binary(ir.b[inst], a, str(ir.imm[inst]), "0")
        type = llvm_type(ir.type[ir.a[inst]])
        return self._body.binary(ir.imm[inst], a, names[ir.b[inst]], "0", type)

    def _branch(self, condition: str, edges: list[int], split: bool) -> None:
        body = self._body
        targets = []
        for edge in edges:
            targets.append(body.label() if split else self._edge(edge))
        body.line(f"br {condition}, " + ", ".join([f"label %{target}" for target in targets]))
        if split:
            for target, edge in zip(targets, edges, strict=True):
                body.place(target)
                body.line(f"br label %{self._edge(edge)}")

    def _edge(self, edge: int) -> str:
        """The label that an edge leads to, where its arguments are noted."""
        words = self._ir.list_at(edge)
        target: int = words[0]
        arguments = [self._names[value] for value in words[1:]]
        self._incoming.setdefault(target, []).append((self._body.block, arguments))
        return f"b{target}"

    def _switch(self, inst: int) -> None:
        ir = self._ir
        body = self._body
        words = list(ir.list_at(ir.b[inst]))
        is_str = ir.type[ir.a[inst]] == STR
        subject = self._subject(ir.a[inst], is_str)
        edges = words[::2]
        keys = [self._string_offset(word) if is_str else word for word in words[1::2]]
        labels = [body.label() for _ in edges]
        cases = " ".join([f"i64 {key}, label %{label}" for key, label in zip(keys, labels[1:], strict=True)])
        body.line(f"switch i64 {subject}, label %{labels[0]} [ {cases} ]")
        for label, edge in zip(labels, edges, strict=True):
            body.place(label)
            body.line(f"br label %{self._edge(edge)}")

    def _tail(self, inst: int) -> None:
        ir = self._ir
        body = self._body
        callee: int = ir.a[inst]
        arguments = [self._names[value] for value in ir.list_at(ir.b[inst])]
        if self._runtime is not None:
            self._check_interrupt(inst)
        if callee == self._row:
            first: int = ir.function_first[callee]
            self._incoming[first].append((body.block, arguments))
            body.line(f"br label %b{first}")
            return
        extra = ["i64 %where"] if self._runtime is None else []
        signature = self.signatures[callee]
        text = call_text(body, signature, arguments, extra)
        result = body.value(f"musttail {text}")
        body.line(f"ret {signature.result} {result}")


def call_text(body: Body, signature: Signature, arguments: list[str], extra: list[str]) -> str:
    """A call as an instruction; arguments that have no parameter are stored before."""
    typed = []
    if signature.slots is None:
        typed = [f"{type} {value}" for type, value in zip(signature.parameters, arguments, strict=True)]
    else:
        typed = [f"{type} poison" for type in signature.shape]
        for type, slot, value in zip(signature.parameters, signature.slots, arguments, strict=True):
            if slot < 0:
                body.line(f"store i64 {body.to_word(type, value)}, ptr {argument(~slot)}")
            elif type == "i1":
                typed[slot] = f"i64 {body.to_word(type, value)}"
            else:
                typed[slot] = f"{type} {value}"
    return f'call fastcc {signature.result} @"{signature.name}"({", ".join(typed + extra)})'


def argument(index: int) -> str:
    """The LLVM expression for the address of a word of `arguments`."""
    return f"getelementptr inbounds (i64, ptr @arguments, i64 {index})"


def _constant(type: str, word: int) -> str:
    if type == "double":
        return f"0x{word & 0xFFFFFFFFFFFFFFFF:016X}"
    if type == "i1":
        return "true" if word else "false"
    return str(word)
