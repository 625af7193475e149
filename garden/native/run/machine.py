"""NativeMachine: what every machine that runs machine code has, whatever the code was made from.

An image of its own with the context in it, the heap and the host functions of `garden.vm`, and the one function through
which machine code asks for what it cannot do itself: memory, output, host functions, a look for signals.

While the program runs, cursor and table of the heap are in the context; they are brought back whenever Python gets to
run, so that the heap's figures, and those of its allocator, are right then. The heap is made when it is first needed.
Until then machine code finds no room in it and no table, and so it asks.

Signals. Python runs handlers in the main thread, between any two instructions of Python code, and they may raise. While
machine code runs there, that must be an instruction at which the exception can be caught. So every signal that has a
handler in Python goes to a function of the image meanwhile, which leaves a mark in the context. The program sees the
mark and asks; only then does Python get the signal, as if it came just now. What its handler raises ends the run;
KeyboardInterrupt becomes a trap. Host functions, and what takes the output, run with the handlers of Python in place.
Allocators do not: a signal waits until the heap has got its memory.

Handlers that a host function installs count from its return on (for real-time signals, from the next run on).

Costs: some 10 us a run beside the program itself, and 2 us a request.
"""
# Not compiled: it depends on where Python runs the handlers of signals.

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import ctypes
import os
from typing import TYPE_CHECKING, Final, Self

from garden.common import NOWHERE
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
from garden.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ctypes import Array, c_char
    from types import TracebackType

    from allocators import Allocator
    from garden.host import HostFunction
    from garden.native.image.load import Image
    from garden.run_options import RunOptions
    from garden.vm.heap import Heap
    from garden.vm.runtime import Runtime

    _Action = Array[c_char]
    #: Signals, what the image installs for each, what was there before, and a None for each.
    _Actions = tuple[list[int], list[_Action], list[_Action], list[None]]

_CURSOR: Final = FIELD["cursor"]
_END: Final = FIELD["end"]
_BASE: Final = FIELD["base"]
_ALLOCATIONS: Final = FIELD["allocations"]
_SLOTS: Final = FIELD["slots"]
_MASK: Final = FIELD["mask"]
_STRINGS: Final = FIELD["strings"]
_OUTPUT: Final = FIELD["output"]
_OUTPUT_END: Final = FIELD["output_end"]
_UNBUFFERED: Final = FIELD["unbuffered"]
_REQUEST: Final = FIELD["request"]
_TRAP: Final = FIELD["trap"]
_TRAP_A: Final = FIELD["trap_a"]
_WHERE: Final = FIELD["where"]
_INTERRUPTED: Final = FIELD["interrupted"]

_REQUEST_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_ENTER_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
#: Bytes of libc's `struct sigaction` at most; the handler comes first in it.
_SIGACTION_BYTES: Final = 256
#: Signals that may have handlers: those that every program knows, and others, which hardly any program uses.
_STANDARD: Final = tuple(range(1, 32))
_NO_ACTIONS: Final[_Actions] = ([], [], [], [])
_REAL_TIME: Final = tuple(sorted(_signal.valid_signals() - set(_STANDARD)))


