"""Interrupts: how Ctrl-C reaches a loop of compiled code. Never compiled: that is the point."""

from __future__ import annotations


def poll() -> None:
    """Raise KeyboardInterrupt where one is due: Python looks for signals whenever it enters interpreted code."""
