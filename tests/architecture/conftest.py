"""Syntax trees of all modules: kept for the whole run, and out of the garbage collector's way."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def uncollected_trees() -> Iterator[None]:
    """The trees stay to the end: collections would take most of the time, then and later."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