class NativeMachine:
    """Runs the code in an image. `image` becomes the machine's, which closes it.

    `allocator` gives the allocator of the heap.
    `constants` are the constant strings of the program where they lie, as words, and `hosts` its host functions.
    """

    def __init__(
        self,
        image: Image,
        allocator: Callable[[], Allocator],
        constants: memoryview | None,
        hosts: list[HostFunction],
        options: RunOptions,
        *,
        argument_words: int = ARGUMENT_WORDS,
    ) -> None:
        self._image: Final = image
        self._allocator: Final = allocator
        self._constants: Final = constants
        self._hosts: Final = hosts
        self._heap_limit: Final = options.heap_limit
        self._backtrace: Final = options.backtrace
        self._heap: Heap[Allocator] | None = None
        self._runtime: Runtime[Allocator] | None = None
        self._running = False
        self._error: BaseException | None = None
        self._context: Final = words_at(image.address("context"), len(FIELDS))
        self._arguments: Final = words_at(image.address("arguments"), argument_words)
        self._buffer: Final = image.address("output_buffer")
        self._enter: Final = _ENTER_FUNCTION(image.address("garden_enter"))
        self._interrupts: Final = _Interrupts(image.address("garden_interrupt"))
        self._output: Final = Output(options.write)
        for field in (_CURSOR, _END, _BASE, _SLOTS):
            self._context[field] = NOWHERE
        self._context[_MASK] = -1

    @property
    def heap(self) -> Heap[Allocator]:
        """The heap of the program. `Trap` T0003 where there is no memory for its constant strings."""
        heap = self._heap
        if heap is None:
            from garden.vm.heap import DEFAULT_LIMIT, Heap

            # So many of zero bytes, which need no memory.
            allocations = self._context[_ALLOCATIONS]
            limit = DEFAULT_LIMIT if self._heap_limit is None else self._heap_limit
            try:
                heap = Heap(self._allocator(), self._constants, limit=limit)
            except MemoryError as error:
                raise Trap("T0003", f"no memory for the constant strings: {error}") from error
            heap.allocations = allocations
            self._heap = heap
        return heap

    @property
    def runtime(self) -> Runtime[Allocator]:
        """What host functions are called through."""
        runtime = self._runtime
        if runtime is None:
            from garden.vm.runtime import Runtime

            runtime = self._runtime = Runtime(self.heap, self._hosts, self._output)
        return runtime

    @property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Address and size in bytes of each function in the image, by its name there."""
        return self._image.symbols

    def reset(self) -> None:
        """Forget everything of former runs: the heap, and output that has not been written."""
        self._output.discard()
        self._context[_ALLOCATIONS] = 0
        if self._heap is not None:
            self._heap.reset()

    def _run(self, function: int, stack: int, argument: int) -> int:
        """Call machine code at an address, on a stack that ends at another, or the present one where that is 0.

        Raises `Trap` with `offset` as machine code knows it, which is what `_located` makes a trap of.
        """
        self._require_idle()
        self._running = True
        context = self._context
        interrupts = self._interrupts
        # Nothing is called between here and `try`: a signal handler might raise there.
        context[_OUTPUT] = self._buffer
        context[_OUTPUT_END] = self._buffer + OUTPUT_BYTES
        try:
            try:
                serve = _REQUEST_FUNCTION(self._serve)
                context[_REQUEST] = ctypes.cast(serve, ctypes.c_void_p).value or 0
                context[_TRAP] = 0
                self._output.begin()
                context[_UNBUFFERED] = self._output.unbuffered
                self._push()
                try:
                    interrupts.take(anew=True)
                    result: int = self._enter(function, stack, argument)
                    error, self._error = self._error, None
                    if error is None:
                        # Else, the heap may have changed since machine code had it.
                        self._pull()
                    ended: int = context[_TRAP]
                    if ended == 0:
                        return result
                    if ended == FAILED and error is None:
                        # Python was interrupted before it came to serve a request.
                        error = KeyboardInterrupt()
                    if error is None:
                        from garden.traps import trap

                        error = trap(ended, context[_TRAP_A], context[_TRAP_A + 1], context[_TRAP_A + 2])
                    raise error
                finally:
                    self._let_signals_in()
            finally:
                self._drain()
                self._output.flush()
        except Trap as raised:
            self._locate(raised, context[_WHERE])
            raise
        except KeyboardInterrupt:
            interrupted = Trap("T0007", "interrupted")
            self._locate(interrupted, context[_WHERE])
            raise interrupted from None
        finally:
            self._running = False
            # The error must not keep the frames that lead here alive.
            self._error = None
            error = None

    def _require_idle(self) -> None:
        if self._running:
            raise GardenError("the machine is running already")

    def _locate(self, error: Trap, where: int) -> None:
        """Add to a trap what the machine knows of where it happened."""
        if error.offset < 0:
            error.offset = self._offset(where)
        if self._backtrace and not error.backtrace:
            error.backtrace = self.backtrace()

    def _offset(self, where: int) -> int:
        """The place in the source that is at `where` for machine code, -1 if there is none."""
        raise NotImplementedError

    def backtrace(self) -> tuple[str, ...]:
        """Names of the functions that were active when the last run ended, the entry first."""
        raise NotImplementedError

    # What machine code and Python share.

    def _push(self) -> None:
        """Give the heap to machine code."""
        context = self._context
        heap = self._heap
        if heap is None:
            return
        context[_CURSOR] = heap.cursor
        context[_END] = heap.end
        context[_BASE] = heap.cursor - heap.used
        context[_ALLOCATIONS] = heap.allocations
        context[_SLOTS], context[_MASK], context[_STRINGS] = heap.string_table

    def _pull(self) -> None:
        """Take the heap back from machine code."""
        context = self._context
        if self._heap is not None:
            self._heap.resume(context[_CURSOR], context[_ALLOCATIONS], context[_STRINGS])

    def _drain(self) -> None:
        """Add what machine code has buffered to the output."""
        count = self._context[_OUTPUT] - self._buffer
        if count:
            self._context[_OUTPUT] = self._buffer
            self._output.add(ctypes.string_at(self._buffer, count))

    def _serve(self, kind: int, a: int, b: int) -> int:
        """Do what machine code asks for: see `context`. An exception ends the run."""
        try:
            self._pull()
            if kind == HOST_CALL:
                self._let_signals_in()
                self._drain()
                answer = self.runtime.call(a, self._host_arguments(b))
                self._interrupts.take()
            elif kind == CHUNK:
                answer = self.heap.take(a)
            elif kind == TABLE:
                # A heap that is made only now may have a table already, of the constant strings.
                known = self._context[_MASK]
                answer = 0 if known < self.heap.string_table[1] else self.heap.renew_table()
            elif kind == WRITE:
                self._let_signals_in()
                self._drain()
                self._output.add(ctypes.string_at(a, b))
                self._interrupts.take()
                answer = 0
            elif kind == POLL:
                self._poll()
                answer = 0
            else:
                answer = self._serve_more(kind, a, b)
            self._push()
            self._context[_TRAP] = 0
            return answer
        except BaseException as error:
            # `trap` is FAILED, as it was when this was called.
            self._error = error
            return 0

    def _poll(self) -> None:
        """Look for signals."""
        # None has come, where a program looks that is about to run out of stack.
        if self._context[_INTERRUPTED]:
            self._let_signals_in()
            self._interrupts.take()

    def _let_signals_in(self) -> None:
        """Let Python handle signals, those that have come and those that will."""
        try:
            self._interrupts.give_back()
        finally:
            marks: int = self._context[_INTERRUPTED]
            if marks:
                self._interrupted()
                again = self._interrupts.again(marks)
                self._context[_INTERRUPTED] = 0
                list(again)

    def _host_arguments(self, count: int) -> list[int]:
        """The words that a host function is called with."""
        words: list[int] = self._arguments[:count].tolist()
        return words

    def _interrupted(self) -> None:
        """Undo what the handler of signals has done to the context."""

    def _serve_more(self, kind: int, a: int, b: int) -> int:
        """Serve a request that only some machines know."""
        raise ValueError(f"machine code has asked for {kind}, which nobody knows")

    def close(self) -> None:
        """Give all memory back; closing twice is harmless."""
        try:
            if self._heap is not None:
                self._heap.close()
        finally:
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
    """Who handles signals in the main thread: `handler` of the image between `take` and `give_back`, else Python.

    That goes for signals that have a handler in Python. Others, which end the process or are ignored, go on doing so.

    Each change is a single call, made in C: between two calls Python may run a handler, and that may raise.
    """

    def __init__(self, handler: int) -> None:
        libc = ctypes.CDLL(None)
        self._sigaction: Final = libc.sigaction
        self._raise: Final = getattr(libc, "raise")
        self._handler: Final = handler
        # The last that were taken, and those that are now.
        self._actions: _Actions = _NO_ACTIONS
        self._taken: _Actions = _NO_ACTIONS
        self._real_time: list[int] = []
        self._in_main_thread = False

    def take(self, *, anew: bool = False) -> None:
        """Let signals go to the image. `anew` is for a new run, in which real-time signals stay as they are found."""
        if anew:
            self._in_main_thread = in_main_thread()
            self._real_time = _handled(_REAL_TIME) if self._in_main_thread else []
        if not self._in_main_thread:
            return
        actions = self._actions
        numbers = _handled(_STANDARD) + self._real_time
        if numbers != actions[0]:
            actions = self._actions = self._make_actions(numbers)
        change = map(self._sigaction, numbers, actions[1], actions[2])
        try:
            list(change)
        finally:
            self._taken = actions

    def _make_actions(self, numbers: list[int]) -> _Actions:
        news = []
        olds = []
        for number in numbers:
            old = ctypes.create_string_buffer(_SIGACTION_BYTES)
            self._sigaction(number, None, old)
            # Flags and mask are those that Python has.
            new = self._handler.to_bytes(8, "little") + old.raw[8:]
            news.append(ctypes.create_string_buffer(new, _SIGACTION_BYTES))
            olds.append(old)
        return numbers, news, olds, [None] * len(numbers)

    def give_back(self) -> None:
        """Let signals go to Python again."""
        numbers, _, olds, nothing = self._taken
        change = map(self._sigaction, numbers, olds, nothing)
        try:
            list(change)
        finally:
            self._taken = _NO_ACTIONS

    def again(self, marks: int) -> Iterator[int]:
        """What makes signals come again when it is gone through."""
        return map(self._raise, [number for number in _STANDARD + _REAL_TIME if marks >> number - 1 & 1])


#: The handlers that Python had for some signals when that was last looked up, and the signals that had one.
_last_handled: dict[tuple[int, ...], tuple[tuple[object, ...], list[int]]] = {}


def _handled(numbers: tuple[int, ...]) -> list[int]:
    """Those of some signals that have a handler in Python."""
    handlers = tuple(map(_signal.getsignal, numbers))
    known = _last_handled.get(numbers)
    if known is None or known[0] != handlers:
        handled = [number for number, handler in zip(numbers, handlers, strict=True) if callable(handler)]
        known = _last_handled[numbers] = handlers, handled
    return known[1]


def in_main_thread() -> bool:
    """Whether this is the thread that Ctrl-C goes to. On Linux, it has the number of the process."""
    return _thread.get_native_id() == os.getpid()


def words_at(address: int, count: int) -> memoryview:
    """The words at an address, format 'q'."""
    return memoryview((ctypes.c_int64 * count).from_address(address)).cast("B").cast("q")
