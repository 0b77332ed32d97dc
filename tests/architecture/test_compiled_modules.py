"""Compiled modules: the list of what is compiled names what can be."""

import ast

import pytest

from native.modules import COMPILED, path_of
from tests.architecture.tree import ROOT


@pytest.mark.parametrize("module", COMPILED)
def test_what_mypyc_would_lose_is_not_compiled(module: str) -> None:
    """The keywords of a class, such as `frozen=True` of a Struct, and a body of message fields."""
    tree = ast.parse((ROOT / path_of(module)).read_text("utf-8"))

    lost = [n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.keywords]

    assert lost == []


def test_the_list_is_in_order() -> None:
    assert list(COMPILED) == sorted(set(COMPILED))
