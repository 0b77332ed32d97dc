"""Reader source: generates the Python that reads one message at one version.

The code is written for speed. Adjacent numbers are read by one Struct, together with the length of
what follows them. Nothing is checked that a later check would catch: a reader may read past its
frame's end into the next frame, never past the buffer, and one comparison of `pos` with `end` at
the end decides. Only what would cost memory is checked at once: an array's count must fit the bytes
that are left. In a request the elements of all arrays, and the tags, have a limit, because an
element of two bytes on the wire may take two hundred in memory.

    def read(buf, pos, end):                  # the reader of HeartbeatRequest v4, shortened
        try:
            ...                               # the header; group_id
            generation_id_7, n, = unpack_iB(buf, pos)
            pos += 5
            if n > 127: n, pos = long_string_length(buf, pos)
            if n == 0: raise Malformed("member_id is null")
            member_id_8 = buf[pos : (pos := pos + n - 1)].decode('utf-8', 'rollcall.java')
            ...                               # group_instance_id; tags
        if pos > end: ...
        return RequestHeader(...), HeartbeatRequest(group_id_6, generation_id_7, ...)

Bytes after a complete message are ignored, as by Kafka. Kafka's counterpart: the `read` methods of
its generated classes.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

from protocol import primitives
from protocol.primitives import TAGS_UNBOUNDED, UTF8, Malformed
from protocol.schema import ArrayOf, FieldSpec, StructOf, Wire, WireType
from protocol.source import MessageLayout, SourceBuilder, is_number, least_bytes, row

REQUEST_ELEMENTS_MAX: Final = 1_048_576
"""Elements of all arrays of one request, and its tags.

A commit or a fetch of a million partitions passes; reading one takes half a second and 200 MB.
Kafka has no such limit: it reads whatever fits into socket.request.max.bytes.
"""

REQUEST_KEYS_MAX: Final = 200_000
"""Elements of an array that is not inside another: topics, groups, members, keys.

