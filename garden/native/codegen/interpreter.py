"""Interpreter: the LLVM text of a machine that executes bytecode in place. It is the same for every program.

Each opcode has one function, its *handler*, generated from the opcode table. It ends in a tail call of the next
instruction's handler, found in a table, so there is no dispatch loop. The state travels in arguments, all in processor
registers (`_STATE`); rarely used state is in the context. A handler that fits one or two cache lines starts at a line:
two indirect jumps in the same line spoil each other's prediction, which doubles the time of an instruction.

`garden.native.codegen.body` defines the operations. `garden.bytecode.selection` says which instruction is which
operation, and which jump depends on which comparison.

Jumps. The target of a jump is in its word, and the word after the jump cannot be read before this one: at five cycles
per load, a chain of jumps takes longer than the work between them. So a jump or call compares its target with `likely`,
the target of the last one, and continues from there: the processor predicts the comparison and need not wait. In a
function that calls itself the prediction is always right. Superinstructions (`garden.bytecode.superinstructions`)
remove other waits: for the targets of jumps inside the run, and for registers that are written and then read.

Frames are a stack of return addresses. The first is the address of a word that halts.

Handlers jump to separate functions to end a run or call the host; only those write the state to the context. Host
functions get the same arguments: those of the runtime through an *adapter*, which is a handler too.

A signal overwrites the table: the next instruction first calls the host, then executes. So does a host that wants to be
asked.

Compiled functions. The host may put the code `NATIVE` at the start of functions that have become machine code since.
Its handler calls the function on a stack of its own, with the same context, and returns from it.

Costs: with superinstructions and runtime, 40 KB of machine code, for which LLVM takes one or two seconds.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from garden.bytecode import ops as bytecode
from garden.bytecode.ops import REGISTER_ARGUMENTS, TABLE_COUNT, TABLE_DEFAULT, TABLE_FIRST, TABLE_KIND, TABLE_SLOTS
from garden.bytecode.selection import DIRECT, INVERSE_JUMPS, JUMPS
from garden.bytecode.superinstructions import (
    CODES,
    FIRST,
    SUPERINSTRUCTIONS,
    Run,
    Step,
    is_conditional,
    leaves,
    parse,
)
from garden.common import WORD_SIZE
from garden.ir import ir as op
from garden.native.codegen.body import Body, field
from garden.native.codegen.fusion import fusion_text
from garden.native.codegen.hosts import ADAPTER, runtime_functions
from garden.native.codegen.module import RuntimeFunctions, module_text
from garden.native.codegen.translate import call_text
from garden.native.context import ARGUMENT_WORDS, FRAMES, HOST_CALL, POLL, SPILL, SPILL_FULL, UNKNOWN
from garden.traps import DIVISION_BY_ZERO

#: What handlers are given, pointers all of them: to the present word, the registers, the table of handlers, the first
#: instruction, the next free frame, the next free word of the spill stack, where the last jump went, the constants.
_STATE: Final = ("pc", "registers", "table", "code", "frames", "spill", "likely", "constants")
_PARAMETERS: Final = ", ".join([f"ptr %{name}" for name in _STATE])

#: Bytes of a cache line.
_LINE: Final = 64

# Operands by name: their places in the word, in bytes.
_PLACES: Final = {"a": 1, "b": 2, "c": 3}
_IMM16_PLACE: Final = 2
_IMM_PLACE: Final = 4
#: The code does not change while it is executed.
_CODE: Final = "!invariant.load !2"

#: IR operations on Doubles; those that make one; those that make a Bool.
_OF_DOUBLES: Final = (op.DADD, op.DSUB, op.DMUL, op.DDIV, op.DLT, op.DLE, op.DNEG, op.DOUBLE_TO_INT)
_TO_DOUBLE: Final = (op.DADD, op.DSUB, op.DMUL, op.DDIV, op.DNEG, op.INT_TO_DOUBLE)
_TO_BOOL: Final = (*[operation for operation, jump in enumerate(JUMPS) if jump], op.INT_TO_BOOL)

#: The IR operation of an instruction. If there are two, they mean the same for words.
_OPERATIONS: Final = {code: operation for operation, code in reversed(list(enumerate(DIRECT))) if code}
#: The comparison that a jump depends on, and whether it jumps if the comparison holds.
_CONDITIONS: Final = {
    **{code: (operation, False) for operation, code in enumerate(INVERSE_JUMPS) if code},
    **{code: (operation, True) for operation, code in reversed(list(enumerate(JUMPS))) if code},
}

_TRAPS: Final = (DIVISION_BY_ZERO,)

#: Bytes of the process stack to leave for Python, which runs host functions meanwhile.
_RESERVE: Final = 1 << 20


class Handler(Body):
    """Builds the handler of a run of instructions, usually of one.

    `index` is the present instruction; `frames` and `spill` are the values that the state has by then.
    """

    __slots__ = ("_ahead", "_cold", "_results", "_runtime", "frames", "index", "run", "spill")

    def __init__(self, run: Run, runtime: RuntimeFunctions) -> None:
        super().__init__()
        self.run: Final = run
        self._runtime: Final = runtime
        self.index = 0
        self.frames = "%frames"
        self.spill = "%spill"
        # What the instruction at an index has written to its operand a: an LLVM type, and a value.
        self._results: dict[int, tuple[str, str]] = {}
        # Where a jump inside the run leads: the label, and the state there.
        self._ahead: dict[int, tuple[str, str, str]] = {}
        # Blocks that continue elsewhere: the label, the handler, the word, the state.
        self._cold: list[tuple[str, str, int, str, str]] = []
        self.place("entry")

    def text(self, name: str) -> str:
        """The LLVM function."""
        goes_on = True
        for index, step in enumerate(self.run):
            self.index = index
            self._arrive()
            self._instruction(step)
            goes_on = not leaves(step.code)
        self.index = len(self.run)
        if self._arrive() or goes_on:
            self.dispatch(self.word())
        return self.function(name)

    def function(self, name: str, linkage: str = "internal") -> str:
        """The LLVM function of what has been written."""
        for label, handler, index, frames, spill in self._cold:
            self.place(label)
            self.index, self.frames, self.spill = index, frames, spill
            self.go(handler, self.word())
        head = f"define {linkage} preserve_nonecc i64 {name}({_PARAMETERS}) noinline nounwind align {_LINE}"
        return f"{head} {{\n{self.take()}}}\n"

    def _arrive(self) -> bool:
        """Begin the block that a jump inside the run leads to, if one leads to the present instruction."""
        ahead = self._ahead.get(self.index)
        if ahead is None:
            return False
        label, self.frames, self.spill = ahead
        self.place(label)
        return True

    def _instruction(self, step: Step) -> None:
        code = step.code
        if code in _WRITERS:
            _WRITERS[code](self)
        elif is_conditional(code):
            self._conditional_jump(code, step.skip)
        else:
            self._operation(code)

    # Operands.

    def word(self, offset: int = 0) -> str:
        """A pointer to the current word, or `offset` bytes after it."""
        return self.beyond("%pc", "i8", WORD_SIZE * self.index + offset)

    def beyond(self, pointer: str, type: str, count: int | str) -> str:
        """A pointer `count` elements after another one."""
        return self.value(f"getelementptr {type}, ptr {pointer}, i64 {count}") if count else pointer

    def _code(self, type: str, offset: int) -> str:
        """The number at an offset of the present word, as an i64."""
        number = self.value(f"load {type}, ptr {self.word(offset)}, align 1, {_CODE}")
        return self.value(f"{'zext' if type == 'i8' else 'sext'} {type} {number} to i64")

    def _register(self, name: str) -> str:
        return self.beyond("%registers", "i64", self._code("i8", _PLACES[name]))

    def get(self, name: str, type: str = "i64") -> str:
        """The value of an operand."""
        back = self.run[self.index].back[_PLACES[name] - 1]
        if not back:
            return self.value(f"load {type}, ptr {self._register(name)}")
        known, value = self._results[self.index - back]
        return value if known == type else self.value(f"bitcast {known} {value} to {type}")

    def set(self, name: str, value: str, type: str = "i64") -> None:
        """Write to the register of an operand."""
        self.line(f"store {type} {value}, ptr {self._register(name)}")
        if name == "a":
            self._results[self.index] = type, value

    def immediate(self) -> str:
        return self._code("i32", _IMM_PLACE)

    def _target(self) -> str:
        return self.beyond("%code", "i64", self.immediate())

    # The ways on.

    def go(self, handler: str, pc: str, likely: str = "%likely") -> None:
        """Continue with a handler, at a word."""
        state = {"pc": pc, "frames": self.frames, "spill": self.spill, "likely": likely}
        arguments = ", ".join([f"ptr {state.get(name, f'%{name}')}" for name in _STATE])
        result = self.value(f"musttail call preserve_nonecc i64 {handler}({arguments})")
        self.line(f"ret i64 {result}")

    def dispatch(self, pc: str, likely: str = "%likely") -> None:
        """Execute the instruction at a word."""
        code = self.value(f"load i8, ptr {pc}")
        slot = self.beyond("%table", "ptr", self.value(f"zext i8 {code} to i64"))
        self.go(self.value(f"load ptr, ptr {slot}"), pc, likely)

    def _jump(self, target: str) -> None:
        same, other = self.label(), self.label()
        self.line(f"br i1 {self.value(f'icmp eq ptr {target}, %likely')}, label %{same}, label %{other}, !prof !3")
        self.place(same)
        self.dispatch("%likely")
        self.place(other)
        self.dispatch(target, target)

    def leave_if(self, condition: str, handler: str) -> None:
        """Continue with a handler, at the current word, if a condition holds, which is rare."""
        label = self.label()
        self._cold.append((label, handler, self.index, self.frames, self.spill))
        self.unless(condition, label)

    def trap_if(self, condition: str, message: int, where: str, a: str = "0", b: str = "0") -> None:
        self.leave_if(condition, f"@trap.{message}")

    # Instructions.

    def _operation(self, code: int) -> None:
        operation = _OPERATIONS[code]
        entry = bytecode.OPS[code]
        type = "double" if operation in _OF_DOUBLES else "i64"
        left = self.get("b", type)
        if entry.c == bytecode.SOURCE:
            result = self.binary(operation, left, self.get("c", type), "")
        elif entry.imm == bytecode.IMM:
            result = self.binary(operation, left, self.immediate(), "")
        else:
            result = self.unary(operation, left)
        if operation in _TO_BOOL:
            result = self.to_word("i1", result)
        self.set("a", result, "double" if operation in _TO_DOUBLE else "i64")

    def _conditional_jump(self, code: int, skip: int) -> None:
        if code in _CONDITIONS:
            operation, taken = _CONDITIONS[code]
            type = "double" if operation in _OF_DOUBLES else "i64"
            left = self.get("a", type)
            right = self._code("i16", _IMM16_PLACE) if bytecode.OPS[code].b == bytecode.IMM16 else self.get("b", type)
            condition = self.binary(operation, left, right, "")
        else:
            taken = code == bytecode.JMPT
            condition = self.unary(op.INT_TO_BOOL, self.get("a"))
        there, on = self.label(), self.label()
        ways = f"label %{there}, label %{on}" if taken else f"label %{on}, label %{there}"
        self.line(f"br i1 {condition}, {ways}")
        if skip:
            self._ahead[self.index + skip] = there, self.frames, self.spill
        else:
            self.place(there)
            self.dispatch(self._target())
        self.place(on)

    def _nop(self) -> None:
        pass

    def _halt(self) -> None:
        self.line(f"store ptr {self.frames}, ptr {field('frames_top')}")
        self.save_spill()
        self.line(f"ret i64 {self.value('load i64, ptr %registers')}")

    def _mov(self) -> None:
        self.set("a", self.get("b"))

    def _load_imm(self) -> None:
        self.set("a", self.immediate())

    def _load_const(self) -> None:
        self.set("a", self.value(f"load i64, ptr {self.beyond('%constants', 'i64', self.immediate())}"))

    def _jmp(self) -> None:
        self._jump(self._target())

    def _table_slot(self, subject: str) -> str:
        """What a switch or lookup table has for a subject."""
        table = self.beyond("%constants", "i64", self.immediate())
        kind, first, count = [
            self.value(f"load i64, ptr {self.beyond(table, 'i64', index)}")
            for index in (TABLE_KIND, TABLE_FIRST, TABLE_COUNT)
        ]
        # The table of a Str, whose kind is 1, has a slot for 8 bytes.
        shift = self.value(f"mul i64 {kind}, 3")
        slot = self.value(f"ashr i64 {self.value(f'sub i64 {subject}, {first}')}, {shift}")
        inside = self.value(f"icmp ult i64 {slot}, {count}")
        place = self.value(f"add i64 {slot}, {TABLE_SLOTS}")
        index = self.value(f"select i1 {inside}, i64 {place}, i64 {TABLE_DEFAULT}")
        return self.value(f"load i64, ptr {self.beyond(table, 'i64', index)}")

    def _switch(self) -> None:
        self.dispatch(self.beyond("%code", "i64", self._table_slot(self.get("a"))))

    def _lookup(self) -> None:
        self.set("a", self._table_slot(self.get("b")))

    def _call(self) -> None:
        end = self.value(f"load ptr, ptr {field('frames_end')}")
        self.leave_if(self.value(f"icmp eq ptr {self.frames}, {end}"), "@more_frames")
        self.line(f"store ptr {self.word(WORD_SIZE)}, ptr {self.frames}")
        self.frames = self.beyond(self.frames, "i64", 1)
        self._jump(self._target())

    def _ret(self) -> None:
        self.frames = self.beyond(self.frames, "i64", -1)
        self.dispatch(self.value(f"load ptr, ptr {self.frames}"))

    def _sys(self) -> None:
        self.go(self.value(f"load ptr, ptr {self.host()}"), self.word())

    def host(self) -> str:
        """A pointer to the entry of the host function that the present word calls: its adapter, and a word for that."""
        hosts = self.value(f"load ptr, ptr {field('hosts')}")
        return self.beyond(hosts, "[2 x i64]", self.immediate())

    def _push(self) -> None:
        count = bytecode.OPS[self.run[self.index].code].pushes
        self.push([self.get(name) for name in "abc"[:count]])

    def _pop(self) -> None:
        count = -bytecode.OPS[self.run[self.index].code].pushes
        for name, word in zip("abc", self.pop(count), strict=False):
            self.set(name, word)

    def _store_slot(self) -> None:
        self.line(f"store i64 {self.get('a')}, ptr {self.slot(self.immediate())}")

    def _load_slot(self) -> None:
        self.set("a", self.value(f"load i64, ptr {self.slot(self.immediate())}"))

    def _drop(self) -> None:
        self.drop(self.immediate())

    def _alloc(self) -> None:
        self.set("a", self.call("alloc", [self.immediate()]))

    def _store(self) -> None:
        self.line(f"store i64 {self.get('b')}, ptr {self.pointer(self.get('a'), self.immediate())}")

    def _load(self) -> None:
        self.set("a", self.value(f"load i64, ptr {self.pointer(self.get('b'), self.immediate())}"))

    def _copy(self) -> None:
        self.call("copy_words", [self.get("a"), self.get("b"), self.immediate()])

    def _addrof(self) -> None:
        self.set("a", self.value(f"add i64 {self.get('b')}, {self.immediate()}"))

    # The spill stack.

    def push(self, words: list[str]) -> None:
        """Push words, or end the run where there is no room for all of them."""
        top = self.beyond(self.spill, "i64", len(words))
        end = self.value(f"load ptr, ptr {field('spill_end')}")
        self.leave_if(self.value(f"icmp ugt ptr {top}, {end}"), "@spill_full")
        for index, word in enumerate(words):
            self.line(f"store i64 {word}, ptr {self.beyond(self.spill, 'i64', index)}")
        self.spill = top

    def pop(self, count: int) -> list[str]:
        """Pop words, the topmost first."""
        places = [self.beyond(self.spill, "i64", -index) for index in range(1, count + 1)]
        self.spill = places[-1]
        return [self.value(f"load i64, ptr {place}") for place in places]

    def slot(self, below: str) -> str:
        """A pointer to the word `below` words below the top."""
        return self.beyond(self.spill, "i64", self.value(f"sub i64 -1, {below}"))

    def drop(self, count: str) -> None:
        """Pop `count` words."""
        self.spill = self.beyond(self.spill, "i64", self.value(f"sub i64 0, {count}"))

    def save_spill(self) -> None:
        """Write the top to the context."""
        self.line(f"store ptr {self.spill}, ptr {field('spill_top')}")

    def load_spill(self) -> None:
        """Take the top from the context."""
        self.spill = self.value(f"load ptr, ptr {field('spill_top')}")

    # What leaves the handlers.

    def save(self) -> str:
        """Write the state to the context, and return the pc."""
        self.line(f"store ptr {self.frames}, ptr {field('frames_top')}")
        self.save_spill()
        here = self.value(f"ptrtoint ptr {self.word()} to i64")
        first = self.value("ptrtoint ptr %code to i64")
        where = self.value(f"ashr exact i64 {self.value(f'sub i64 {here}, {first}')}, 3")
        self.store_field("where", where)
        return where

    def call(self, name: str, arguments: list[str]) -> str:
        """Call a function of the runtime."""
        where = self.save()
        return self.value(call_text(self, self._runtime.signatures[name], arguments, [f"i64 {where}"]))

    def request(self, kind: int, a: str = "0", b: str = "0") -> str:
        """Ask the host."""
        self.save()
        return self.value(f"call i64 @garden_request(i64 {kind}, i64 {a}, i64 {b})")


#: Instructions that are neither an operation nor a conditional jump.
_WRITERS: Final[dict[int, Callable[[Handler], None]]] = {
    bytecode.NOP: Handler._nop,
    bytecode.HALT: Handler._halt,
    bytecode.MOV: Handler._mov,
    bytecode.LOAD_IMM: Handler._load_imm,
    bytecode.LOAD_CONST: Handler._load_const,
    bytecode.JMP: Handler._jmp,
    bytecode.SWITCH: Handler._switch,
    bytecode.LOOKUP: Handler._lookup,
    bytecode.CALL: Handler._call,
    bytecode.TAIL: Handler._jmp,
    bytecode.SYS: Handler._sys,
    bytecode.RET: Handler._ret,
    bytecode.PUSH: Handler._push,
    bytecode.PUSH2: Handler._push,
    bytecode.PUSH3: Handler._push,
    bytecode.POP: Handler._pop,
    bytecode.POP2: Handler._pop,
    bytecode.POP3: Handler._pop,
    bytecode.STORE_SLOT: Handler._store_slot,
    bytecode.LOAD_SLOT: Handler._load_slot,
    bytecode.ALLOC: Handler._alloc,
    bytecode.STORE: Handler._store,
    bytecode.LOAD: Handler._load,
    bytecode.ADDROF: Handler._addrof,
    bytecode.DROP: Handler._drop,
    bytecode.COPY: Handler._copy,
}


def interpreter_text(
    target: str, runtime: RuntimeFunctions, superinstructions: Sequence[str] = SUPERINSTRUCTIONS
) -> str:
    """The text of the module."""
    runs = [parse(text) for text in superinstructions]
    names = {entry.code: f"@op.{entry.name}" for entry in bytecode.OPS}
    names |= {code: f"@run.{code}" for code in range(FIRST, FIRST + len(runs))}
    names[bytecode.NATIVE] = "@native"
    handlers = [Handler((Step(entry.code),), runtime).text(names[entry.code]) for entry in bytecode.OPS]
    handlers += [Handler(run, runtime).text(names[code]) for code, run in enumerate(runs, FIRST)]
    parts = [
        # Of loads of what does not change, and of branches whose first way is nearly always taken.
        '!2 = !{}\n!3 = !{!"branch_weights", i32 1000, i32 1}\n',
        runtime.text(["alloc", "copy_words", *runtime_functions()]),
        *handlers,
        _native(runtime),
        *_ways_out(runtime),
        *_adapters(runtime),
        _table([names.get(code, "@unknown") for code in range(CODES)]),
        _ASK,
        _entry(),
        fusion_text(runs),
    ]
    return module_text(target, parts, argument_words=ARGUMENT_WORDS, interrupt=_INTERRUPT)


def _ways_out(runtime: RuntimeFunctions) -> Iterable[str]:
    """Where handlers go if they cannot continue by themselves."""
    for message in _TRAPS:
        body = Handler((), runtime)
        body.line(f"call fastcc void @garden_trap(i64 {message}, i64 {body.save()}, i64 0, i64 0)")
        body.line("unreachable")
        yield body.function(f"@trap.{message}")

    body = Handler((), runtime)
    body.request(FRAMES)
    # They may have moved.
    body.frames = body.value(f"load ptr, ptr {field('frames_top')}")
    body.dispatch("%pc")
    yield body.function("@more_frames")

    body = Handler((), runtime)
    body.request(SPILL_FULL)
    # It may have moved.
    body.load_spill()
    body.dispatch("%pc")
    yield body.function("@spill_full")

    body = Handler((), runtime)
    body.request(UNKNOWN, body.value(f"zext i8 {body.value('load i8, ptr %pc')} to i64"))
    body.line("unreachable")
    yield body.function("@unknown")

    body = Handler((), runtime)
    # Before the request, which sees a Ctrl-C until then; the next one overwrites the table again.
    body.line("call fastcc void @fill_table()")
    body.line("fence seq_cst")
    body.request(POLL)
    body.dispatch("%pc")
    yield body.function("@interrupted")


def _native(runtime: RuntimeFunctions) -> str:
    """The handler of functions that have been compiled, and what calls one of a row.

    That stores the top of the spill stack below the arguments.
    """
    body = Handler((), runtime)
    body.save()
    arguments = f"ptr %registers, ptr %spill, i64 {body.immediate()}"
    result = body.value(f"call fastcc i64 @call_native({arguments})")
    body.line(f"store i64 {result}, ptr %registers")
    body.load_spill()
    body._ret()
    return f"""\
{body.function("@native")}\
define internal fastcc i64 @call_native(ptr %registers, ptr %spill, i64 %row) noinline {{
  %table = load ptr, ptr {field("natives")}
  %entry = getelementptr [2 x i64], ptr %table, i64 %row
  %function = load ptr, ptr %entry
  %count.place = getelementptr i64, ptr %entry, i64 1
  %count = load i64, ptr %count.place
  %arguments = load ptr, ptr {field("native_arguments")}
  %many = icmp ugt i64 %count, {REGISTER_ARGUMENTS}
  %in.registers = select i1 %many, i64 {REGISTER_ARGUMENTS}, i64 %count
  %bytes = mul i64 %in.registers, {WORD_SIZE}
  call void @llvm.memcpy.p0.p0.i64(ptr %arguments, ptr %registers, i64 %bytes, i1 false)
  br label %each
each:
  %index = phi i64 [ %in.registers, %0 ], [ %following, %take ]
  %top = phi ptr [ %spill, %0 ], [ %below, %take ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %take, label %enter
take:
  %below = getelementptr i64, ptr %top, i64 -1
  %word = load i64, ptr %below
  %place = getelementptr i64, ptr %arguments, i64 %index
  store i64 %word, ptr %place
  %following = add i64 %index, 1
  br label %each
enter:
  store ptr %top, ptr {field("spill_top")}
  store atomic i64 1, ptr {field("native")} monotonic, align 8
  %limit = load i64, ptr {field("native_limit")}
  store atomic i64 %limit, ptr {field("stack_limit")} monotonic, align 8
  ; A signal that came before this has left its mark, and one that comes now moves the limit.
  fence seq_cst
  %pressed = load atomic i64, ptr {field("interrupted")} monotonic, align 8
  %calm = icmp eq i64 %pressed, 0
  br i1 %calm, label %call, label %stop
stop:
  store atomic i64 -1, ptr {field("stack_limit")} monotonic, align 8
  br label %call
call:
  %stack = load i64, ptr {field("native_stack")}
  %result = call i64 @garden_on_stack(ptr %function, i64 %stack)
  store atomic i64 0, ptr {field("native")} monotonic, align 8
  ret i64 %result
}}
"""


def _adapters(runtime: RuntimeFunctions) -> Iterable[str]:
    """Handlers that call host functions: one for each function of the runtime, and one for all that only Python has."""
    for name, more in runtime_functions().items():
        signature = runtime.signatures[name]
        body = Handler((), runtime)
        arguments = []
        for index, type in enumerate(signature.parameters[: len(signature.parameters) - more]):
            word = body.value(f"load i64, ptr {body.beyond('%registers', 'i64', index)}")
            arguments.append(body.from_word(type, word))
        if more:
            arguments.append(body.value(f"load i64, ptr {body.beyond(body.host(), 'i64', 1)}"))
        result = body.to_word(signature.result, body.call(name, arguments))
        body.line(f"store i64 {result}, ptr %registers")
        body.dispatch(body.word(WORD_SIZE))
        yield body.function(f'@"{ADAPTER}{name}"', "hidden")

    body = Handler((), runtime)
    count = body.value(f"load i8, ptr {body.word(_PLACES['a'])}")
    result = body.request(HOST_CALL, body.immediate(), body.value(f"zext i8 {count} to i64"))
    body.line(f"store i64 {result}, ptr %registers")
    # It may have taken arguments off.
    body.load_spill()
    body.dispatch(body.word(WORD_SIZE))
    yield body.function(f'@"{ADAPTER}"', "hidden")


#: A signal makes every instruction a call of `interrupted`; where a compiled function runs, it finds no stack left.
_INTERRUPT: Final = f"""\
  call void @garden_ask()
  %native = load atomic i64, ptr {field("native")} monotonic, align 8
  %running = icmp ne i64 %native, 0
  br i1 %running, label %stop, label %done
stop:
  store atomic i64 -1, ptr {field("stack_limit")} monotonic, align 8
  br label %done
done:"""
_ASK: Final = f"""\
define hidden void @garden_ask() {{
  br label %each
each:
  %index = phi i64 [ 0, %0 ], [ %following, %each ]
  %slot = getelementptr ptr, ptr @table, i64 %index
  store atomic ptr @interrupted, ptr %slot monotonic, align 8
  %following = add i64 %index, 1
  %more = icmp ult i64 %following, {CODES}
  br i1 %more, label %each, label %all
all:
  ret void
}}
"""


def _table(handlers: Sequence[str]) -> str:
    """The table of handlers. It is filled from their distances, which need no relocations."""
    first = handlers[0]
    distances = ", ".join(
        [
            f"i32 trunc (i64 sub (i64 ptrtoint (ptr {name} to i64), i64 ptrtoint (ptr {first} to i64)) to i32)"
            for name in handlers
        ]
    )
    return f"""\
@table = internal global [{CODES} x ptr] zeroinitializer, align {_LINE}
@distances = internal constant [{CODES} x i32] [{distances}], align 4
define internal fastcc void @fill_table() noinline {{
  br label %each
each:
  %index = phi i64 [ 0, %0 ], [ %following, %each ]
  %place = getelementptr i32, ptr @distances, i64 %index
  %distance = load i32, ptr %place
  %handler = getelementptr i8, ptr {first}, i32 %distance
  %slot = getelementptr ptr, ptr @table, i64 %index
  store ptr %handler, ptr %slot
  %following = add i64 %index, 1
  %more = icmp ult i64 %following, {CODES}
  br i1 %more, label %each, label %all
all:
  ret void
}}
"""


def _entry() -> str:
    """`interpret(bytes)` runs from the pc in `where` to the end, and returns the word in r0.

    What stands from `spill` to `spill_top` is on the spill stack. With `bytes`, that moves to the stack of the process,
    and is so large there, if that leaves enough of it for others.
    """
    loads = "".join(
        [
            f"  %{name} = load ptr, ptr {field(source)}\n"
            for name, source in (
                ("registers", "registers"),
                ("code", "code"),
                ("first_frame", "frames"),
                ("spill", "spill_top"),
                ("constants", "constants"),
            )
        ]
    )
    arguments = ", ".join([f"ptr {'@table' if name == 'table' else f'%{name}'}" for name in _STATE])
    return f"""\
@stop = internal constant i64 {bytecode.HALT}
define hidden i64 @interpret(i64 %bytes) {{
  call fastcc void @fill_table()
  ; A Ctrl-C that came before has left its mark, and one that comes now overwrites the table.
  fence seq_cst
  %marks = load atomic i64, ptr {field("interrupted")} monotonic, align 8
  %asked = load atomic i64, ptr {field("asked")} monotonic, align 8
  %pressed = or i64 %marks, %asked
  %own = icmp ne i64 %bytes, 0
  br i1 %own, label %look, label %start
look:
  %pointer = call i64 @llvm.read_register.i64(metadata !0)
  %limit = load i64, ptr {field("stack_limit")}
  %room = sub i64 %pointer, %limit
  %needed = add i64 %bytes, {_RESERVE}
  %enough = icmp sge i64 %room, %needed
  br i1 %enough, label %make, label %ask
ask:
  %answer = call i64 @garden_request(i64 {SPILL}, i64 0, i64 0)
  br label %start
make:
  %area = alloca i8, i64 %bytes, align 16
  %from = load ptr, ptr {field("spill")}
  %first = load i64, ptr {field("spill")}
  %top = load i64, ptr {field("spill_top")}
  %used = sub i64 %top, %first
  call void @llvm.memcpy.p0.p0.i64(ptr %area, ptr %from, i64 %used, i1 false)
  %above = getelementptr i8, ptr %area, i64 %used
  %end = getelementptr i8, ptr %area, i64 %bytes
  store ptr %area, ptr {field("spill")}
  store ptr %above, ptr {field("spill_top")}
  store ptr %end, ptr {field("spill_end")}
  br label %start
start:
{loads}\
  store ptr @stop, ptr %first_frame
  %frames = getelementptr i64, ptr %first_frame, i64 1
  %where = load i64, ptr {field("where")}
  %pc = getelementptr i64, ptr %code, i64 %where
  %likely = getelementptr i64, ptr %code, i64 0
  %opcode = load i8, ptr %pc
  %index = zext i8 %opcode to i64
  %slot = getelementptr ptr, ptr @table, i64 %index
  %first_handler = load ptr, ptr %slot
  %calm = icmp eq i64 %pressed, 0
  %handler = select i1 %calm, ptr %first_handler, ptr @interrupted
  %result = call preserve_nonecc i64 %handler({arguments})
  ret i64 %result
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
