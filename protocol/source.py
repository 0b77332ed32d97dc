"""Source builder: assembles the source of a generated function line by line.

`reader_source.py` and `writer_source.py` generate one function each from a declaration. A generated
function refers to objects (a Struct's bound method, a class, a default) by names in its globals,
which `SourceBuilder.constant` assigns.
"""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from struct import Struct
from typing import Any, assert_never

import msgspec

from protocol import schema
from protocol.schema import ArrayOf, FieldSpec, StructOf, Wire, WireType, fields_of


class MessageLayout(msgspec.Struct, frozen=True):
    """A declaration at one version: all that a generator has to know."""

    cls: type[schema.Struct]
    version: int
    flexible: bool

    @property
    def name(self) -> str:
        return f"{self.cls.__name__} v{self.version}"

    def inner(self, cls: type[schema.Struct]) -> "MessageLayout":
        """The layout of a struct within this one."""
        return MessageLayout(cls, self.version, self.flexible)

    def fields(self) -> tuple[FieldSpec, ...]:
        return fields_of(self.cls)

    def present(self, *, tagged: bool) -> list[FieldSpec]:
        """The fields that this version has, in the struct or in its tag buffer."""
        return [
            field
            for field in self.fields()
            if field.mark.in_version(self.version) and (field.mark.tag is not None) is tagged
        ]


class SourceBuilder:
    """Lines in the making, and the globals that they mention."""

    def __init__(self, names: dict[str, object]) -> None:
        self.lines: list[str] = []
        self.names = names
        self.depth = 0
        self._counter = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, name: str) -> str:
        """A local variable's name that nobody else uses."""
        self._counter += 1
        return f"{name}_{self._counter}"

    def constant(self, name: str, value: object) -> str:
        """The global name of an object; equal names must mean equal objects."""
        known = self.names.setdefault(name, value)
        if known is not value and known != value:
            raise AssertionError(f"two things are called {name}")
        return name

    def literal(self, name: str, value: object) -> str:
        """An expression for a default value."""
        if value is None or value == () or type(value) in {bool, int, float, str, bytes}:
            return repr(value)
        return self.constant(f"default_of_{name}", value)

    def function(self, name: str, file: str) -> Callable[..., Any]:
        """Run the lines, which define one function, and return it."""
        text = "\n".join(self.lines) + "\n"
        # A traceback through generated code shows its lines.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self.names)
        function: Callable[..., Any] = self.names[name]  # type: ignore[assignment]  # just made
        return function


@cache
def row(codes: str) -> Struct:
    """The Struct of some fixed-width values in a row."""
    return Struct(f">{codes}")


def is_number(wire: WireType) -> bool:
    """Whether it is a plain number, so that an array of it is one Struct."""
    return isinstance(wire, Wire) and wire.code in {"b", "h", "H", "i", "q"} and wire.enum is None


def least_bytes(wire: WireType, layout: MessageLayout, *, nullable: bool = False) -> int:
    """The fewest bytes a value can take: an array's count is checked against it."""
    match wire:
        case Wire(code="16s"):
            return 16
        case Wire(code=code) if code:
            return {"b": 1, "?": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8}[code]
        case Wire(name="string"):
            return 1 if layout.flexible else 2
        case Wire() | ArrayOf():
            return 1 if layout.flexible else 4
        case StructOf() if nullable:
            return 1
        case StructOf(cls):
            inner = layout.inner(cls)
            return int(layout.flexible) + sum(
                least_bytes(f.mark.wire, inner, nullable=f.mark.nullable_in(layout.version))
                for f in inner.present(tagged=False)
            )
        case _:
            assert_never(wire)
