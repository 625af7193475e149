"""Interrupts: how signals reach a loop of compiled code."""
# Not compiled: entering interpreted code is what delivers signals.

from __future__ import annotations


def poll() -> None:
    """Run the handlers of signals that have come: Python looks for them whenever it enters interpreted code.

    That is in the main thread alone. What a handler raises comes out.
    """
