"""TieredMachine: runs bytecode at once, and its functions as machine code as soon as that is there.

A run that goes on for `DELAY` has its program compiled beside it, in a thread: LLVM and the interpreter both work
without the lock of Python. Then the thread asks to be heard, as a signal does, so that the interpreter calls Python
between two instructions. There the first word of each function becomes one that calls machine code, and from then on
every call and tail call leads there. Calls that are active return into the interpreter.

Both share one context, one heap, the constant strings and the host: the object of the program is linked with the
interpreter's image in place of its own. Machine code has a stack of its own, as that of `JitMachine`. So a trap leaves
both, limits of the heap and Ctrl-C mean the same before and after, and a backtrace has the calls of both.

Making machine code takes about as long as `EARNED`. So a program that has been interpreted for so long, or runs for the
second time, gets it for its next run even where it ends before: whoever runs it then waits (`finish`).

Costs: beside those of `InterpreterMachine` a thread that sleeps. Memory of the compiler is from the system.
"""
# Not compiled: its base class is not.

from __future__ import annotations

import _thread
import ctypes
import time
from typing import TYPE_CHECKING, Final

from garden.bytecode.code import FUNCTION_FIRST
from garden.bytecode.ops import NATIVE as NATIVE_CODE
from garden.errors import ImageError
from garden.native.codegen.programs import PREFIX
from garden.native.context import FIELD
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine
from garden.native.run.jit import Stack, active_functions, externals
from garden.native.run.machine import words_at
from garden.vm.backtrace import function_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from allocators import Allocator
    from garden.bytecode.code import Code
    from garden.native.codegen.programs import NativeProgram
    from garden.run_options import RunOptions

#: Seconds until a run that goes on is compiled.
DELAY: Final = 0.02
#: Seconds of the processor after which a program has earned machine code.
EARNED: Final = 0.1

#: What a program's object finds in the interpreter's image.
_SHARED: Final = (
    "context", "output_buffer", "garden_enter", "garden_leave", "garden_request", "garden_on_stack", "garden_interrupt",
)  # fmt: skip

_ASKED: Final = FIELD["asked"]
_NATIVES: Final = FIELD["natives"]
_NATIVE_ARGUMENTS: Final = FIELD["native_arguments"]
_NATIVE_STACK: Final = FIELD["native_stack"]
_NATIVE_LIMIT: Final = FIELD["native_limit"]
_NATIVE: Final = FIELD["native"]
_STACK_LIMIT: Final = FIELD["stack_limit"]
_FRAME: Final = FIELD["frame"]

_ASK_FUNCTION: Final = ctypes.CFUNCTYPE(None)


