"""Reads the text that `garden.ir.printer` writes back into IR: for tests, and for programs that make IR themselves.

The text becomes the source of the program, so the position of an instruction is that of its line in it. Functions must
be numbered in order, and the last one is `entry`; names of values and blocks may be any numbers. Whether the IR makes
sense is for the verifier to say.

For people, like the printer: it keeps Python objects for the lines of one function at a time.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from allocators import Allocator
from allocators.collections import Interner
from garden.host import HostFunction, Package
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.semantics import word_of, wrap
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.tokens import Tokens
from garden.types.program import CheckedProgram
from garden.types.types import BOOL, DOUBLE, INT, STR, VOID, Type

A = TypeVar("A", bound=Allocator)

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<value>%v\d+)
      | (?P<text>`(?:[^`\\]|\\.)*`)
      | (?P<number>-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf\b|nan\b(?::0x[0-9a-f]+)?))
      | (?P<word>[A-Za-z_][\w./]*(?:<\w+->\w+>)?)
      | (?P<mark>->|[-+(){}\[\]<>:=,])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_ARM: Final = re.compile(r"\s*(?:_|-?\d+|`(?:[^`\\]|\\.)*`)\s*->")
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse_ir(text: str, allocator: A, packages: Mapping[str, Package] | None = None) -> Ir[A]:
    """The program that a text describes, with a checked program around it; `close_parsed` closes both.

    `packages` has the host functions that it may call, by import path. Raises ValueError, with the number of the line,
    where the text is not what the printer writes.
    """
    interner = Interner(allocator)
    try:
        # Symbol 0 is no name.
        interner.intern(b"")
        tokens = Tokens(allocator)
    except BaseException:
        interner.close()
        raise
    ast = Ast(allocator, Source("ir", text.encode()), interner, tokens)
    try:
        checked = CheckedProgram(allocator, ast)
        try:
            ir = Ir(allocator, checked)
            try:
                _Reader(ir, packages or {}).read(text)
            except BaseException:
                ir.close()
                raise
        except BaseException:
            checked.close()
            raise
    except BaseException:
        ast.close()
        raise
    return ir


def close_parsed(ir: Ir[Allocator]) -> None:
    """Give back the IR that `parse_ir` has returned, and the program that it made for it."""
    ir.close()
    ir.checked.close()
    ir.checked.ast.close()


class _Line:
    """The tokens of one line, and how far they have been read. `start` is where the line begins, in bytes."""

    def __init__(self, text: str, number: int, start: int) -> None:
        self.text: Final = text
        self.number: Final = number
        self.start: Final = start
        self.at = 0
        self.kind = ""
        self.token = ""
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self.error(f"cannot read {self.text[self.at :].strip()!r}")
        self.at = match.end()
        self.kind = match.lastgroup or ""
        self.token = match.group(self.kind)

    def error(self, message: str) -> ValueError:
        return ValueError(f"line {self.number}: {message}")

    def take(self, kind: str) -> str:
        """The token, which must be of this kind."""
        if self.kind != kind:
            raise self.error(f"want a {kind}, found {self.token!r}")
        token = self.token
        self.advance()
        return token

    def skip(self, token: str) -> bool:
        """Whether the token is this one, which is then behind."""
        if self.token != token or self.kind == "text":
            return False
        self.advance()
        return True

    def expect(self, token: str) -> None:
        if not self.skip(token):
            raise self.error(f"want {token!r}, found {self.token!r}")

    def end(self) -> None:
        if self.kind != "end":
            raise self.error(f"want the end of the line, found {self.token!r}")

    def integer(self) -> int:
        token = self.take("number")
        try:
            return int(token)
        except ValueError:
            raise self.error(f"want an integer, found {token!r}") from None

    def double(self) -> int:
        token = self.take("number")
        if ":" in token:
            return wrap(int(token.partition(":")[2], 16))
        return word_of(float(token))

    def string(self) -> str:
        return _ESCAPE.sub(_unescape, self.take("text")[1:-1])

    def numbered(self, prefix: str) -> int:
        """The number behind a word's prefix, such as the 3 of `f3`."""
        token = self.take("word")
        if token[:1] != prefix or not token[1:].isdigit():
            raise self.error(f"want {prefix} and a number, found {token!r}")
        return int(token[1:])

    def type(self) -> Type:
        """A type as garden spells it."""
        # Those that are still open: name, members, labels.
        opened: list[tuple[str, list[Type], list[str]]] = []
        while True:
            name = self.take("word")
            if name in ("Array", "Option", "Record"):
                self.expect("<")
                opened.append((name, [], []))
            elif name == "Foreign":
                self.expect("<")
                done = Type(name, (), (self.take("word"),))
                self.expect(">")
                self._add_member(opened, done)
            elif name in ("Void", "Bool", "Int", "Double", "Str"):
                done = Type(name)
                self._add_member(opened, done)
            else:
                raise self.error(f"unknown type {name!r}")
            while opened and self._is_complete(opened[-1]):
                name, members, labels = opened.pop()
                self.expect(">")
                done = Type(name, tuple(members), tuple(labels))
                self._add_member(opened, done)
            if not opened:
                return done
            if opened[-1][0] == "Record":
                opened[-1][2].append(self.take("word"))
                self.expect(":")

    @staticmethod
    def _add_member(opened: list[tuple[str, list[Type], list[str]]], done: Type) -> None:
        if opened:
            opened[-1][1].append(done)

    def _is_complete(self, opened: tuple[str, list[Type], list[str]]) -> bool:
        name, members, _ = opened
        return self.token == ">" if name == "Record" else len(members) == 1


