"""Waste: where the bytes that an allocator has from its parent, its buffer or the system have gone."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allocators._mypyc import mypyc_attr


@mypyc_attr(native_class=True)
class Waste:
    """All in bytes; `total` is the sum of all others.

    `live`: blocks in use. `dead`: blocks freed, or parts of blocks given up, whose room has not come back. `padding`:
    lost to alignment. `tail`: free in the current chunk. `abandoned`: free in earlier chunks, out of reach until a
    reset. `overhead`: footers. `slack`: what the parent, or the system, gave beyond what it was asked for.
    """

    __slots__ = ("abandoned", "dead", "live", "overhead", "padding", "slack", "tail", "total")

    def __init__(
        self, *, live: int, dead: int, padding: int, tail: int, abandoned: int, overhead: int, slack: int
    ) -> None:
        self.live: Final = live
        self.dead: Final = dead
        self.padding: Final = padding
        self.tail: Final = tail
        self.abandoned: Final = abandoned
        self.overhead: Final = overhead
        self.slack: Final = slack
        self.total: Final = live + dead + padding + tail + abandoned + overhead + slack

    @staticmethod
    def of(
        total: int, live: int, dead: int, used: int, *, tail: int, abandoned: int, overhead: int, slack: int
    ) -> Waste:
        """Split `used` bytes, of which `live` are in use, into live, dead and padding.

        Rounding up to a minimum alignment can take dead bytes back together with a block, so `dead` may overstate.
        """
        dead = min(dead, used - live)
        waste = Waste(
            live=live,
            dead=dead,
            padding=used - live - dead,
            tail=tail,
            abandoned=abandoned,
            overhead=overhead,
            slack=slack,
        )
        assert waste.total == total
        return waste

    def as_dict(self) -> dict[str, int]:
        """The figures by name, for JSON."""
        return {
            "live": self.live,
            "dead": self.dead,
            "padding": self.padding,
            "tail": self.tail,
            "abandoned": self.abandoned,
            "overhead": self.overhead,
            "slack": self.slack,
            "total": self.total,
        }

    def __reduce__(self) -> tuple[Callable[[dict[str, int]], Waste], tuple[dict[str, int]]]:
        return _of_figures, (self.as_dict(),)

    def __repr__(self) -> str:
        return f"<Waste {' '.join([f'{name}={size}' for name, size in self.as_dict().items()])}>"


def _of_figures(figures: dict[str, int]) -> Waste:
    """The inverse of `as_dict`."""
    return Waste(**{name: size for name, size in figures.items() if name != "total"})
