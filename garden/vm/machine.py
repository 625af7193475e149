"""ReferenceMachine: executes `Code` where it lies. What it does is what every engine must do.

State: 64 registers, the frames (one word each, the pc to return to) and the spill stack are three areas of allocator
memory; the heap is a fourth. Registers are one block seen through two views, as Ints and as Doubles, so that neither
is ever converted. Frames grow on demand up to their limit. The spill stack is a `StackAlloc`, over 256 KiB unless the
caller says more or brings another.

A run ends with `HALT`, with a return from the outermost frame, or with an exception: a `Trap` that knows where in the
source it happened, or whatever a host function, the receiver of the output or the handler of a signal has raised.
KeyboardInterrupt, which Ctrl-C is, becomes a trap as well. The machine can run again after all of them.

Code is trusted to be well formed (see `garden.bytecode.verifier`): what is not raises IndexError or ValueError, or
traps, but reaches no memory outside the machine.

Costs: some 0.3 us an instruction in interpreted Python, and a fifth of that compiled. The loop finds an opcode by
comparisons, as a binary tree over the groups of the opcode table and in a row, frequent ones first, inside a group.
Sums wrap by themselves where this is compiled; where it is interpreted, one that overflows is noticed by the register
it does not fit into, so the common case pays nothing.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.closing import Closing
from allocators.collections import Vec
from allocators.errors import caused_by
from garden.bytecode import ops as bytecode
from garden.bytecode.code import Code
from garden.bytecode.ops import (
    REGISTER_ARGUMENTS,
    REGISTERS,
    TABLE_COUNT,
    TABLE_DEFAULT,
    TABLE_FIRST,
    TABLE_KIND,
    TABLE_SLOTS,
)
from garden.errors import GardenError, Trap
from garden.interrupts import poll
from garden.output import Output
from garden.run_options import RunOptions
from garden.semantics import ddiv, double_to_int, iadd, idiv, imod, imul, ineg, isub
from garden.traps import INTERRUPTED, TOO_MANY_CALLS, trap
from garden.vm.backtrace import function_names
from garden.vm.heap import DEFAULT_LIMIT, Heap
from garden.vm.runtime import Runtime
from garden.vm.spill import Spill, spill_overflow

A = TypeVar("A", bound=Allocator, covariant=True)

DEFAULTS: Final = RunOptions()

_FIRST_FRAMES: Final = 1 << 10
#: Instructions between two looks for Ctrl-C.
_POLL_INTERVAL: Final = 1 << 16


def frames_to_add(depth: int, limit: int) -> int:
    """How many frames to make room for where `depth` are in use and there are no more. `Trap` T0002 at the limit."""
    if depth >= limit:
        raise trap(TOO_MANY_CALLS, depth)
    return min(max(depth, _FIRST_FRAMES), limit - depth)


@mypyc_attr(native_class=True)
class ReferenceMachine(Closing, Generic[A]):
    """Runs one program, as often as one likes.

    Of the options, it obeys those of the run; which engine this is has been decided.
    """

    __slots__ = (
        "_backtrace",
        "_depth",
        "_frame_limit",
        "_frames",
        "_pc",
        "_registers",
        "_running",
        "_spill",
        "_stack",
        "allocator",
        "code",
        "heap",
        "runtime",
    )

    def __init__(
        self,
        code: Code[Allocator],
        allocator: A,
        options: RunOptions = DEFAULTS,
    ) -> None:
        self.code: Final = code
        self.allocator: Final[A] = allocator
        self._backtrace: Final[bool] = options.backtrace
        self._frame_limit: Final[int] = options.frame_limit
        self._running = False
        # Where the last run has ended.
        self._pc: i64 = 0
        self._depth: i64 = 0
        self._spill: Final = Spill(allocator, options)
        self._registers: Vec[A] = Vec(allocator, "q")
        self._frames: Vec[A] = Vec(allocator, "q")
        limit = DEFAULT_LIMIT if options.heap_limit is None else options.heap_limit
        self.heap: Final[Heap[A]] = Heap(allocator, code.strings.view, limit=limit)
        self.runtime: Final[Runtime[A]] = Runtime(self.heap, code.checked.hosts, Output(options.write))
        try:
            self._registers.fill(0, REGISTERS)
            self._stack = self._spill.make()
        except BaseException:
            self.close()
            raise

    @property
    def registers(self) -> memoryview:
        """All registers, format 'q', as they are now."""
        return self._registers.view

    def run(self) -> int:
        """Run the program from its start, in a fresh state, and return the word of its value (r0).

        Raises `Trap`, or what a host function raises.
        """
        self._prepare()
        try:
            self._running = True
            return self._run(self.code.entry, True)
        finally:
            self._running = False

    def call(self, function: int, words: list[int]) -> int:
        """Run one function, by its row in `Code.functions`, on argument words, and return the word of its result.

        The heap stays as it is, so that words of strings and records can be passed: `reset` first, before making
        them, for a fresh one. TypeError where the number of words is not that of the parameters.
        """
        _, first, _, parameters = self.code.functions[function]
        if len(words) != parameters:
            raise TypeError(f"the function takes {parameters} arguments, not {len(words)}")
        self._prepare()
        try:
            self._running = True
            self._reset_stacks()
            for index in range(min(len(words), REGISTER_ARGUMENTS)):
                self._registers.data[index] = words[index]
            if len(words) > REGISTER_ARGUMENTS:
                self._push_arguments(first, words)
            return self._run(first, False)
        finally:
            self._running = False

    def _prepare(self) -> None:
        """Begin the output of a run.

        A signal handler may raise whenever a function returns, so the caller sets `_running` inside its `try`.
        """
        if self._running:
            raise GardenError("the machine is running already")
        self.runtime.output.begin()

    def _push_arguments(self, pc: int, words: list[int]) -> None:
        self._pc = pc
        try:
            self._stack.push_all(words[: REGISTER_ARGUMENTS - 1 : -1])
        except MemoryError as error:
            raise caused_by(self._located(spill_overflow(error)), error)

    def reset(self) -> None:
        """Forget everything of former runs: the heap, the stacks, output that has not been written."""
        self.runtime.output.discard()
        self._reset_stacks()
        self.heap.reset()

    def _reset_stacks(self) -> None:
        self._registers.data[:] = _ZERO_REGISTERS
        self._depth = 0
        self._stack.reset()

    def _run(self, pc: int, fresh: bool) -> int:
        """Execute from `pc`; whatever happens, output that was written before it comes out before it."""
        self._pc = pc
        try:
            try:
                if fresh:
                    self.reset()
                self._execute(pc)
            finally:
                self.runtime.output.flush()
        except Trap as raised:
            raise self._located(raised)
        except KeyboardInterrupt:
            raise caused_by(self._located(trap(INTERRUPTED)), None)
        result: int = self._registers.data[0]
        return result

    def _located(self, raised: Trap) -> Trap:
        """The trap with what the machine knows of where it happened."""
        if raised.offset < 0 and 0 <= self._pc < len(self.code.positions):
            raised.offset = self.code.positions[self._pc]
        if self._backtrace and not raised.backtrace:
            raised.backtrace = self.backtrace()
        return raised

    def backtrace(self) -> tuple[str, ...]:
        """Names of the functions that were active when the last run ended, the entry first."""
        # A frame returns after its call.
        pcs = [pc - 1 for pc in self._frames.data[: self._depth]]
        pcs.append(self._pc)
        return function_names(self.code, pcs)

    def _more_frames(self, depth: int) -> memoryview:
        """Room for another frame, and the view of all of them."""
        self._frames.fill(0, frames_to_add(depth, self._frame_limit))
        return self._frames.data

    def _execute(self, start: int) -> None:
        """Execute from a pc to the end of the run. `_pc` and `_depth` then tell where that was."""
        code = self.code
        heap = self.heap
        spill = self._stack
        constants: memoryview[int] = code.constants.data
        words: memoryview[int] = code.words.view
        regs: memoryview[int] = self._registers.data
        doubles: memoryview[float] = regs.cast("B").cast("d")
        frames: memoryview[int] = self._frames.data
        frame_count: i64 = len(self._frames)
        depth: i64 = 0
        pc: i64 = start
        op: i64 = bytecode.NOP
        left: i64 = 0
        try:
            while True:
                for _step in range(_POLL_INTERVAL):
                    word: i64 = words[pc]
                    pc += 1
                    op = word & 0xFF
                    if op < bytecode.JMP:
                        if op < bytecode.IADD_IMM:
                            if op < bytecode.IADD:
                                if op == bytecode.MOV:
                                    regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF]
                                elif op == bytecode.LOAD_IMM:
                                    regs[word >> 8 & 0xFF] = word >> 32
                                elif op == bytecode.LOAD_CONST:
                                    regs[word >> 8 & 0xFF] = constants[word >> 32]
                                elif op == bytecode.HALT:
                                    return
                            elif op == bytecode.IADD:
                                left = regs[word >> 16 & 0xFF]
                                try:
                                    regs[word >> 8 & 0xFF] = left + regs[word >> 24 & 0xFF]
                                except ValueError:
                                    regs[word >> 8 & 0xFF] = iadd(left, regs[word >> 24 & 0xFF])
                            elif op == bytecode.ISUB:
                                left = regs[word >> 16 & 0xFF]
                                try:
                                    regs[word >> 8 & 0xFF] = left - regs[word >> 24 & 0xFF]
                                except ValueError:
                                    regs[word >> 8 & 0xFF] = isub(left, regs[word >> 24 & 0xFF])
                            elif op == bytecode.IMUL:
                                left = regs[word >> 16 & 0xFF]
                                try:
                                    regs[word >> 8 & 0xFF] = left * regs[word >> 24 & 0xFF]
                                except ValueError:
                                    regs[word >> 8 & 0xFF] = imul(left, regs[word >> 24 & 0xFF])
                            elif op == bytecode.ILT:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] < regs[word >> 24 & 0xFF]
                            elif op == bytecode.IEQ:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] == regs[word >> 24 & 0xFF]
                            elif op == bytecode.IDIV:
                                regs[word >> 8 & 0xFF] = idiv(regs[word >> 16 & 0xFF], regs[word >> 24 & 0xFF])
                            elif op == bytecode.IMOD:
                                regs[word >> 8 & 0xFF] = imod(regs[word >> 16 & 0xFF], regs[word >> 24 & 0xFF])
                            elif op == bytecode.ILE:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] <= regs[word >> 24 & 0xFF]
                            elif op == bytecode.INE:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] != regs[word >> 24 & 0xFF]
                            elif op == bytecode.INEG:
                                regs[word >> 8 & 0xFF] = ineg(regs[word >> 16 & 0xFF])
                        elif op < bytecode.DADD:
                            if op == bytecode.IADD_IMM:
                                left = regs[word >> 16 & 0xFF]
                                try:
                                    regs[word >> 8 & 0xFF] = left + (word >> 32)
                                except ValueError:
                                    regs[word >> 8 & 0xFF] = iadd(left, word >> 32)
                            elif op == bytecode.ISUB_IMM:
                                left = regs[word >> 16 & 0xFF]
                                try:
                                    regs[word >> 8 & 0xFF] = left - (word >> 32)
                                except ValueError:
                                    regs[word >> 8 & 0xFF] = isub(left, word >> 32)
                            elif op == bytecode.IMUL_IMM:
                                left = regs[word >> 16 & 0xFF]
                                try:
                                    regs[word >> 8 & 0xFF] = left * (word >> 32)
                                except ValueError:
                                    regs[word >> 8 & 0xFF] = imul(left, word >> 32)
                            elif op == bytecode.ILT_IMM:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] < word >> 32
                            elif op == bytecode.IEQ_IMM:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] == word >> 32
                            elif op == bytecode.IMOD_IMM:
                                regs[word >> 8 & 0xFF] = imod(regs[word >> 16 & 0xFF], word >> 32)
                            elif op == bytecode.IDIV_IMM:
                                regs[word >> 8 & 0xFF] = idiv(regs[word >> 16 & 0xFF], word >> 32)
                            elif op == bytecode.IGT_IMM:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] > word >> 32
                            elif op == bytecode.INE_IMM:
                                regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] != word >> 32
                        elif op == bytecode.DMUL:
                            doubles[word >> 8 & 0xFF] = doubles[word >> 16 & 0xFF] * doubles[word >> 24 & 0xFF]
                        elif op == bytecode.DADD:
                            doubles[word >> 8 & 0xFF] = doubles[word >> 16 & 0xFF] + doubles[word >> 24 & 0xFF]
                        elif op == bytecode.DSUB:
                            doubles[word >> 8 & 0xFF] = doubles[word >> 16 & 0xFF] - doubles[word >> 24 & 0xFF]
                        elif op == bytecode.DDIV:
                            doubles[word >> 8 & 0xFF] = ddiv(doubles[word >> 16 & 0xFF], doubles[word >> 24 & 0xFF])
                        elif op == bytecode.DLT:
                            regs[word >> 8 & 0xFF] = doubles[word >> 16 & 0xFF] < doubles[word >> 24 & 0xFF]
                        elif op == bytecode.DLE:
                            regs[word >> 8 & 0xFF] = doubles[word >> 16 & 0xFF] <= doubles[word >> 24 & 0xFF]
                        elif op == bytecode.CAST_TO_DOUBLE:
                            doubles[word >> 8 & 0xFF] = float(regs[word >> 16 & 0xFF])
                        elif op == bytecode.CAST_TO_INT:
                            regs[word >> 8 & 0xFF] = double_to_int(doubles[word >> 16 & 0xFF])
                        elif op == bytecode.CAST_TO_BOOL:
                            regs[word >> 8 & 0xFF] = regs[word >> 16 & 0xFF] != 0
                        elif op == bytecode.DNEG:
                            doubles[word >> 8 & 0xFF] = -doubles[word >> 16 & 0xFF]
                    elif op < bytecode.CALL:
                        if op < bytecode.JMPEQ_IMM:
                            if op == bytecode.JMP:
                                pc = word >> 32
                            elif op == bytecode.JMPF:
                                if not regs[word >> 8 & 0xFF]:
                                    pc = word >> 32
                            elif op == bytecode.JMPT:
                                if regs[word >> 8 & 0xFF]:
                                    pc = word >> 32
                            elif op == bytecode.JMPLT:
                                if regs[word >> 8 & 0xFF] < regs[word >> 16 & 0xFF]:
                                    pc = word >> 32
                            elif op == bytecode.JMPLE:
                                if regs[word >> 8 & 0xFF] <= regs[word >> 16 & 0xFF]:
                                    pc = word >> 32
                            elif op == bytecode.JMPEQ:
                                if regs[word >> 8 & 0xFF] == regs[word >> 16 & 0xFF]:
                                    pc = word >> 32
                            elif op == bytecode.JMPNE and regs[word >> 8 & 0xFF] != regs[word >> 16 & 0xFF]:
                                pc = word >> 32
                        elif op < bytecode.JMPDLT:
                            # imm16 is a number from -32768 to 32767.
                            if op == bytecode.JMPEQ_IMM:
                                if regs[word >> 8 & 0xFF] == ((word >> 16 & 0xFFFF) ^ 0x8000) - 0x8000:
                                    pc = word >> 32
                            elif op == bytecode.JMPNE_IMM:
                                if regs[word >> 8 & 0xFF] != ((word >> 16 & 0xFFFF) ^ 0x8000) - 0x8000:
                                    pc = word >> 32
                            elif op == bytecode.JMPLT_IMM:
                                if regs[word >> 8 & 0xFF] < ((word >> 16 & 0xFFFF) ^ 0x8000) - 0x8000:
                                    pc = word >> 32
                            elif op == bytecode.JMPGE_IMM:
                                if regs[word >> 8 & 0xFF] >= ((word >> 16 & 0xFFFF) ^ 0x8000) - 0x8000:
                                    pc = word >> 32
                            elif op == bytecode.JMPGT_IMM:
                                if regs[word >> 8 & 0xFF] > ((word >> 16 & 0xFFFF) ^ 0x8000) - 0x8000:
                                    pc = word >> 32
                            elif (
                                op == bytecode.JMPLE_IMM
                                and regs[word >> 8 & 0xFF] <= ((word >> 16 & 0xFFFF) ^ 0x8000) - 0x8000
                            ):
                                pc = word >> 32
                        elif op == bytecode.JMPDLT:
                            if doubles[word >> 8 & 0xFF] < doubles[word >> 16 & 0xFF]:
                                pc = word >> 32
                        elif op == bytecode.JMPDNLT:
                            if not doubles[word >> 8 & 0xFF] < doubles[word >> 16 & 0xFF]:
                                pc = word >> 32
                        elif op == bytecode.JMPDLE:
                            if doubles[word >> 8 & 0xFF] <= doubles[word >> 16 & 0xFF]:
                                pc = word >> 32
                        elif op == bytecode.JMPDNLE:
                            if not doubles[word >> 8 & 0xFF] <= doubles[word >> 16 & 0xFF]:
                                pc = word >> 32
                        elif op == bytecode.SWITCH:
                            pc = _table_slot(constants, word >> 32, regs[word >> 8 & 0xFF])
                        elif op == bytecode.LOOKUP:
                            regs[word >> 8 & 0xFF] = _table_slot(constants, word >> 32, regs[word >> 16 & 0xFF])
                    elif op < bytecode.PUSH:
                        if op == bytecode.CALL:
                            if depth == frame_count:
                                frames = self._more_frames(depth)
                                frame_count = len(self._frames)
                            frames[depth] = pc
                            depth += 1
                            pc = word >> 32
                        elif op == bytecode.RET:
                            if depth == 0:
                                return
                            depth -= 1
                            pc = frames[depth]
                        elif op == bytecode.TAIL:
                            pc = word >> 32
                        elif op == bytecode.SYS:
                            regs[0] = self._call_host(word >> 32, word >> 8 & 0xFF)
                    elif op == bytecode.PUSH:
                        spill.push(regs[word >> 8 & 0xFF])
                    elif op == bytecode.POP:
                        regs[word >> 8 & 0xFF] = spill.pop()
                    elif op == bytecode.PUSH2:
                        spill.push(regs[word >> 8 & 0xFF])
                        spill.push(regs[word >> 16 & 0xFF])
                    elif op == bytecode.POP2:
                        regs[word >> 8 & 0xFF] = spill.pop()
                        regs[word >> 16 & 0xFF] = spill.pop()
                    elif op == bytecode.PUSH3:
                        spill.push(regs[word >> 8 & 0xFF])
                        spill.push(regs[word >> 16 & 0xFF])
                        spill.push(regs[word >> 24 & 0xFF])
                    elif op == bytecode.POP3:
                        regs[word >> 8 & 0xFF] = spill.pop()
                        regs[word >> 16 & 0xFF] = spill.pop()
                        regs[word >> 24 & 0xFF] = spill.pop()
                    elif op == bytecode.LOAD:
                        regs[word >> 8 & 0xFF] = heap.load(regs[word >> 16 & 0xFF] + (word >> 32))
                    elif op == bytecode.STORE:
                        heap.store(regs[word >> 8 & 0xFF] + (word >> 32), regs[word >> 16 & 0xFF])
                    elif op == bytecode.ADDROF:
                        regs[word >> 8 & 0xFF] = iadd(regs[word >> 16 & 0xFF], word >> 32)
                    elif op == bytecode.ALLOC:
                        regs[word >> 8 & 0xFF] = heap.alloc(word >> 32)
                    elif op == bytecode.LOAD_SLOT:
                        regs[word >> 8 & 0xFF] = spill.peek(word >> 32)
                    elif op == bytecode.STORE_SLOT:
                        spill.poke(word >> 32, regs[word >> 8 & 0xFF])
                    elif op == bytecode.DROP:
                        spill.pop_all(word >> 32)
                    elif op == bytecode.COPY:
                        heap.copy(regs[word >> 8 & 0xFF], regs[word >> 16 & 0xFF], word >> 32)
                    else:
                        raise ValueError(f"no opcode has the number {op}")
                # Compiled code never looks for signals; entering interpreted code does.
                op = bytecode.NOP
                poll()
        except MemoryError as error:
            # Of a host function, or of the handler of a signal, it is what it is.
            if op in (bytecode.SYS, bytecode.NOP):
                raise
            raise caused_by(spill_overflow(error), error)
        except KeyboardInterrupt:
            # It comes in a host function, or between two instructions, where the next one is as good a place.
            if op != bytecode.SYS:
                pc += 1
            raise
        finally:
            self._pc = pc - 1
            self._depth = depth
            # An exception keeps this frame, and must not keep the memory with it.
            doubles.release()
            words.release()

    def _call_host(self, index: int, count: int) -> int:
        """The word of a host function's result on the words in r0 and up, and on the spill stack behind those."""
        words: list[int] = self._registers.data[: min(count, REGISTER_ARGUMENTS)].tolist()
        if count > REGISTER_ARGUMENTS:
            words.extend(self._stack.pop_all(count - REGISTER_ARGUMENTS))
        return self.runtime.call(index, words)

    def close(self) -> None:
        """Give all memory back; closing twice is harmless. The code, and a spill stack of the caller, stay open."""
        self.heap.close()
        self._frames.close()
        self._registers.close()
        self._spill.close()


_ZERO_REGISTERS: Final = memoryview(bytes(8 * REGISTERS)).cast("q")


def _table_slot(constants: memoryview[int], table: int, subject: int) -> int:
    """What a switch or lookup table has for a subject."""
    slot = subject - constants[table + TABLE_FIRST]
    if constants[table + TABLE_KIND]:
        slot >>= 3
    if 0 <= slot < constants[table + TABLE_COUNT]:
        return constants[table + TABLE_SLOTS + slot]
    return constants[table + TABLE_DEFAULT]
