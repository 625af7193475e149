"""Random well-formed IR programs, as text, in which every call ends."""

from __future__ import annotations

from random import Random

INTS = (0, 1, 2, 3, 5, 7, -1, -2, 10, 100, -(1 << 31), (1 << 31) - 1, 1 << 31, -(1 << 63), (1 << 63) - 1, 1 << 40)
DOUBLES = ("0.0", "-0.0", "1.0", "2.5", "-3.75", "1e+300", "1e-300", "inf", "nan")
TEXTS = ("", "a", "b", "c", "ab", "long text", "é")
RECORD = "Record<x: Int inner: Record<y: Int z: Double>>"
INNER = "Record<y: Int z: Double>"
SCALARS = ("Int", "Bool", "Double", "Str")

_UNARY = (
    ("INeg", "Int", "Int"),
    ("DNeg", "Double", "Double"),
    ("Cast<Int->Double>", "Int", "Double"),
    ("Cast<Double->Int>", "Double", "Int"),
    ("Cast<Int->Bool>", "Int", "Bool"),
    ("Cast<Bool->Int>", "Bool", "Int"),
)
_BINARY = (
    *[(op, "Int", "Int") for op in ("IAdd", "ISub", "IMul", "IDiv", "IMod")],
    *[(op, "Double", "Double") for op in ("DAdd", "DSub", "DMul", "DDiv")],
    *[(op, "Int", "Bool") for op in ("ILt", "ILe", "IEq", "INe")],
    *[(op, "Double", "Bool") for op in ("DLt", "DLe")],
    *[(op, "Str", "Bool") for op in ("SEq", "SNe")],
    *[(op, "Bool", "Bool") for op in ("IEq", "INe")],
)
_COMPARISONS = (
    *[(op, "Int") for op in ("ILt", "ILe", "IEq", "INe", "IEq")],
    *[(op, "Double") for op in ("DLt", "DLe")],
    *[(op, "Str") for op in ("SEq", "SNe")],
)
_HOST = (
    ("twice", ("Int",), "Int"),
    ("twice", ("Double",), "Double"),
    ("concat", ("Str", "Str"), "Str"),
    ("not", ("Bool",), "Bool"),
    ("middle", ("Int", "Int", "Int"), "Int"),
    ("log", ("Int",), ""),
    ("next", ("Int",), "Int"),
)

Env = list[tuple[str, str]]


class Function:
    """One function: its signature, and its text once it is generated."""

    def __init__(self, number: int, rank: int, parameters: list[str], result: str) -> None:
        self.number = number
        self.rank = rank
        self.parameters = parameters
        self.result = result


