"""InterpreterMachine: runs bytecode in machine code, as the reference engine (`garden.vm.machine`) does in Python.

It executes the words where the emitter has put them. While it is open, those that begin a superinstruction have its
code in place of their opcode. Closing takes that back; until then no other engine can run the code.

The spill stack is a `StackAlloc` of the caller, or else lies on the stack of the process, as long as a run takes: on
memory that is warm already, and that nobody has to allocate. Where that stack has no room, and where that becomes too
small for what is wanted, it is a block of the allocator.

Frames are addresses to return to. They grow on demand up to their limit, as those of the reference engine.

Costs: beside those of `NativeMachine`, 10 ns a word of code, once.
"""
# Not compiled: its base class is not.

from __future__ import annotations

import ctypes
import sys
from typing import Final

from allocators import Allocator, AllocError, Layout
from allocators.collections import Vec
from allocators.stack import StackAlloc
from garden.bytecode.code import Code
from garden.bytecode.ops import REGISTER_ARGUMENTS, REGISTERS
from garden.common import WORD_SIZE
from garden.errors import Trap
from garden.native.cache import Cache
from garden.native.codegen.hosts import ADAPTER, native_call
from garden.native.context import FIELD, FRAMES, SPILL, SPILL_FULL, UNKNOWN
from garden.native.image.load import Image
from garden.native.prebuilt import prebuilt
from garden.native.run.machine import NativeMachine, in_main_thread, words_at
from garden.run_options import RunOptions
from garden.vm.backtrace import function_names
from garden.vm.machine import DEFAULTS, frames_to_add
from garden.vm.spill import Spill, spill_overflow

#: Bytes of the spill stack on the stack of the process at most.
_MOST_ON_STACK: Final = 1 << 18
#: Bytes of libc's `pthread_attr_t` at most.
_ATTRIBUTES_BYTES: Final = 256
_FUNCTION_OF_CODE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

_STACK_LIMIT: Final = FIELD["stack_limit"]
_WHERE: Final = FIELD["where"]
_REGISTERS: Final = FIELD["registers"]
_CODE: Final = FIELD["code"]
_CONSTANTS: Final = FIELD["constants"]
_HOSTS: Final = FIELD["hosts"]
_FRAMES: Final = FIELD["frames"]
_FRAMES_TOP: Final = FIELD["frames_top"]
_FRAMES_END: Final = FIELD["frames_end"]
_SPILL: Final = FIELD["spill"]
_SPILL_TOP: Final = FIELD["spill_top"]
_SPILL_END: Final = FIELD["spill_end"]


def interpreter_object(target: str, cache: Cache | None = None) -> bytes:
    """The object that all machines for a target load, whatever their programs are.

    Raises ImportError where it has to be made, and llvmlite is not installed.
    """
    return prebuilt("interpreter", target, cache, lambda: _make_object(target, cache))


def _make_object(target: str, cache: Cache | None) -> bytes:
    from garden.native.codegen.interpreter import interpreter_text
    from garden.native.codegen.module import RuntimeFunctions
    from garden.native.target import compile_text

    return compile_text(interpreter_text(target, RuntimeFunctions(target, cache)), target)


