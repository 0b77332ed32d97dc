"""Structure: modules per package, import circles, group types, and what the core imports."""

import ast

import pytest

from tests.architecture.names import (
    GROUP_TYPES,
    import_circles,
    imported_modules,
    modules,
    statements,
)
from tests.architecture.tree import PACKAGES, ROOT

BROKER_MODULES_MAX = 12  # directly in broker/: what composes and runs the daemon

# What the core uses of the standard library and of other projects: no clock, loop, file, socket.
# importlib: the registry of assignors finds those of other packages with it, once, at the start.
CORE_IMPORTS = {
    "coordinator": "array bisect collections contextlib enum functools heapq importlib itertools"
    " msgspec operator re2 struct sys uuid xxhash",
    "protocol": "codecs collections contextlib enum functools json linecache msgspec re"
    " rollcall_codec struct uuid",
    "purgatory": "collections heapq itertools sortedcontainers",
    "seams": "array collections contextlib datetime functools msgspec mypy_extensions operator re2",
    "security": "base64 binascii bisect collections contextlib enum functools hashlib hmac"
    " itertools ipaddress json math msgspec operator re stringprep struct"
    " unicodedata",
    "topics": "collections contextlib dataclasses enum functools heapq itertools json msgspec re"
    " struct uuid zlib",
    "transactions": "collections contextlib enum functools heapq itertools msgspec operator struct",
    "history": "array collections contextlib datetime enum functools itertools msgpack"
    " msgspec re struct types",
}


def outside_imports(package: str) -> set[str]:
    """The modules outside the project that a package imports, wherever in its files."""
    found: set[str] = set()
    for module in modules([package]):
        for node in statements(module):
            if isinstance(node, ast.Import):
                found.update(name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module)
    return {name.partition(".")[0] for name in found} - set(PACKAGES) - {"typing"}


def test_broker_has_few_modules_beside_its_subpackages() -> None:
    direct = [path.name for path in (ROOT / "broker").glob("*.py") if path.name != "__init__.py"]
    assert len(direct) <= BROKER_MODULES_MAX, direct


def test_no_group_type_imports_another() -> None:
    known = {module.name for module in modules()}
    crossing = {
        (module.name, imported)
        for group_type in GROUP_TYPES
        for module in modules([f"coordinator/{group_type}"])
        for imported in imported_modules(module, known)
        for other in GROUP_TYPES
        if other != group_type and imported.startswith(f"coordinator.{other}")
    }
    assert modules(["coordinator/classic"]) != []
    assert crossing == set()


@pytest.mark.parametrize(
    "package", ["config", "history", "coordinator", "topics", "transactions", "storage"]
)
def test_a_lower_package_does_not_import_the_daemon(package: str) -> None:
    known = {module.name for module in modules()}
    importers = {
        (module.name, imported)
        for module in modules([package])
        for imported in imported_modules(module, known)
        if imported.partition(".")[0] == "broker"
    }
    assert importers == set()


@pytest.mark.parametrize("package", CORE_IMPORTS)
def test_the_core_imports_nothing_new(package: str) -> None:
    assert outside_imports(package) <= set(CORE_IMPORTS[package].split())


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports under TYPE_CHECKING and inside functions count, in the product and in the tests."""
    assert import_circles() == []