As many as there may be groups (rollcall.groups.max); each of them is looked up and answered.
"""


def compile_reader(
    layouts: Sequence[MessageLayout], *, bounded: bool = False
) -> Callable[..., Any]:
    """A function (buf, pos, end) that reads one struct after the other and returns them.

    `bounded`: of a peer that we do not trust, with the limits above.
    """
    return _Reader(layouts[-1].name, bounded=bounded).compile(layouts)


class _Reader:
    def __init__(self, what: str, *, bounded: bool) -> None:
        self.what = what
        self.bounded = bounded
        self.depth = 0  # of the struct that is being read; 1 is the message itself
        self.src = SourceBuilder(
            {
                "Malformed": Malformed,
                "FAULTS": (Malformed, IndexError, struct.error),
                "named_fault": _named_fault,
                "array_struct": primitives.array_struct,
                "long_length": primitives.long_length,
                "long_string_length": primitives.long_string_length,
                "read_uuid": primitives.read_uuid,
                "read_uvarint": primitives.read_uvarint,
                "skip_tags": primitives.skip_tags,
            }
        )
        self._run: list[tuple[str, str]] = []
        self._after_run: list[str] = []

    def compile(self, layouts: Sequence[MessageLayout]) -> Callable[..., Any]:
        line, block = self.src.line, self.src.block
        with block("def read(buf, pos, end):"):
            with block("try:"):
                line(f"left = {REQUEST_ELEMENTS_MAX if self.bounded else TAGS_UNBOUNDED}")
                values = [self._struct(layout) for layout in layouts]
                self._flush()
            with block("except FAULTS as fault:"):
                line(f'raise named_fault("{self.what}", fault, beyond=pos > end) from None')
            with block("if pos > end:"):
                line(f'raise Malformed("{self.what} ends too early")')
            line(f"return {', '.join(values)}")
        return self.src.function("read", f"<reader of {self.what}>")

    def _struct(self, layout: MessageLayout) -> str:
        """Read a struct; the answer is the expression that makes the object."""
        self.depth += 1
        values = {
            field.name: self._value(field.mark.wire, field, layout)
            for field in layout.present(tagged=False)
        }
        if layout.flexible:
            self._tag_buffer(layout, values)
        self._flush()
        self.depth -= 1
        cls = self.src.constant(layout.cls.__name__, layout.cls)
        arguments = [
            values.get(field.name)
            or self.src.literal(f"{layout.cls.__name__}_{field.name}", field.default)
            for field in layout.fields()
        ]
        return f"{cls}({', '.join(arguments)})"

    def _value(
        self, wire: WireType, field: FieldSpec, layout: MessageLayout, *, element: bool = False
    ) -> str:
        """Read one value into a variable and return the variable's name."""
        target = self.src.fresh(field.name)
        nullable = field.mark.nullable_in(layout.version) and not element
        match wire:
            case Wire(code="16s"):
                self._fixed("16s", target, f"{target} = read_uuid({target})")
            case Wire(code=code, enum=enum) if code:
                if enum is None:
                    self._fixed(code, target)
                else:
                    members = self.src.constant(
                        f"{enum.__name__}_members", {int(e): e for e in enum}
                    )
                    self._fixed(code, target, f"{target} = {members}.get({target}, {target})")
            case Wire(name="client_id"):
                self._fixed("h", "n")
                self._flush()
                self.src.line(f"{target} = {_decoded('n')} if n > 0 else ''")
            case Wire():
                self._text_or_bytes(wire.name, target, field.name, layout, nullable=nullable)
            case ArrayOf() as array:
                self._array(array, target, field, layout, nullable=nullable)
            case StructOf(cls):
                self._inner_struct(layout.inner(cls), target, field, nullable=nullable)
            case _:
                assert_never(wire)
        return target

    # -- runs of numbers

    def _fixed(self, code: str, target: str, after: str | None = None) -> None:
        self._run.append((code, target))
        if after is not None:
            self._after_run.append(after)

    def _flush(self) -> None:
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        if codes == "B":
            self.src.line(f"{self._run[0][1]} = buf[pos]")
            self.src.line("pos += 1")
            self._run = []
            return
        targets = "".join(f"{target}, " for _, target in self._run)
        unpack = self.src.constant(f"unpack_{codes.replace('?', 'bool')}", row(codes).unpack_from)
        self.src.line(f"{targets.rstrip()} = {unpack}(buf, pos)")
        self.src.line(f"pos += {row(codes).size}")
        for line in self._after_run:
            self.src.line(line)
        self._run, self._after_run = [], []

    # -- what has a length

    def _length(self, layout: MessageLayout, code: str) -> tuple[str, str]:
        """Read a length into n; the answer is how n says null, and how many it counts."""
        if not layout.flexible:
            self._fixed(code, "n")
            self._flush()
            return "n < 0", "n"
        self._fixed("B", "n")
        self._flush()
        rest = "long_string_length" if code == "h" else "long_length"
        self.src.line(f"if n > 127: n, pos = {rest}(buf, pos)")
        return "n == 0", "n - 1"

    def _refuse_null(self, null: str, name: str) -> None:
        self.src.line(f'if {null}: raise Malformed("{name} is null")')

    def _text_or_bytes(
        self, kind: str, target: str, name: str, layout: MessageLayout, *, nullable: bool
    ) -> None:
        null, count = self._length(layout, "h" if kind == "string" else "i")
        value = _decoded(count) if kind == "string" else _sliced(count)
        if nullable:
            self.src.line(f"{target} = None if {null} else {value}")
        else:
            self._refuse_null(null, name)
            self.src.line(f"{target} = {value}")

    def _array(
        self,
        array: ArrayOf,
        target: str,
        field: FieldSpec,
        layout: MessageLayout,
        *,
        nullable: bool,
    ) -> None:
        null, count = self._length(layout, "i")
        if nullable:
            with self.src.block(f"if {null}:"):
                self.src.line(f"{target} = None")
            with self.src.block("else:"):
                self._elements(array, target, count, field, layout)
        else:
            self._refuse_null(null, field.name)
            self._elements(array, target, count, field, layout)

    def _elements(
        self, array: ArrayOf, target: str, count: str, field: FieldSpec, layout: MessageLayout
    ) -> None:
        line, element = self.src.line, array.element
        if count != "n":
            line(f"n = {count}")
        least = least_bytes(element, layout)
        with self.src.block(f"if n * {least} > end - pos:"):
            line(f'raise Malformed(f"{{n}} {field.name} cannot fit")')
        if self.bounded:
            self._bound(array, field)
        if is_number(element) and isinstance(element, Wire):
            line(f"{target} = array_struct('{element.code}', n).unpack_from(buf, pos)")
            line(f"pos += n * {least}")
            return
        items = self.src.fresh("items")
        line(f"{items} = []")
        with self.src.block("for _ in range(n):"):
            if isinstance(element, StructOf):
                value = self._struct(layout.inner(element.cls))
            else:
                value = self._value(element, field, layout, element=True)
                self._flush()
            line(f"{items}.append({value})")
        line(f"{target} = tuple({items})")

    def _bound(self, array: ArrayOf, field: FieldSpec) -> None:
        """Hold the count against the limits, before anything is made of the elements."""
        line, block = self.src.line, self.src.block
        at_most = array.at_most or (REQUEST_KEYS_MAX if self.depth == 1 else 0)
        if at_most:
            with block(f"if n > {at_most}:"):
                line(f'raise Malformed(f"{{n}} {field.name}, more than the {at_most} allowed")')
        line("left -= n")
        with block("if left < 0:"):
            line(f'raise Malformed("more than {REQUEST_ELEMENTS_MAX} elements")')

    def _inner_struct(
        self, inner: MessageLayout, target: str, field: FieldSpec, *, nullable: bool
    ) -> None:
        if not nullable:
            value = self._struct(inner)
            self.src.line(f"{target} = {value}")
            return
        # In a tag buffer the mark of a null is an unsigned varint 0, elsewhere an int8 of -1.
        code, null = ("b", "n < 0") if field.mark.tag is None else ("B", "n == 0")
        self._fixed(code, "n")
        self._flush()
        with self.src.block(f"if {null}:"):
            self.src.line(f"{target} = None")
        with self.src.block("else:"):
            value = self._struct(inner)
            self.src.line(f"{target} = {value}")

    # -- tags

    def _tag_buffer(self, layout: MessageLayout, values: dict[str, str]) -> None:
        tagged = layout.present(tagged=True)
        tags = self.src.fresh("tags")
        self._fixed("B", tags)
        self._flush()
        line, block = self.src.line, self.src.block
        if not tagged:
            line(f"if {tags}: pos, left = skip_tags(buf, pos, {tags}, left)")
            return
        for field in tagged:
            values[field.name] = self.src.fresh(field.name)
            default = self.src.literal(f"{layout.cls.__name__}_{field.name}", field.default)
            line(f"{values[field.name]} = {default}")
        with block(f"if {tags}:"):
            line(f"if {tags} > 127: {tags}, pos = long_length(buf, pos)")
            line(f"left -= {tags}")
            with block("if left < 0:"):
                line('raise Malformed("more tags than a request may have elements")')
            with block(f"for _ in range({tags}):"):
                line("tag, pos = read_uvarint(buf, pos)")
                line("size, pos = read_uvarint(buf, pos)")
                for field in tagged:
                    with block(f"if tag == {field.mark.tag}:"):
                        value = self._value(field.mark.wire, field, layout)
                        self._flush()
                        line(f"{values[field.name]} = {value}")
                        line("continue")
                line("pos += size")


def _named_fault(what: str, fault: Exception, *, beyond: bool) -> Malformed:
    """Say which message is at fault. Beyond the frame's end all other faults are made up."""
    if beyond or not isinstance(fault, Malformed):
        return Malformed(f"{what} ends too early")
    return Malformed(f"{what}: {fault}")


def _sliced(count: str) -> str:
    return f"buf[pos : (pos := pos + {count})]"


def _decoded(count: str) -> str:
    return f"{_sliced(count)}.decode{UTF8!r}"