class TieredMachine(InterpreterMachine):
    """Runs one program. `options` are for the interpreter, and `stack_bytes` is the size of the other stack.

    With `has_earned` it is compiled without delay. `compile` makes machine code of the program, given its constant
    strings as `Code.strings` has them; `made` is told that it is there. Both are called in a thread, and what they
    raise is only noted.
    """

    def __init__(
        self,
        code: Code[Allocator],
        image: Image,
        allocator: Allocator,
        options: RunOptions,
        *,
        stack_bytes: int | None,
        has_earned: bool,
        compile: Callable[[bytes], NativeProgram],
        made: Callable[[NativeProgram], None],
    ) -> None:
        super().__init__(code, image, allocator, options)
        self._stack_bytes: Final = stack_bytes
        self._has_earned: Final = has_earned
        self._compile: Final = compile
        self._made: Final = made
        self._shared: Final = {name: image.address(name) for name in _SHARED} | externals()
        self._ask: Final = _ASK_FUNCTION(image.address("garden_ask"))
        self._began = 0.0
        self._used = 0.0
        self._started = False
        self._compiling = False
        # Held until the run, and the work in the thread, have ended.
        self._run_lock: Final = _thread.allocate_lock()
        self._work_lock: Final = _thread.allocate_lock()
        # Held by who looks whether the machine is open, and relies on it.
        self._gate: Final = _thread.allocate_lock()
        self._ready: tuple[NativeProgram, Image] | None = None
        self._native_image: Image | None = None
        self._stack: Stack | None = None
        self._natives: ctypes.Array[ctypes.c_int64] | None = None
        self._native_arguments: memoryview | None = None
        self._replaced: Final[list[tuple[int, int]]] = []
        #: What happened, in order: seconds after the start of the run, and in words.
        self.events: Final[list[tuple[float, str]]] = []

    def run(self) -> int:
        """As that of `InterpreterMachine`. The first run may lead to machine code."""
        if self._started:
            return super().run()
        self._started = True
        self._began = time.perf_counter()
        used = time.thread_time()
        self._run_lock.acquire()
        self._work_lock.acquire()
        self._note("interpreted")
        try:
            _thread.start_new_thread(self._work, ())
        except RuntimeError as error:
            self._work_lock.release()
            self._note(f"not compiled: {error}")
        try:
            return super().run()
        finally:
            self._used = time.thread_time() - used
            self._run_lock.release()
            self._note("ended")

    def _start(self, pc: int) -> int:
        self._context[_NATIVE] = 0
        return super()._start(pc)

    def finish(self) -> None:
        """Wait for the machine code if the program has earned it."""
        if self._has_earned or (self._compiling and self._used >= EARNED):
            with self._work_lock:
                pass

    def _note(self, text: str) -> None:
        self.events.append((time.perf_counter() - self._began, text))

    # In the thread.

    def _work(self) -> None:
        try:
            if self._has_earned or not self._run_lock.acquire(timeout=DELAY):
                self._compiling = True
                self._compile_beside()
        except Exception as error:
            self._note(f"not compiled: {error}")
        finally:
            self._work_lock.release()

    def _compile_beside(self) -> None:
        self._note("compiling")
        with self._gate:
            if not self._open:
                return
            strings = self.code.strings.view.tobytes()
            address = self.code.strings.address if strings else 0
        program = self._compile(strings)
        self._note("compiled")
        with self._gate:
            if self._open:
                image = Image(program.object, None, self._shared | {f"{PREFIX}strings": address})
                self._ready = program, image
                self._context[_ASKED] = 1
                self._ask()
        self._made(program)
        self._note("kept for the next run")

    # In the thread of the run.

    def _poll(self) -> None:
        super()._poll()
        ready, self._ready = self._ready, None
        if ready is None:
            return
        self._context[_ASKED] = 0
        try:
            self._adopt(*ready)
        except (MemoryError, ImageError) as error:
            ready[1].close()
            self._note(f"not changed over: {error}")
        else:
            self._note("changed over to machine code")

    def _adopt(self, program: NativeProgram, image: Image) -> None:
        """Let calls of functions lead to machine code."""
        stack = Stack(self._stack_bytes, program.reserve)
        firsts = self.code.functions.column(FUNCTION_FIRST)
        natives = (ctypes.c_int64 * (2 * len(firsts)))()
        # The last one is the entry, which nobody calls.
        rows = [row for row in range(1, len(firsts) - 1) if program.parameters[row] >= 0]
        for row in rows:
            natives[2 * row] = image.address(f"call.{row}")
            natives[2 * row + 1] = program.parameters[row]
        self._native_image, self._stack, self._natives = image, stack, natives
        self._native_arguments = words_at(image.address("arguments"), program.argument_words)
        context = self._context
        context[_NATIVES] = ctypes.addressof(natives)
        context[_NATIVE_ARGUMENTS] = image.address("arguments")
        context[_NATIVE_STACK] = stack.end
        context[_NATIVE_LIMIT] = stack.limit
        words = self.code.words.view
        for row in rows:
            first = firsts[row]
            self._replaced.append((first, words[first]))
            words[first] = row << 32 | NATIVE_CODE

    def _interrupted(self) -> None:
        context = self._context
        if context[_NATIVE]:
            context[_STACK_LIMIT] = context[_NATIVE_LIMIT]

    def _host_arguments(self, count: int) -> list[int]:
        if not self._context[_NATIVE]:
            return super()._host_arguments(count)
        assert self._native_arguments is not None
        words: list[int] = self._native_arguments[:count].tolist()
        return words

    def _offset(self, where: int) -> int:
        return where if self._context[_NATIVE] else super()._offset(where)

    def backtrace(self) -> tuple[str, ...]:
        """Names of the functions that were active when the last run ended, the entry first."""
        if not self._context[_NATIVE]:
            return super().backtrace()
        assert self._native_image is not None
        assert self._stack is not None
        interpreted = function_names(self.code, self._return_pcs())
        return interpreted + active_functions(self._native_image.symbols, self._stack, self._context[_FRAME])

    def close(self) -> None:
        """Give all memory back; closing twice is harmless. What is made beside still reaches `made`."""
        with self._gate:
            if self._open:
                words = self.code.words.view
                for first, word in self._replaced:
                    words[first] = word
                self._replaced.clear()
            ready, self._ready = self._ready, None
            try:
                super().close()
            finally:
                if self._native_arguments is not None:
                    self._native_arguments.release()
                for image in (self._native_image, ready[1] if ready else None):
                    if image is not None:
                        image.close()
                if self._stack is not None:
                    self._stack.close()
