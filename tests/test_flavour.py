"""The flavour that is under test is the one that was meant."""

from __future__ import annotations

import importlib
import os

import pytest

import allocators

WANTED = os.environ.get("GARDEN_FLAVOUR")


@pytest.mark.skipif(WANTED is None, reason="GARDEN_FLAVOUR says which flavour is meant: pure or compiled")
def test_the_flavour_is_the_one_that_was_meant() -> None:
    assert ("compiled" if allocators.COMPILED else "pure") == WANTED


@pytest.mark.parametrize("module", ["allocators.arena", "garden.syntax.lexer", "garden.ir.lower", "garden.vm.machine"])
def test_both_packages_are_of_one_flavour(module: str) -> None:
    compiled = not str(importlib.import_module(module).__file__).endswith(".py")
    assert compiled == allocators.COMPILED