class Generator:
    """Writes a program. Functions call only those of lower rank, and blocks lead only to later ones."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.functions: list[Function] = []
        self.blocks: list[tuple[str, list[str]]] = []
        self.lines: list[str] = []
        self.values = 0
        self.result = ""
        self.rank = 0
        self.budget = 0

    def program(self) -> str:
        count = self.random.randint(1, 4)
        ranks = list(range(count))
        self.random.shuffle(ranks)
        for number in range(count):
            parameters = [self.random.choice(SCALARS) for _ in range(self.random.randint(0, 3))]
            result = self.random.choice((*SCALARS, "Int", ""))
            self.functions.append(Function(number + 1, ranks[number], parameters, result))
        return "\n".join([self.function(function) for function in self.functions])

    def function(self, function: Function) -> str:
        self.blocks = []
        self.values = 0
        self.result = function.result
        self.rank = function.rank
        self.budget = self.random.randint(1, 40)
        env = [(self.name(), type) for type in function.parameters]
        names = ", ".join([name for name, _ in env])
        self.start(self.block(env))
        self.body(env, 0)
        self.leave(env)
        first, *others = self.blocks
        if self.random.random() < 0.2:
            self.random.shuffle(others)
        arrow = f" -> {function.result}" if function.result else ""
        text = [f"fn f{function.number}({names}){arrow} {{"]
        for header, lines in (first, *others):
            text += [header, *lines]
        return "\n".join([*text, "}"])

    # Blocks.

    def block(self, parameters: Env) -> int:
        """A new block; it is written from `start` on."""
        typed = ", ".join([f"{name}:{type}" for name, type in parameters])
        number = len(self.blocks)
        self.blocks.append((f"b{number}({typed}):" if typed else f"b{number}:", []))
        return number

    def start(self, block: int) -> None:
        self.lines = self.blocks[block][1]

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def name(self) -> str:
        self.values += 1
        return f"%v{self.values - 1}"

    def define(self, env: Env, type: str, operation: str) -> str:
        name = self.name()
        self.emit(f"{name}:{type} = {operation}")
        env.append((name, type))
        return name

    # Values.

    def constant(self, type: str) -> str:
        if type == "Int":
            return str(self.random.choice(INTS))
        if type == "Double":
            return self.random.choice(DOUBLES)
        if type == "Bool":
            return self.random.choice(("true", "false"))
        return f"`{self.random.choice(TEXTS)}`"

    def value(self, env: Env, type: str) -> str:
        known = [name for name, known in env if known == type]
        if known and self.random.random() < 0.8:
            return self.random.choice(known[-6:])
        if type == RECORD:
            return self.record(env)
        return self.define(env, type, self.constant(type))

    def record(self, env: Env) -> str:
        parts = [self.value(env, type) for type in ("Int", "Int", "Double")]
        record = self.define(env, RECORD, "Alloc(size=24,align=8)")
        self.emit(f"Store {record}+0, {parts[0]}")
        if self.random.random() < 0.5:
            inner = self.define(env, INNER, f"AddrOf {record}+8")
            self.emit(f"Store {inner}+0, {parts[1]}")
            self.emit(f"Store {inner}+8, {parts[2]}")
        else:
            self.emit(f"Store {record}+8, {parts[1]}")
            self.emit(f"Store {record}+16, {parts[2]}")
        if self.random.random() < 0.3:
            other = self.define(env, RECORD, "Alloc(size=24,align=8)")
            self.emit(f"Copy {other}, {record}, 24")
            return other
        return record

    # Statements.

    def body(self, env: Env, depth: int) -> None:
        for _ in range(self.random.randint(0, 6)):
            if self.budget <= 0:
                return
            self.budget -= 1
            kind = self.random.random()
            if kind < 0.65 or depth > 2:
                self.simple(env)
            elif kind < 0.8:
                self.branch(env, depth)
            elif kind < 0.95:
                self.chain(env, depth)
            else:
                self.jump(env)

    def simple(self, env: Env) -> None:
        kind = self.random.random()
        if kind < 0.45:
            op, operand, result = self.random.choice(_BINARY)
            left = self.value(env, operand)
            right = self.value(env, operand)
            self.define(env, result, f"{op} {left}, {right}")
        elif kind < 0.55:
            op, operand, result = self.random.choice(_UNARY)
            self.define(env, result, f"{op} {self.value(env, operand)}")
        elif kind < 0.65:
            op = self.random.choice(("IAdd", "ISub", "IMul", "IDiv", "IMod"))
            imm = self.random.choice((0, 1, -1, 2, 3, 1000))
            self.define(env, "Int", f"{op} {self.value(env, 'Int')}, {imm}")
        elif kind < 0.75:
            record = self.value(env, RECORD)
            type, offset = self.random.choice((("Int", 0), ("Int", 8), ("Double", 16)))
            if offset and self.random.random() < 0.5:
                inner = self.define(env, INNER, f"AddrOf {record}+8")
                self.define(env, type, f"Load {inner}+{offset - 8}")
            else:
                self.define(env, type, f"Load {record}+{offset}")
        elif kind < 0.8:
            pairs = ", ".join([f"{key} -> {self.constant('Int')}" for key in (1, 2, 3, 7)])
            self.define(env, "Int", f"Lookup {self.value(env, 'Int')} [{pairs}], 0")
        else:
            self.call(env)

    def call(self, env: Env) -> None:
        callees = [function for function in self.functions if function.rank < self.rank]
        if callees and self.random.random() < 0.7:
            function = self.random.choice(callees)
            arguments = ", ".join([self.value(env, type) for type in function.parameters])
            operation = f"Call f{function.number}({arguments})"
            result = function.result
        else:
            name, types, result = self.random.choice(_HOST)
            arguments = ", ".join([self.value(env, type) for type in types])
            operation = f"Sys host.{name}({arguments})"
        if result:
            self.define(env, result, operation)
        else:
            self.emit(operation)

    def jump(self, env: Env) -> None:
        given = self.random.sample(env, min(len(env), self.random.randint(0, 2)))
        parameters = [(self.name(), type) for _, type in given]
        target = self.block(parameters)
        self.emit(f"jmp {self.edge(target, [name for name, _ in given])}")
        self.start(target)
        env += parameters

    def edge(self, target: int, arguments: list[str]) -> str:
        return f"b{target}({', '.join(arguments)})" if arguments else f"b{target}"

    def join(self, env: Env) -> Env:
        return [(self.name(), self.random.choice(SCALARS)) for _ in range(self.random.choice((0, 1, 1, 1, 2)))]

    def branch(self, env: Env, depth: int) -> None:
        yes = self.block([])
        no = self.block([])
        kind = self.random.random()
        if kind < 0.6:
            self.emit(f"br {self.value(env, 'Bool')}, b{yes}, b{no}")
        elif kind < 0.8:
            op, type = self.random.choice(_COMPARISONS)
            left = self.value(env, type)
            right = self.value(env, type)
            self.emit(f"br_cmp {op} {left}, {right}, b{yes}, b{no}")
        else:
            op = self.random.choice(("ILt", "IGt", "IEq", "INe"))
            self.emit(f"br_imm {op} {self.value(env, 'Int')}, {self.random.choice((0, 1, 7))}, b{yes}, b{no}")
        parameters = self.join(env)
        join = self.block(parameters)
        for arm in (yes, no):
            self.start(arm)
            self.arm(list(env), depth, join, parameters)
        self.start(join)
        env += parameters

    def arm(self, env: Env, depth: int, join: int, parameters: Env) -> None:
        """What an arm does, then a jump to the join, or a return."""
        if self.random.random() < 0.5:
            self.body(env, depth + 1)
        if self.random.random() < 0.15:
            self.leave(env)
        else:
            arguments = [self.value(env, type) for _, type in parameters]
            self.emit(f"jmp {self.edge(join, arguments)}")

    def chain(self, env: Env, depth: int) -> None:
        """Comparisons of one value with constants, or a switch."""
        type = self.random.choice(("Int", "Int", "Str"))
        subject = self.value(env, type)
        keys = [str(self.random.randint(0, 9)) if type == "Int" else self.constant("Str") for _ in range(6)]
        keys = keys[: self.random.randint(1, 6)]
        parameters = self.join(env)
        arms = []
        if self.random.random() < 0.3:
            self.emit(f"switch {subject}")
            keys = list(dict.fromkeys(keys))
            for key in [*keys, "_"]:
                arms.append(self.block([]))
                self.emit(f"{key} -> b{arms[-1]}")
        else:
            for key in keys:
                constant = self.define(list(env), type, key)
                pair = [subject, constant]
                self.random.shuffle(pair)
                op = ("I" if type == "Int" else "S") + ("Eq" if self.random.random() < 0.9 else "Ne")
                condition = self.define(list(env), "Bool", f"{op} {', '.join(pair)}")
                arm, after = self.block([]), self.block([])
                targets = (arm, after) if op.endswith("Eq") else (after, arm)
                self.emit(f"br {condition}, b{targets[0]}, b{targets[1]}")
                arms.append(arm)
                self.start(after)
            arms.append(after)
        join = self.block(parameters)
        constant_arms = self.random.random() < 0.6
        returning = self.random.random() < 0.3
        for arm in arms:
            self.start(arm)
            if constant_arms and returning:
                value = self.define([], self.result, self.constant(self.result)) if self.result else ""
                self.emit(f"ret {value}".strip())
            elif constant_arms:
                arguments = [self.define([], type, self.constant(type)) for _, type in parameters]
                self.emit(f"jmp {self.edge(join, arguments)}")
            else:
                self.arm(list(env), depth, join, parameters)
        self.start(join)
        env += parameters

    def leave(self, env: Env) -> None:
        callees = [function for function in self.functions if function.rank < self.rank]
        callees = [function for function in callees if function.result == self.result]
        if callees and self.random.random() < 0.3:
            function = self.random.choice(callees)
            arguments = ", ".join([self.value(env, type) for type in function.parameters])
            if self.random.random() < 0.5:
                self.emit(f"tail f{function.number}({arguments})")
                return
            if self.result:
                self.emit(f"ret {self.define(env, self.result, f'Call f{function.number}({arguments})')}")
                return
            self.emit(f"Call f{function.number}({arguments})")
        self.emit(f"ret {self.value(env, self.result)}" if self.result else "ret")