class InterpreterMachine(NativeMachine):
    """Runs one program, as often as one likes, as a `garden.vm.machine.ReferenceMachine` with the same options does.

    `image` is that of the interpreter, and becomes the machine's, which closes it.
    """

    def __init__(
        self,
        code: Code[Allocator],
        image: Image,
        allocator: Allocator,
        options: RunOptions = DEFAULTS,
    ) -> None:
        self.code: Final = code
        self.allocator: Final = allocator
        frame_limit = options.frame_limit
        self._frame_limit: Final = frame_limit
        # Where the last run has ended.
        self._pc = -1
        self._spill: Final = Spill(allocator, options)
        self._registers: Final[Vec[Allocator]] = Vec(allocator, "q")
        # The first one is not a call, but the end.
        self._frames: Final[Vec[Allocator]] = Vec(allocator, "q")
        self._host_table: Final[Vec[Allocator]] = Vec(allocator, "q")
        # Arguments that start on the spill stack, where that is on the stack of the process.
        self._pushed: Final[Vec[Allocator]] = Vec(allocator, "q")
        self._interpret: Final = image.address("interpret")
        self._unfuse: Final = _FUNCTION_OF_CODE(image.address("unfuse"))
        self._main_stack = 0
        self._open = True
        try:
            super().__init__(image, lambda: allocator, code.strings.view, code.checked.hosts, options)
        except BaseException:
            image.close()
            raise
        try:
            self._registers.fill(0, REGISTERS)
            self._frames.fill(0, 1 + (frames_to_add(0, frame_limit) if frame_limit > 0 else 0))
            for function in code.checked.hosts:
                native = native_call(function)
                name, more = ("", ()) if native is None else native
                self._host_table.extend([image.address(ADAPTER + name), *more, 0][:2])
        except BaseException:
            self.close()
            raise
        context = self._context
        context[_CODE] = code.words.address
        context[_CONSTANTS] = code.constants.address
        context[_HOSTS] = self._host_table.address
        context[_REGISTERS] = self._registers.address
        _FUNCTION_OF_CODE(image.address("fuse"))(code.words.address, len(code.words))

    @property
    def registers(self) -> memoryview:
        """All registers, format 'q', as they are now."""
        return self._registers.view

    def run(self) -> int:
        """Run the program from its start, in a fresh state, and return the word of its value (r0).

        Raises `Trap`, or what a host function raises.
        """
        self._require_idle()
        entry = self.code.entry
        try:
            self.reset()
        except Trap as error:
            self._locate(error, entry)
            raise
        return self._start(entry)

    def call(self, function: int, words: list[int]) -> int:
        """Run one function, by its row in `Code.functions`, on argument words, and return the word of its result.

        The heap stays as it is, as for `ReferenceMachine.call`. TypeError where the number of words is not that of the
        parameters.
        """
        _, first, _, parameters = self.code.functions[function]
        if len(words) != parameters:
            raise TypeError(f"the function takes {parameters} arguments, not {len(words)}")
        self._require_idle()
        self._reset_stacks()
        registers = self._registers.data
        for index in range(min(parameters, REGISTER_ARGUMENTS)):
            registers[index] = words[index]
        if parameters > REGISTER_ARGUMENTS:
            try:
                self._push_arguments(words[: REGISTER_ARGUMENTS - 1 : -1])
            except MemoryError as error:
                overflow = spill_overflow(error)
                self._locate(overflow, first)
                raise overflow from error
        return self._start(first)

    def reset(self) -> None:
        """Forget everything of former runs: the heap, the stacks, output that has not been written."""
        self._reset_stacks()
        super().reset()

    def _reset_stacks(self) -> None:
        self._registers.data[:] = _ZERO_REGISTERS
        self._pushed.clear()
        if self._spill.stack is not None:
            self._spill.stack.reset()

    def _push_arguments(self, words: list[int]) -> None:
        """Push words to the spill stack, or to what will be the beginning of it."""
        if self._spill.stack is not None:
            self._spill.stack.push_all(words)
            return
        size = WORD_SIZE * len(words)
        if size > self._spill.layout.size:
            raise self._no_room(size, 0)
        self._pushed.extend(words)

    def _no_room(self, size: int, in_use: int) -> AllocError:
        return AllocError("stack", Layout(size, WORD_SIZE), limit=self._spill.layout.size, in_use=in_use)

    def _start(self, pc: int) -> int:
        """Execute from a pc to the end of the run."""
        context = self._context
        context[_WHERE] = pc
        self._set_frames(0)
        spill = self._spill.stack
        if spill is None:
            context[_SPILL] = self._pushed.address
            context[_SPILL_TOP] = self._pushed.address + WORD_SIZE * len(self._pushed)
            context[_STACK_LIMIT] = self._lowest_stack()
            on_stack = min(self._spill.layout.size, _MOST_ON_STACK)
        else:
            self._set_spill(spill)
            on_stack = 0
        self._pc = pc
        try:
            result = self._run(self._interpret, 0, on_stack)
            self._pc = -1
            return result
        finally:
            spill = self._spill.stack
            if spill is not None:
                spill.resume(context[_SPILL_TOP])

    def _set_frames(self, depth: int) -> None:
        context = self._context
        address = self._frames.address
        context[_FRAMES] = address
        context[_FRAMES_TOP] = address + WORD_SIZE * (1 + depth)
        context[_FRAMES_END] = address + WORD_SIZE * len(self._frames)

    def _set_spill(self, spill: StackAlloc) -> None:
        context = self._context
        context[_SPILL] = context[_SPILL_TOP] = spill.cursor
        context[_SPILL_END] = spill.end

    def _depth(self) -> int:
        """How many calls are active."""
        return max(0, (self._context[_FRAMES_TOP] - self._context[_FRAMES]) // WORD_SIZE - 1)

    def _lowest_stack(self) -> int:
        """The lowest address of the stack of this thread."""
        # It takes long only for the main thread, which is always the same.
        if not in_main_thread():
            return _lowest_stack()
        if not self._main_stack:
            self._main_stack = _lowest_stack()
        return self._main_stack

    def _locate(self, error: Trap, where: int) -> None:
        self._pc = where
        super()._locate(error, where)

    def _offset(self, where: int) -> int:
        positions = self.code.positions
        return positions[where] if 0 <= where < len(positions) else -1

    def backtrace(self) -> tuple[str, ...]:
        """Names of the functions that were active when the last run ended, the entry first."""
        return function_names(self.code, [*self._return_pcs(), self._pc])

    def _return_pcs(self) -> list[int]:
        """The pcs of the calls that are active."""
        start = self.code.words.address
        # A frame returns after its call.
        return [(address - start) // WORD_SIZE - 1 for address in self._frames.data[1 : 1 + self._depth()]]

    def _host_arguments(self, count: int) -> list[int]:
        words: list[int] = self._registers.data[: min(count, REGISTER_ARGUMENTS)].tolist()
        beyond = count - REGISTER_ARGUMENTS
        if beyond > 0:
            # The first one is on top.
            top = self._context[_SPILL_TOP] - WORD_SIZE * beyond
            words.extend(words_at(top, beyond)[::-1])
            self._context[_SPILL_TOP] = top
        return words

    def _serve_more(self, kind: int, a: int, b: int) -> int:
        if kind == UNKNOWN:
            raise ValueError(f"no opcode has the number {a}")
        try:
            if kind == FRAMES:
                depth = self._depth()
                self._frames.fill(0, frames_to_add(depth, self._frame_limit))
                self._set_frames(depth)
            elif kind == SPILL:
                spill = self._spill.make()
                spill.push_all(self._pushed.view.tolist())
                self._set_spill(spill)
            elif kind == SPILL_FULL:
                self._move_spill()
            else:
                return super()._serve_more(kind, a, b)
        except MemoryError as error:
            raise spill_overflow(error) from error
        return 0

    def _move_spill(self) -> None:
        """Continue with a larger spill stack elsewhere, or raise `AllocError` where the limit has been reached."""
        context = self._context
        start, end = context[_SPILL], context[_SPILL_END]
        if self._spill.stack is not None or end - start >= self._spill.layout.size:
            # Of a group of words, the first ones are pushed.
            context[_SPILL_TOP] = end
            raise AllocError("stack", Layout(WORD_SIZE, WORD_SIZE), limit=end - start, in_use=end - start)
        used = (context[_SPILL_TOP] - start) // WORD_SIZE
        spill = self._spill.make()
        words = words_at(start, used)
        spill.push_all(words.tolist())
        context[_SPILL] = spill.cursor - WORD_SIZE * used
        context[_SPILL_TOP] = spill.cursor
        context[_SPILL_END] = spill.end

    def close(self) -> None:
        """Give all memory back; closing twice is harmless. The code, and a spill stack of the caller, stay open."""
        if self._open:
            self._open = False
            if len(self.code.words):
                self._unfuse(self.code.words.address, len(self.code.words))
        try:
            self._pushed.close()
            self._host_table.close()
            self._frames.close()
            self._registers.close()
        finally:
            try:
                super().close()
            finally:
                self._spill.close()


_ZERO_REGISTERS: Final = memoryview(bytes(WORD_SIZE * REGISTERS)).cast("q")


def _lowest_stack() -> int:
    """The lowest address of the stack of this thread, or one above all stacks where that is not known."""
    libc = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    libc.pthread_self.restype = ctypes.c_void_p
    if libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attributes) != 0:
        return sys.maxsize
    address = ctypes.c_void_p()
    size = ctypes.c_size_t()
    libc.pthread_attr_getstack(attributes, ctypes.byref(address), ctypes.byref(size))
    libc.pthread_attr_destroy(attributes)
    return address.value or sys.maxsize
