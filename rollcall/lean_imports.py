"""Lean imports: a package without an optional module that this process has no use for.

The package does what it does where that module is not installed. Who imports the module afterwards
gets it.
"""

import sys
from importlib import import_module
from types import ModuleType


def import_without(module: str, package: str) -> None:
    """Does nothing if one of them was imported before."""
    if module in sys.modules or package in sys.modules:
        return
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # takes None
    modules[module] = None
    try:
        import_module(package)
    finally:
        del modules[module]
