"""Interrupts: how signals reach a loop of compiled code, and how what their handlers raise gets out of others' code."""
# Not compiled: entering interpreted code is what delivers signals.

from __future__ import annotations

import _signal  # type: ignore[import-not-found]


def poll() -> None:
    """Run the handlers of signals that have come: Python looks for them whenever it enters interpreted code.

    That is in the main thread alone. What a handler raises comes out.
    """


def raised_by_handler(error: BaseException) -> bool:
    """Whether the handler of a signal has raised an exception, by the functions that it came through.

    A handler may raise anything, TimeoutError say, which is an OSError. So code that takes an exception for an answer
    of what it has called asks this first, and raises what is none.
    """
    codes = set()
    for number in _signal.valid_signals():
        handler = _signal.getsignal(number)
        for function in (handler, getattr(handler, "__func__", None), getattr(handler, "__call__", None)):  # noqa: B004
            code = getattr(function, "__code__", None)
            if code is not None:
                codes.add(code)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
