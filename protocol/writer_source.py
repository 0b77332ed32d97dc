"""Writer source: generates the Python that writes one message at one version.

The mirror of `reader_source.py`. Adjacent numbers are packed by one Struct, together with the
length of what follows them. A message of fixed width, such as the Heartbeat response, is a single
pack. A message without arrays is one sum of bytes. Otherwise the parts are collected in a list and
joined.

    def write(correlation_id, m):             # the writer of HeartbeatResponse v4
        try:
            return pack_iixihx(12, correlation_id, m.throttle_time_ms, m.error_code)
        except ...

A field that a version lacks must have its default, unless it is ignorable, as in Kafka: dropping it
would change the meaning. Kafka's counterpart: the `write` methods of its generated classes.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, assert_never

from protocol import primitives
from protocol.primitives import Unwritable
from protocol.schema import NEVER, RECORDS, ArrayOf, FieldSpec, StructOf, Wire
from protocol.source import MessageLayout, SourceBuilder, is_number, row


def compile_writer(
    layouts: Sequence[MessageLayout], *, prefix: bytes = b"", framed: bool = False
) -> Callable[..., Any]:
    """A function that answers the bytes of one struct after the other.

    The last struct is its last argument; those before it, the headers, are given field by field.
    `prefix`: bytes to begin with. `framed`: the size of it all comes first, as an int32.
    """
    return _Writer(layouts, prefix, framed=framed).compile()


class _Writer:
    def __init__(self, layouts: Sequence[MessageLayout], prefix: bytes, *, framed: bool) -> None:
        *self.headers, self.body = layouts
        self.prefix = prefix
        self.framed = framed
        self.src = SourceBuilder(
            {
                "Unwritable": Unwritable,
                "UNFIT": (struct.error, AttributeError, TypeError),
                "array_struct": primitives.array_struct,
                "pack_size": row("i").pack,
                "string_length": primitives.string_length,
                "uvarint": primitives.uvarint,
            }
        )
        self._run: list[tuple[str, str]] = []  # Numbers that will share a pack.
        self._pieces: list[str] = []  # Expressions of bytes that will share a sum.
        self._parts = ""  # The list that takes the sums, where one sum does not do.
        self._parts_used = False
        self._large = False  # Are there record batches, not to be copied more often than needed?

    def compile(self) -> Callable[..., Any]:
        what = self.body.name
        arguments = [field.name for header in self.headers for field in header.fields()]
        with self.src.block(f"def write({', '.join([*arguments, 'm'])}):"):
            with self.src.block("try:"):
                result = self._collect(self._message)
                if not self.framed:
                    self.src.line(f"return {result}")
                elif self._large:
                    self.src.line("parts_1.insert(0, pack_size(sum(map(len, parts_1))))")
                    self.src.line(f"return {result}")
                else:
                    self.src.line(f"body = {result}")
                    self.src.line("return pack_size(len(body)) + body")
            with self.src.block("except UNFIT as error:"):
                self.src.line(f'raise Unwritable(f"{what}: {{error}}") from error')
        return self.src.function("write", f"<writer of {what}>")

    def _message(self) -> None:
        if self.prefix:
            self._pieces.append(repr(self.prefix))
        for header in self.headers:
            self._struct(header, "")
        self._struct(self.body, "m.")
        if self.framed and not self._pieces and not self._parts_used:
            # All in one run: the frame's size is known, and is packed with the rest.
            size = row("".join(code for code, _ in self._run)).size
            self._run.insert(0, ("i", str(size)))
            self.framed = False

    # -- collecting parts

    def _collect(self, write: Callable[[], None]) -> str:
        """Run `write`; one expression for the bytes that it wrote."""
        outer = self._run, self._pieces, self._parts, self._parts_used
        self._run, self._pieces = [], []
        self._parts, self._parts_used = self.src.fresh("parts"), False
        start = len(self.src.lines)
        write()
        if self._parts_used:
            self._emit()
            self.src.lines.insert(start, "    " * self.src.depth + f"{self._parts} = []")
            result = f"b''.join({self._parts})"
        else:
            self._flush()
            result = " + ".join(self._pieces) or "b''"
        self._run, self._pieces, self._parts, self._parts_used = outer
        return result

    def _emit(self) -> None:
        """Append what is pending to the parts: before a branch or a loop, and at its end."""
        self._flush()
        self._parts_used = True
        if self._pieces:
            self.src.line(f"{self._parts}.append({' + '.join(self._pieces)})")
            self._pieces = []

    def _flush(self) -> None:
        if self._run:
            self._pieces.append(self._packed())
            self._run = []

    def _packed(self) -> str:
        codes = "".join(code for code, _ in self._run)
        if codes == "x" * len(codes):
            return repr(bytes(len(codes)))
        pack = self.src.constant(f"pack_{codes.replace('?', 'bool')}", row(codes).pack)
        return f"{pack}({', '.join(value for code, value in self._run if code != 'x')})"

    # -- structs and fields

    def _struct(self, layout: MessageLayout, owner: str) -> None:
        for field in layout.fields():
            value = f"{owner}{field.name}"
            if not field.mark.in_version(layout.version):
                if not field.mark.ignorable:
                    self._refuse_absent(field, value, layout)
            elif field.mark.tag is None:
                self._field(field, value, layout)
        if layout.flexible:
            self._tag_buffer(layout, owner)

    def _refuse_absent(self, field: FieldSpec, value: str, layout: MessageLayout) -> None:
        with self.src.block(f"if {self._differs(field, value, layout)}:"):
            self.src.line(f'raise Unwritable("{self.body.name} has no {field.name}")')

    def _differs(self, field: FieldSpec, value: str, layout: MessageLayout) -> str:
        """An expression: has this field another value than its default?"""
        default, wire = field.default, field.mark.wire
        if isinstance(wire, StructOf) and default is None and not field.mark.nullable_in(NEVER - 1):
            # Our None stands for the struct of defaults that Kafka has here, and does not write.
            empty = self.src.constant(f"empty_{wire.cls.__name__}", wire.cls())
            return f"{value} is not None and {value} != {empty}"
        if default is None:
            return f"{value} is not None"
        if isinstance(default, bool):
            return f"not {value}" if default else value
        if default == ():
            return f"{value} is None or len({value})"
        return f"{value} != {self.src.literal(f'{layout.cls.__name__}_{field.name}', default)}"

    def _field(self, field: FieldSpec, value: str, layout: MessageLayout) -> None:
        nullable = field.mark.nullable_in(layout.version)
        match field.mark.wire:
            case ArrayOf(element):
                self._array(element, value, layout, nullable=nullable)
            case StructOf(cls) if nullable:
                self._nullable_struct(layout.inner(cls), value, tagged=field.mark.tag is not None)
            case StructOf(cls):
                self._struct(layout.inner(cls), f"{value}.")
            case Wire() as wire:
                self._scalar(wire, value, layout, nullable=nullable)
            case _:
                assert_never(field.mark.wire)

    def _scalar(self, wire: Wire, value: str, layout: MessageLayout, *, nullable: bool) -> None:
        if wire.code == "16s":
            self._run.append(("16s", f"{value}.bytes"))
        elif wire.code:
            self._run.append((wire.code, value))
        elif wire.name == "client_id":
            raw = self.src.fresh("raw")
            self.src.line(f"{raw} = {value}.encode()")
            self._run.append(("h", f"len({raw})"))
            self._raw(raw)
        else:
            self._text_or_bytes(wire, value, layout, nullable=nullable)

    def _text_or_bytes(
        self, wire: Wire, value: str, layout: MessageLayout, *, nullable: bool
    ) -> None:
        raw, size = self.src.fresh("raw"), self.src.fresh("n")
        encoded = f"{value}.encode()" if wire.name == "string" else value
        counted = f"len({raw}) + 1" if layout.flexible else f"len({raw})"
        if nullable:
            null = "0" if layout.flexible else "-1"
            with self.src.block(f"if {value} is None:"):
                self.src.line(f"{raw} = b''")
                self.src.line(f"{size} = {null}")
            with self.src.block("else:"):
                self.src.line(f"{raw} = {encoded}")
                self.src.line(f"{size} = {counted}")
        else:
            self.src.line(f"{raw} = {encoded}")
            self.src.line(f"{size} = {counted}")
        self._length(size, "h" if wire.name == "string" else "i", layout)
        if wire is RECORDS:
            self._large = True
            self._emit()
            self.src.line(f"{self._parts}.append({raw})")
        else:
            self._raw(raw)

    def _length(self, size: str, code: str, layout: MessageLayout) -> None:
        if not layout.flexible:
            self._run.append((code, size))
            return
        long = "string_length" if code == "h" else "uvarint"
        if not self._run:
            self._pieces.append(f"{long}({size})")
            return
        # A length of one byte shares the pack of what stands before it.
        rest = self._packed()
        self._run.append(("B", size))
        self._pieces.append(f"({self._packed()} if {size} < 128 else {rest} + {long}({size}))")
        self._run = []

    def _raw(self, expression: str) -> None:
        self._flush()
        self._pieces.append(expression)

    # -- arrays, nullable structs, tags

    def _array(
        self, element: Wire | StructOf, value: str, layout: MessageLayout, *, nullable: bool
    ) -> None:
        items, size = self.src.fresh("items"), self.src.fresh("n")
        self.src.line(f"{items} = {value}")
        counted = f"len({items}) + 1" if layout.flexible else f"len({items})"
        if nullable:
            counted = f"{0 if layout.flexible else -1} if {items} is None else {counted}"
        self.src.line(f"{size} = {counted}")
        self._length(size, "i", layout)
        if isinstance(element, Wire) and is_number(element):
            some = f"array_struct('{element.code}', len({items})).pack(*{items})"
            self._raw(f"({some} if {items} else b'')" if nullable else some)
            return
        self._emit()
        item = self.src.fresh("item")
        with self.src.block(f"for {item} in {items}{' or ()' if nullable else ''}:"):
            if isinstance(element, StructOf):
                self._struct(layout.inner(element.cls), f"{item}.")
            else:
                self._scalar(element, item, layout, nullable=False)
            self._emit()

    def _nullable_struct(self, inner: MessageLayout, value: str, *, tagged: bool) -> None:
        self._emit()
        with self.src.block(f"if {value} is None:"):
            self.src.line(f"{self._parts}.append({bytes(1) if tagged else bytes((0xFF,))!r})")
        with self.src.block("else:"):
            self._run.append(("b", "1"))
            self._struct(inner, f"{value}.")
            self._emit()

    def _tag_buffer(self, layout: MessageLayout, owner: str) -> None:
        tagged = sorted(layout.present(tagged=True), key=lambda field: field.mark.tag or 0)
        if not tagged:
            self._run.append(("x", ""))
            return
        count, tags = self.src.fresh("count"), self.src.fresh("tags")
        self.src.line(f"{count} = 0")
        self.src.line(f"{tags} = b''")
        for field in tagged:
            value = f"{owner}{field.name}"
            with self.src.block(f"if {self._differs(field, value, layout)}:"):
                payload = self._collect(partial(self._field, field, value, layout))
                self.src.line(f"payload = {payload}")
                tag = primitives.uvarint(field.mark.tag or 0)
                self.src.line(f"{tags} += {tag!r} + uvarint(len(payload)) + payload")
                self.src.line(f"{count} += 1")
        self._run.append(("B", count))
        self._raw(tags)
