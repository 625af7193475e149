"""Relocations: how each type of them changes the bytes of an image, by target.

The types are those that LLVM emits for the small code model, with the numbers that the psABI of each target gives them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from garden.native.target import AARCH64, X86_64

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a relocation refers to: the symbol, its stub if it is an external, its slot.
SYMBOL: Final = 0
CALLEE: Final = 1
SLOT: Final = 2
# And how: by address, by distance from the place that is patched, by distance in pages, by the place in a page. Pages
# are of 4 KiB here, whatever they are for the system.
ABSOLUTELY: Final = 0
RELATIVELY: Final = 1
BY_PAGE: Final = 2
IN_PAGE: Final = 3

_U32: Final = (0, 1 << 32)
_U64: Final = (0, 1 << 64)


def _signed(bits: int) -> tuple[int, int]:
    return -(1 << bits - 1), 1 << bits - 1


#: How to apply one type of relocation: referent, manner, span, size, shift, field.
Rule = tuple[int, int, tuple[int, int], int, int, int]


def _rule(referent: int, manner: int, span: tuple[int, int], size: int = 4, shift: int = 0, field: int = 0) -> Rule:
    """The value must be in `span`, its end not included, and a multiple of `1 << shift`.

    Without a `field` it is stored in `size` bytes; else it is shifted and replaces those bits of the instruction.
    """
    return referent, manner, span, size, shift, field


ADRP_FIELD: Final = 0x60FFFFE0
_IMM12_FIELD: Final = 0x003FFC00

_ADRP: Final = (BY_PAGE, _signed(33), 4, 12, ADRP_FIELD)
_REL32: Final = (RELATIVELY, _signed(32))
_REL64: Final = (RELATIVELY, _signed(64), 8)
_BRANCH26: Final = _rule(CALLEE, RELATIVELY, _signed(28), 4, 2, 0x03FFFFFF)


def _low12(referent: int, shift: int) -> Rule:
    """The place in a page, in units of what is loaded or stored."""
    return _rule(referent, IN_PAGE, (0, 1 << 12), 4, shift, _IMM12_FIELD)


#: By target and number of the relocation type, from the psABI of each.
RULES: Final[Mapping[str, Mapping[int, Rule]]] = {
    X86_64: {
        1: _rule(SYMBOL, ABSOLUTELY, _U64, 8),  # 64
        2: _rule(SYMBOL, *_REL32),  # PC32
        4: _rule(CALLEE, *_REL32),  # PLT32
        9: _rule(SLOT, *_REL32),  # GOTPCREL
        10: _rule(SYMBOL, ABSOLUTELY, _U32),  # 32
        11: _rule(SYMBOL, ABSOLUTELY, _signed(32)),  # 32S
        24: _rule(SYMBOL, *_REL64),  # PC64
        41: _rule(SLOT, *_REL32),  # GOTPCRELX
        42: _rule(SLOT, *_REL32),  # REX_GOTPCRELX
    },
    AARCH64: {
        257: _rule(SYMBOL, ABSOLUTELY, _U64, 8),  # ABS64
        260: _rule(SYMBOL, *_REL64),  # PREL64
        261: _rule(SYMBOL, *_REL32),  # PREL32
        275: _rule(SYMBOL, *_ADRP),  # ADR_PREL_PG_HI21
        277: _low12(SYMBOL, 0),  # ADD_ABS_LO12_NC
        278: _low12(SYMBOL, 0),  # LDST8_ABS_LO12_NC
        279: _rule(CALLEE, RELATIVELY, _signed(16), 4, 2, 0x0007FFE0),  # TSTBR14
        280: _rule(CALLEE, RELATIVELY, _signed(21), 4, 2, 0x00FFFFE0),  # CONDBR19
        282: _BRANCH26,  # JUMP26
        283: _BRANCH26,  # CALL26
        284: _low12(SYMBOL, 1),  # LDST16_ABS_LO12_NC
        285: _low12(SYMBOL, 2),  # LDST32_ABS_LO12_NC
        286: _low12(SYMBOL, 3),  # LDST64_ABS_LO12_NC
        299: _low12(SYMBOL, 4),  # LDST128_ABS_LO12_NC
        311: _rule(SLOT, *_ADRP),  # ADR_GOT_PAGE
        312: _low12(SLOT, 3),  # LD64_GOT_LO12_NC
    },
}