def _unescape(match: re.Match[str]) -> str:
    code, char = match.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(char, char)


class _Reader:
    """The IR that is being filled, and what the names of the current function mean."""

    def __init__(self, ir: Ir[Allocator], packages: Mapping[str, Package]) -> None:
        self.ir: Final = ir
        self.packages: Final = packages
        self.hosts: Final[dict[int, int]] = {}
        self.opcodes: Final[dict[str, int]] = {}
        self.immediates: Final[dict[str, int]] = {}
        for opcode, entry in op.OPS.items():
            (self.immediates if entry.imm == op.IMM and entry.a == op.VALUE else self.opcodes)[entry.name] = opcode
        self.values: dict[str, int] = {}
        self.blocks: dict[int, int] = {}

    def read(self, text: str) -> None:
        name = "entry"
        body: list[_Line] | None = None
        start = 0
        number = 0
        for number, raw in enumerate(text.split("\n"), 1):
            line = raw.strip()
            if body is not None and line != "}":
                body.append(_Line(raw, number, start))
            elif body is not None:
                self._function(name, body)
                body = None
            elif line.startswith("//"):
                name = line[2:].strip()
            elif line:
                body = [_Line(raw, number, start)]
            start += len(raw.encode()) + 1
        if body is not None:
            raise ValueError(f"line {number}: the last function has no end")
        count = self.ir.function_count
        if count > 1:
            # The last function is `entry`, which has no name and no row in the checked program.
            self.ir.function_name[count - 1] = 0
            self.ir.checked.functions.truncate(count - 1)

    def _function(self, name: str, lines: list[_Line]) -> None:
        ir = self.ir
        header = lines[0]
        header.expect("fn")
        row = header.numbered("f")
        if row != ir.function_count:
            raise header.error(f"function f{row} where f{ir.function_count} is due")
        parameters = self._names(header)
        result = VOID
        if header.skip("->"):
            result = self._type(header)
        header.expect("{")
        header.end()
        symbol = ir.checked.ast.symbols.intern(name.encode())
        ir.add_function(symbol, result, header.start, len(parameters))
        self.values = {}
        self.blocks = {}
        pending = self._define(row, lines)
        if [self._known(header, value) for value in parameters] != list(ir.list_at(ir.block_params[self._first(row)])):
            raise header.error("the parameters are not those of the first block")
        extra = ir.checked.extra
        ir.checked.functions.append(0, result, len(extra), symbol)
        extra.append_i64(len(parameters))
        for value in parameters:
            extra.append_i64(ir.type[self.values[value]])
        for inst, line, arms in pending:
            self._instruction(inst, line, arms)

    def _first(self, row: int) -> int:
        first: int = self.ir.function_first[row]
        return first

    def _define(self, row: int, lines: list[_Line]) -> list[tuple[int, _Line, list[_Line]]]:
        """Give every block and every value of a function its row. Return the rows of instructions with their lines."""
        ir = self.ir
        block = 0
        pending: list[tuple[int, _Line, list[_Line]]] = []
        for line in lines[1:]:
            if line.kind == "end":
                continue
            if re.fullmatch(r"b\d+", line.token):
                block = self._block(row, line)
            elif block == 0:
                raise line.error("an instruction outside a block")
            elif _ARM.match(line.text):
                if not pending:
                    raise line.error("an arm outside a switch")
                pending[-1][2].append(line)
            else:
                type = 0
                name = ""
                if line.kind == "value":
                    name, type = self._typed(line)
                    line.expect("=")
                inst = ir.add(op.NONE, type, line.start + len(line.text) - len(line.text.lstrip()))
                ir.append(block, inst)
                if name:
                    self._bind(line, name, inst)
                pending.append((inst, line, []))
        if block == 0:
            raise lines[0].error("a function without blocks")
        return pending

    def _block(self, row: int, line: _Line) -> int:
        ir = self.ir
        number = line.numbered("b")
        if number in self.blocks:
            raise line.error(f"block b{number} is defined twice")
        block = ir.add_block(row)
        self.blocks[number] = block
        parameters: list[int] = []
        if line.skip("("):
            while not line.skip(")"):
                if parameters:
                    line.expect(",")
                name, type = self._typed(line)
                value = ir.add(op.PARAM, type, line.start)
                self._bind(line, name, value)
                parameters.append(value)
        line.expect(":")
        line.end()
        ir.block_params[block] = ir.add_list(parameters)
        return block

    def _bind(self, line: _Line, name: str, value: int) -> None:
        if name in self.values:
            raise line.error(f"value {name} is defined twice")
        self.values[name] = value

    def _typed(self, line: _Line) -> tuple[str, int]:
        name = line.take("value")
        line.expect(":")
        return name, self._type(line)

    def _type(self, line: _Line) -> int:
        return self.ir.checked.types.intern(line.type())

    def _names(self, line: _Line) -> list[str]:
        """Values in parentheses."""
        names: list[str] = []
        line.expect("(")
        while not line.skip(")"):
            if names:
                line.expect(",")
            names.append(line.take("value"))
        return names

    def _known(self, line: _Line, name: str) -> int:
        if name not in self.values:
            raise line.error(f"value {name} is not defined")
        return self.values[name]

    def _value(self, line: _Line) -> int:
        return self._known(line, line.take("value"))

    def _values(self, line: _Line) -> int:
        return self.ir.add_list([self._known(line, name) for name in self._names(line)])

    def _edge(self, line: _Line) -> int:
        number = line.numbered("b")
        if number not in self.blocks:
            raise line.error(f"block b{number} is not defined")
        words = [self.blocks[number]]
        if line.token == "(":
            words.extend([self._known(line, name) for name in self._names(line)])
        return self.ir.add_list(words)

    def _constant(self, line: _Line, type: int) -> int:
        if type == INT:
            return line.integer()
        if type == DOUBLE:
            return line.double()
        if type == STR:
            return self.ir.checked.ast.symbols.intern(line.string().encode())
        if type == BOOL:
            if line.skip("true"):
                return 1
            line.expect("false")
            return 0
        raise line.error(f"no constants have the type {self.ir.checked.types.type(type)}")

    def _instruction(self, inst: int, line: _Line, arms: list[_Line]) -> None:
        """Fill the row of an instruction from what follows the `=` on its line."""
        ir = self.ir
        if line.kind in ("number", "text") or line.token in ("true", "false"):
            ir.op[inst] = op.CONST_STR if ir.type[inst] == STR else op.CONST
            ir.imm[inst] = self._constant(line, ir.type[inst])
        else:
            name = line.take("word")
            if name not in self.opcodes and name not in self.immediates:
                raise line.error(f"unknown opcode {name!r}")
            opcode = op.BRANCH_CMP_IMM if name == "br_imm" else self.opcodes.get(name, op.NONE)
            self._operands(inst, opcode, name, line)
        if ir.op[inst] == op.SWITCH:
            ir.b[inst] = self._arms(line, ir.type[ir.a[inst]], arms)
        elif arms:
            raise arms[0].error("an arm outside a switch")
        line.end()

    def _operands(self, inst: int, opcode: int, name: str, line: _Line) -> None:
        ir = self.ir
        if opcode in (op.CALL, op.TAIL):
            ir.a[inst] = line.numbered("f")
            ir.b[inst] = self._values(line)
        elif opcode == op.SYS:
            path = line.take("word")
            arguments = self._values(line)
            ir.b[inst] = arguments
            ir.a[inst] = self._host(line, path, arguments, ir.type[inst])
        elif opcode == op.ALLOC:
            line.expect("(")
            line.expect("size")
            line.expect("=")
            ir.imm[inst] = line.integer()
            for token in (",", "align", "=", "8", ")"):
                line.expect(token)
        elif opcode == op.STORE:
            ir.b[inst] = self._address(inst, line)
            line.expect(",")
            ir.a[inst] = self._value(line)
        elif opcode == op.COPY:
            ir.b[inst] = self._value(line)
            line.expect(",")
            ir.a[inst] = self._value(line)
            line.expect(",")
            ir.imm[inst] = line.integer()
        elif opcode in (op.LOAD, op.ADDROF):
            ir.a[inst] = self._address(inst, line)
        elif opcode == op.LOOKUP:
            self._lookup(inst, line)
        elif opcode in (op.BRANCH_CMP, op.BRANCH_CMP_IMM):
            self._compare(inst, opcode, line)
        elif opcode in (op.RET, op.SWITCH):
            if line.kind == "value":
                ir.a[inst] = self._value(line)
        else:
            opcode = self._simple(inst, opcode, name, line)
        ir.op[inst] = opcode

    def _simple(self, inst: int, opcode: int, name: str, line: _Line) -> int:
        """Read an instruction that is nothing but its operands; return its opcode, which the operands decide."""
        ir = self.ir
        entry = op.OPS[opcode] if opcode else op.OPS[self.immediates[name]]
        if entry.a == op.VALUE:
            ir.a[inst] = self._value(line)
        if name in self.immediates:
            line.expect(",")
            if line.kind == "number":
                ir.imm[inst] = line.integer()
                return self.immediates[name]
            if opcode == op.NONE:
                raise line.error(f"{name} takes an integer on the right")
        if entry.b == op.VALUE:
            if name not in self.immediates:
                line.expect(",")
            ir.b[inst] = self._value(line)
        if entry.c == op.EDGE:
            if entry.a == op.VALUE:
                line.expect(",")
            ir.c[inst] = self._edge(line)
        if entry.d == op.EDGE:
            line.expect(",")
            ir.d[inst] = self._edge(line)
        return opcode

    def _address(self, inst: int, line: _Line) -> int:
        base = self._value(line)
        line.expect("+")
        self.ir.imm[inst] = line.integer()
        return base

    def _compare(self, inst: int, opcode: int, line: _Line) -> None:
        ir = self.ir
        kind = line.take("word")
        kinds = self.opcodes if opcode == op.BRANCH_CMP else self.immediates
        if kind not in kinds or kinds[kind] >= op.FIRST_TERMINATOR:
            raise line.error(f"{kind!r} is no comparison")
        ir.a[inst] = self._value(line)
        line.expect(",")
        if opcode == op.BRANCH_CMP:
            ir.b[inst] = self._value(line)
            ir.imm[inst] = kinds[kind]
        else:
            ir.imm[inst] = line.integer()
            ir.b[inst] = kinds[kind]
        line.expect(",")
        ir.c[inst] = self._edge(line)
        line.expect(",")
        ir.d[inst] = self._edge(line)

    def _lookup(self, inst: int, line: _Line) -> None:
        ir = self.ir
        subject = self._value(line)
        words = [0]
        line.expect("[")
        while not line.skip("]"):
            if len(words) > 1:
                line.expect(",")
            words.append(self._constant(line, ir.type[subject]))
            line.expect("->")
            words.append(self._constant(line, ir.type[inst]))
        line.expect(",")
        words[0] = self._constant(line, ir.type[inst])
        ir.a[inst] = subject
        ir.b[inst] = ir.add_list(words)

    def _arms(self, line: _Line, type: int, arms: list[_Line]) -> int:
        words = [0]
        for arm in arms:
            if words[0]:
                raise arm.error("an arm behind the default")
            if arm.skip("_"):
                arm.expect("->")
                words[0] = self._edge(arm)
            else:
                words.append(self._constant(arm, type))
                arm.expect("->")
                words.append(self._edge(arm))
            arm.end()
        if words[0] == 0:
            raise line.error("a switch without a default")
        return self.ir.add_list(words)

    def _host(self, line: _Line, path: str, arguments: int, result: int) -> int:
        """The index in `hosts` of the first function of this path that takes the arguments and gives the result."""
        ir = self.ir
        package, _dot, name = path.rpartition(".")
        if package not in self.packages:
            raise line.error(f"unknown package {package!r}")
        types = [ir.checked.types.type(ir.type[value]) for value in ir.list_at(arguments)]
        for function in self.packages[package].functions:
            if function.name == name and self._takes(function, types, ir.checked.types.type(result or VOID)):
                index = self.hosts.setdefault(id(function), len(ir.checked.hosts))
                if index == len(ir.checked.hosts):
                    ir.checked.hosts.append(function)
                return index
        raise line.error(f"no function {path} takes these arguments")

    def _takes(self, function: HostFunction, types: list[Type], result: Type) -> bool:
        if len(types) != len(function.parameters) or not (function.result.generic or function.result == result):
            return False
        for (_name, want), type in zip(function.parameters, types, strict=True):
            if not want.generic and want != type:
                return False
        return True
