"""NativeMachine: what every machine that runs machine code has, whatever the code was made from.

An image of its own with the context in it, the heap and the host functions of `garden.vm`, and the one function through
which machine code asks for what it cannot do itself: memory, output, host functions, a look for Ctrl-C.

While the program runs, cursor and table of the heap are in the context; they are brought back whenever Python gets to
run, so that the heap's figures, and those of its allocator, are right then.

Ctrl-C. While a program runs in the main thread, the handler for SIGINT is a function of the image. It leaves a mark in
the context, and calls the handler that was there before, so that Python knows as well. The program sees the mark, and
asks Python, which raises KeyboardInterrupt where one is due.

Costs: some 10 us a run beside the program itself, and 2 us a request.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from allocators import Allocator
from garden.errors import GardenError, Trap
from garden.native.context import (
    ARGUMENT_WORDS,
    CHUNK,
    FAILED,
    FIELD,
    FIELDS,
    HOST_CALL,
    OUTPUT_BYTES,
    POLL,
    TABLE,
    WRITE,
)
from garden.native.image import Image
from garden.traps import trap
from garden.types.host import HostFunction
from garden.vm.heap import Heap
from garden.vm.interrupts import poll
from garden.vm.runtime import Runtime

A = TypeVar("A", bound=Allocator, covariant=True)

_CURSOR: Final = FIELD["cursor"]
_END: Final = FIELD["end"]
_BASE: Final = FIELD["base"]
_ALLOCATIONS: Final = FIELD["allocations"]
_SLOTS: Final = FIELD["slots"]
_MASK: Final = FIELD["mask"]
_STRINGS: Final = FIELD["strings"]
_OUTPUT: Final = FIELD["output"]
_OUTPUT_END: Final = FIELD["output_end"]
_REQUEST: Final = FIELD["request"]
_TRAP: Final = FIELD["trap"]
_TRAP_A: Final = FIELD["trap_a"]
_WHERE: Final = FIELD["where"]
_INTERRUPTED: Final = FIELD["interrupted"]
_OLD_HANDLER: Final = FIELD["old_handler"]

_REQUEST_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_ENTER_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
#: Bytes of libc's `struct sigaction` at most; the handler comes first in it.
_SIGACTION_BYTES: Final = 256


class NativeMachine(Generic[A]):
    """Runs the code in an image. `image` becomes the machine's, which closes it.

    `constants` are the constant strings of the program where they lie, as words, and `hosts` its host functions.
    """

    def __init__(
        self,
        image: Image,
        allocator: A,
        constants: memoryview | None,
        hosts: list[HostFunction],
        *,
        write: Callable[[bytes], object],
        heap_limit: int,
        argument_words: int = ARGUMENT_WORDS,
    ) -> None:
        self._image: Final = image
        self._running = False
        self._error: BaseException | None = None
        self._context: Final = _words_at(image.address("context"), len(FIELDS))
        self._arguments: Final = _words_at(image.address("arguments"), argument_words)
        self._output: Final = image.address("output_buffer")
        self._enter: Final = _ENTER_FUNCTION(image.address("garden_enter"))
        self._handler: Final = image.address("garden_interrupt")
        self.allocator: Final = allocator
        self.heap: Final[Heap[A]] = Heap(allocator, constants, limit=heap_limit)
        self.runtime: Final[Runtime[A]] = Runtime(self.heap, hosts, write)

    def reset(self) -> None:
        """Forget everything of former runs: the heap, and output that has not been written."""
        self.runtime.discard()
        self.heap.reset()

    def _run(self, function: int, stack: int, argument: int) -> int:
        """Call machine code at an address, on a stack that ends at another, or the present one where that is 0.

        Raises `Trap` with `offset` as machine code knows it, which is what `_located` makes a trap of.
        """
        self._require_idle()
        self._running = True
        context = self._context
        serve = _REQUEST_FUNCTION(self._serve)
        context[_REQUEST] = ctypes.cast(serve, ctypes.c_void_p).value or 0
        context[_TRAP] = 0
        context[_INTERRUPTED] = 0
        context[_OUTPUT] = self._output
        context[_OUTPUT_END] = self._output + OUTPUT_BYTES
        self._push()
        try:
            if threading.current_thread() is threading.main_thread():
                with _Interrupts(self._handler, context):
                    result: int = self._enter(function, stack, argument)
            else:
                result = self._enter(function, stack, argument)
            self._pull()
            ended: int = context[_TRAP]
            if ended == 0:
                # Python may know of a Ctrl-C that came when the program was about to end.
                poll()
                return result
            error, self._error = self._error, None
            if ended != FAILED or error is None:
                error = trap(ended, context[_TRAP_A], context[_TRAP_A + 1], context[_TRAP_A + 2])
            if isinstance(error, KeyboardInterrupt):
                error = Trap("T0007", "interrupted")
            if isinstance(error, Trap):
                self._locate(error, context[_WHERE])
            raise error
        finally:
            # The error must not keep the frames that lead here alive.
            self._error = None
            error = None
            self._running = False
            self._drain()
            self.runtime.flush()

    def _require_idle(self) -> None:
        if self._running:
            raise GardenError("the machine is running already")

    def _locate(self, error: Trap, where: int) -> None:
        """Add to a trap what the machine knows of where it happened."""
        raise NotImplementedError

    # What machine code and Python share.

    def _push(self) -> None:
        """Give the heap to machine code."""
        context = self._context
        heap = self.heap
        context[_CURSOR] = heap.cursor
        context[_END] = heap.end
        context[_BASE] = heap.cursor - heap.used
        context[_ALLOCATIONS] = heap.allocations
        context[_SLOTS], context[_MASK], context[_STRINGS] = heap.string_table

    def _pull(self) -> None:
        """Take the heap back from machine code."""
        context = self._context
        self.heap.resume(context[_CURSOR], context[_ALLOCATIONS], context[_STRINGS])

    def _drain(self) -> None:
        """Hand the output that machine code has buffered to the runtime."""
        count = self._context[_OUTPUT] - self._output
        if count:
            self._context[_OUTPUT] = self._output
            self.runtime.write_bytes(ctypes.string_at(self._output, count))

    def _serve(self, kind: int, a: int, b: int) -> int:
        """Do what machine code asks for: see `context`. An exception ends the run."""
        try:
            self._pull()
            if kind == HOST_CALL:
                self._drain()
                answer = self.runtime.call(a, self._host_arguments(b))
            elif kind == CHUNK:
                answer = self.heap.take(a)
            elif kind == TABLE:
                answer = self.heap.renew_table()
            elif kind == WRITE:
                self._drain()
                self.runtime.write_bytes(ctypes.string_at(a, b))
                answer = 0
            elif kind == POLL:
                self._context[_INTERRUPTED] = 0
                self._interrupted()
                poll()
                answer = 0
            else:
                answer = self._serve_more(kind, a, b)
            self._push()
            return answer
        except BaseException as error:
            self._error = error
            self._context[_TRAP] = FAILED
            return 0

    def _host_arguments(self, count: int) -> list[int]:
        """The words that a host function is called with."""
        words: list[int] = self._arguments[:count].tolist()
        return words

    def _interrupted(self) -> None:
        """Undo what the handler for Ctrl-C has done to the context."""

    def _serve_more(self, kind: int, a: int, b: int) -> int:
        """Serve a request that only some machines know."""
        raise ValueError(f"machine code has asked for {kind}, which nobody knows")

    def close(self) -> None:
        """Give all memory back; closing twice is harmless."""
        self.heap.close()
        self._context.release()
        self._arguments.release()
        self._image.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Interrupts:
    """While it is entered, SIGINT goes to a handler of the image, unless it is ignored."""

    def __init__(self, handler: int, context: memoryview) -> None:
        self._libc: Final = ctypes.CDLL(None)
        self._old: Final = ctypes.create_string_buffer(_SIGACTION_BYTES)
        self._handler: Final = handler
        self._context: Final = context
        self._installed = False

    def __enter__(self) -> None:
        sigaction = self._libc.sigaction
        sigaction(int(signal.SIGINT), None, self._old)
        old = int.from_bytes(self._old[:8], "little")
        if old == int(signal.SIG_IGN):
            return
        self._context[_OLD_HANDLER] = old
        new = ctypes.create_string_buffer(self._handler.to_bytes(8, "little") + self._old[8:], _SIGACTION_BYTES)
        sigaction(int(signal.SIGINT), new, None)
        self._installed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            self._libc.sigaction(int(signal.SIGINT), self._old, None)


def _words_at(address: int, count: int) -> memoryview:
    """The words at an address, format 'q'."""
    return memoryview((ctypes.c_int64 * count).from_address(address)).cast("B").cast("q")
