"""Codec source: generates the Cython that reads and writes the hot messages, from the declarations.

The second generator of `protocol/messages/` and of some records; the first,
`protocol/reader_source.py`, is its oracle.
What it makes is for the usual case, in C: a message is read by one function for all versions, and
every read is checked against the frame's end. Whatever is unusual (a frame that ends too early, a
null where none may be, a tag, too many elements, a value that does not fit) is left to the oracle,
which reads or writes the whole message once more. So a fault has one text, and a frame is refused
if the oracle refuses it. tests/protocol/test_compiled_codec.py compares both.

    cdef object r_HeartbeatRequest(Cursor* c, int v, bint flexible):      # shortened
        group_id = text(c, flexible)
        generation_id = i32(c)
        ...
        group_instance_id = nullable_text(c, flexible) if v >= 3 else None
        if flexible: no_tags(c)
        if c.odd: return None
        return HeartbeatRequest(group_id, generation_id, ...)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from coordinator.classic.generation_messages import GenerationBegunValue
from coordinator.record_schemas import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    GroupKey,
    GroupMemberKey,
    GroupMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from protocol.messages import REQUESTS, RESPONSES
from protocol.messages.offset_fetch import OffsetFetchResponsePartitions
from protocol.names import ApiKey
from protocol.reader_source import REQUEST_ELEMENTS_MAX, REQUEST_KEYS_MAX
from protocol.schema import (
    ERROR_CODE,
    NEVER,
    ArrayOf,
    FieldSpec,
    Mark,
    Message,
    Struct,
    StructOf,
    Wire,
    fields_of,
)

CODEC: Final = "rollcall_codec"
"""The name of the module."""

REQUESTS_READ: Final = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
)
"""What a group of consumers asks for all the time, and each of them after a restart of the broker.
Each API adds some seconds to the build."""

RESPONSES_WRITTEN: Final = REQUESTS_READ

RECORDS_WRITTEN: Final = (
    GenerationBegunValue,
    GroupMetadataValue,
    GroupKey,
    GroupMemberKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupMemberMetadataValue,
    TargetAssignmentMetadataValue,
    TargetAssignmentMemberValue,
    ConsumerGroupCurrentMemberAssignmentValue,
)
"""Values of records that have all members of a group, and what a rebalance of a consumer group
writes for each of them."""

_RUNTIME: Final = (
    "codec_runtime.pxi",
    "committed_offsets.pxi",
    "records.pxi",
    "assignments.pxi",
    "committed_partitions.pxi",
    "accepted_commits.pxi",
    "stored_commits.pxi",
    "java_hash.pxi",
    "machine_clock.pxi",
    "client_sockets.pxi",
)

_STAND_INS: Final = {OffsetFetchResponsePartitions: ("CommittedPartitions", "put_committed")}
"""What may stand in place of a list of these, and the function that writes it."""


def codec_source() -> str:
    """The text of the module."""
    source = _Source()
    for name in _RUNTIME:
        source.lines += Path(__file__).with_name(name).read_text("utf-8").splitlines()
    source.line(f"cdef long long ELEMENTS_MAX = {REQUEST_ELEMENTS_MAX}")
    for api_key in REQUESTS_READ:
        source.reader(REQUESTS[api_key], is_message=True)
    for api_key in RESPONSES_WRITTEN:
        source.writer(RESPONSES[api_key])
    for api_key in RESPONSES_WRITTEN:
        source.error_search(RESPONSES[api_key])
    source.error_searches([RESPONSES[key] for key in RESPONSES_WRITTEN])
    source.table("READERS", "r", [REQUESTS[key] for key in REQUESTS_READ])
    source.table("WRITERS", "w", [RESPONSES[key] for key in RESPONSES_WRITTEN])
    source.imports = []
    for record in RECORDS_WRITTEN:
        source.writer(record)
    source.record_table(RECORDS_WRITTEN)
    return "\n".join(source.lines) + "\n"


class _Source:
    """Lines in the making, and the classes and constants that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.imports: list[str] | None = None
        """What a later import runs; None: what the import of the module itself does."""
        self._done: set[str] = set()
        self._classes: dict[str, type[Struct]] = {}
        self._has_codes: dict[str, bool] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self.depth += 1
        yield
        self.depth -= 1

    def table(self, name: str, kind: str, classes: list[type]) -> None:
        """By api key: the function, and since when the message is flexible."""
        with self.block(f"cdef {kind}_function {name.lower()}_function(int api_key):"):
            for cls in classes:
                self.line(f"if api_key == {int(cls.API_KEY)}: return {kind}_{cls.__name__}")
            self.line("return NULL")
        flexible = {int(cls.API_KEY): cls.FLEXIBLE_SINCE for cls in classes}
        self.line(f"{name} = {flexible!r}")

    def record_table(self, classes: Sequence[type[Message]]) -> None:
        """By the name of the class. Their modules use the codec: imported on first use."""
        with self.block("cdef w_function record_writers_function(str name):"):
            for cls in classes:
                self.line(f"if name == '{cls.__name__}': return w_{cls.__name__}")
            self.line("return NULL")
        flexible = {f"{cls.__module__}.{cls.__name__}": cls.FLEXIBLE_SINCE for cls in classes}
        self.line(f"RECORD_WRITERS = {flexible!r}")
        with self.block("def use_records():"):
            assert self.imports is not None
            names = [line.partition(" = ")[0] for line in self.imports]
            self.line(f"global {', '.join(names)}")
            self.lines += [f"    {line}" for line in self.imports]

    def _global(self, name: str, value: str, *, kind: str = "object", unset: str = "None") -> None:
        if self.imports is None:
            self.line(f"cdef {kind} {name} = {value}")
        else:
            self.line(f"cdef {kind} {name} = {unset}")
            self.imports.append(f"{name} = {value}")

    def _use(self, cls: type[Struct]) -> None:
        """Make the class, and the defaults of its fields, globals of the module."""
        if self._classes.setdefault(cls.__name__, cls) is not cls:
            raise NotImplementedError(f"two classes with the name {cls.__name__}")
        if f"use {cls.__name__}" in self._done:
            return
        self._done.add(f"use {cls.__name__}")
        self._global(cls.__name__, f"_import('{cls.__module__}', '{cls.__name__}')")
        for field in fields_of(cls):
            self._global(_default(cls, field), f"_default({cls.__name__}, '{field.name}')")
            wire = field.mark.wire
            if isinstance(wire, Wire) and wire.enum is not None:
                module, name = wire.enum.__module__, wire.enum.__name__
                if f"{name}_members" not in self._done:
                    self._done.add(f"{name}_members")
                    self.line(f"cdef dict {name}_members = _members('{module}', '{name}')")

    # Readers

    def reader(self, cls: type[Struct], *, is_message: bool = False) -> None:
        """The function of a struct, after those of its parts."""
        if f"r_{cls.__name__}" in self._done:
            return
        self._done.add(f"r_{cls.__name__}")
        self._use(cls)
        for field in fields_of(cls):
            self._reader_of_part(field.mark.wire, at_top=is_message)
        with self.block(f"cdef object r_{cls.__name__}(Cursor* c, int v, bint flexible):"):
            for field in fields_of(cls):
                self._read(cls, field)
            self.line("if flexible: no_tags(c)")
            self.line("if c.odd: return None")
            arguments = ", ".join(f"f_{field.name}" for field in fields_of(cls))
            self.line(f"return {cls.__name__}({arguments})")

    def _reader_of_part(self, wire: object, *, at_top: bool) -> None:
        if isinstance(wire, StructOf):
            self.reader(wire.cls)
        if not isinstance(wire, ArrayOf):
            return
        element = wire.element
        if isinstance(element, StructOf):
            self.reader(element.cls)
        name = _array_reader(wire, at_top=at_top)
        if name in self._done:
            return
        self._done.add(name)
        at_most = wire.at_most or (REQUEST_KEYS_MAX if at_top else 0)
        with self.block(f"cdef object {name}(Cursor* c, int v, bint flexible, bint nullable):"):
            self.line(f"cdef Py_ssize_t n = count(c, flexible, nullable, {at_most})")
            self.line("cdef Py_ssize_t k")
            self.line("if n < 0: return None")
            self.line("cdef tuple items = PyTuple_New(n)")
            self.line("cdef object item")  # never a number of C: a tuple keeps what it is given
            with self.block("for k in range(n):"):
                if isinstance(element, StructOf):
                    self.line(f"item = r_{element.cls.__name__}(c, v, flexible)")
                else:
                    self.line(f"item = {_read_wire(element, Mark(element))}")
                self.line("if c.odd: return None")
                self.line("Py_INCREF(item)")  # PyTuple_SET_ITEM takes one
                self.line("PyTuple_SET_ITEM(items, k, item)")
            self.line("return items")

    def _read(self, cls: type[Struct], field: FieldSpec) -> None:
        mark, target, default = field.mark, f"f_{field.name}", _default(cls, field)
        if mark.tag is not None:
            self.line(f"{target} = {default}")
            return
        value = _read_wire(mark.wire, mark, at_top=hasattr(cls, "API_KEY"))
        condition = _in_version(mark)
        self.line(f"{target} = {value}" + (f" if {condition} else {default}" if condition else ""))
        if isinstance(mark.wire, Wire) and mark.wire.enum is not None:
            self.line(f"{target} = {mark.wire.enum.__name__}_members.get({target}, {target})")

    # Writers

    def writer(self, cls: type[Struct]) -> None:
        """The function of a struct, after those of its parts."""
        if f"w_{cls.__name__}" in self._done:
            return
        self._done.add(f"w_{cls.__name__}")
        self._use(cls)
        for field in fields_of(cls):
            wire = field.mark.wire
            part = wire.element if isinstance(wire, ArrayOf) else wire
            if isinstance(part, StructOf):
                self.writer(part.cls)
            offset = f"_offset_of({cls.__name__}, '{field.name}')"
            self._global(_offset(cls, field), offset, kind="Py_ssize_t", unset="0")
        with self.block(
            f"cdef int w_{cls.__name__}(Out* o, object m, int v, bint flexible) except -1:"
        ):
            self.line("cdef Py_ssize_t n, start")
            self.line("cdef int tags")
            self.line(f"if type(m) is not {cls.__name__}: raise Odd")
            for field in fields_of(cls):
                if field.mark.tag is None:
                    self._write(cls, field)
            with self.block("if flexible:"):
                self._write_tags(cls)
            self.line("return 0")

    def _write(self, cls: type[Struct], field: FieldSpec) -> None:
        mark, default = field.mark, _default(cls, field)
        value = f"field(m, {_offset(cls, field)})"
        condition = _in_version(mark)
        if condition:
            with self.block(f"if {condition}:"):
                self._put(mark.wire, value, mark)
            if not mark.ignorable:
                with self.block("else:"):
                    self.line(f"if not is_default({value}, {default}): raise Odd")
        else:
            self._put(mark.wire, value, mark)

    def _write_tags(self, cls: type[Struct]) -> None:
        """How many fields differ from their defaults, then each with its tag and its size."""
        tagged = [field for field in fields_of(cls) if field.mark.tag is not None]
        if not tagged:
            self.line("put_8(o, 0)")
            return
        self.line("tags = 0")
        for field in tagged:
            with self.block(f"if {self._has_tag(cls, field)}:"):
                self.line("tags += 1")
        self.line("put_8(o, tags)")
        for field in sorted(tagged, key=lambda field: field.mark.tag or 0):
            with self.block(f"if {self._has_tag(cls, field)}:"):
                self.line(f"start = begin_tag(o, {field.mark.tag})")
                self._put_tagged(field.mark, f"field(m, {_offset(cls, field)})")
                self.line("end_tag(o, start)")

    def _has_tag(self, cls: type[Struct], field: FieldSpec) -> str:
        """The condition that a tagged field is written: as `writer_source.py` has it."""
        value, default = f"field(m, {_offset(cls, field)})", _default(cls, field)
        differs = f"not is_default({value}, {default})"
        if field.default == ():
            differs = f"has_items({value})"
        version = _in_version(field.mark)
        return f"{version} and {differs}" if version else differs

    def _put_tagged(self, mark: Mark, value: str) -> None:
        """Null has another mark in a tag."""
        match mark.wire:
            case StructOf() if mark.nullable_since == NEVER:  # its default may be its empty struct
                self.line("raise Odd")
            case StructOf(cls):
                self.line(f"part = {value}")
                self.line("put_8(o, 0 if part is None else 1)")
                with self.block("if part is not None:"):
                    self.line(f"w_{cls.__name__}(o, part, v, flexible)")
            case _:
                self._put(mark.wire, value, mark)

    # Error codes

    def error_search(self, cls: type[Struct]) -> bool:
        """The function that says whether there is an error code in a struct; False: it has none."""
        name = f"e_{cls.__name__}"
        if name in self._has_codes:
            return self._has_codes[name]
        parts = [
            (field, field.mark.wire.element.cls)
            for field in fields_of(cls)
            if isinstance(field.mark.wire, ArrayOf)
            and isinstance(field.mark.wire.element, StructOf)
            and self.error_search(field.mark.wire.element.cls)
        ]
        codes = [field for field in fields_of(cls) if field.mark.wire is ERROR_CODE]
        self._has_codes[name] = bool(parts or codes)
        if not parts and not codes:
            return False
        with self.block(f"cdef bint {name}(object m) except *:"):
            self.line(f"if type(m) is not {cls.__name__}: raise Odd")
            for field in codes:
                self.line(f"if field(m, {_offset(cls, field)}): return True")
            for field, part in parts:
                self.line(f"items = field(m, {_offset(cls, field)})")
                if part in _STAND_INS:  # it has no codes
                    self.line(f"if type(items) is {_STAND_INS[part][0]}: items = None")
                self.line("if items is not None and type(items) not in (list, tuple): raise Odd")
                with self.block("if items is not None:"), self.block("for item in items:"):
                    self.line(f"if e_{part.__name__}(item): return True")
            self.line("return False")
        return True

    def error_searches(self, classes: Sequence[type[Message]]) -> None:
        with self.block("def has_errors(message):"):
            self.line(
                '"""Whether there is an error code in it; None: of a message not known here."""'
            )
            self.line("cdef object cls = type(message)")
            with self.block("try:"):
                for cls in classes:
                    self.line(f"if cls is {cls.__name__}: return e_{cls.__name__}(message)")
            with self.block("except Odd:"):
                self.line("pass")
            self.line("return None")

    def _put(self, wire: object, value: str, mark: Mark, *, in_place: bool = False) -> None:
        nullable = _nullable(mark)
        match wire:
            case Wire(name="bool"):
                self.line(f"put_8(o, 1 if {value} else 0)")
            case Wire(code="16s"):
                self.line(f"put_raw(o, {value}.bytes, 16)")
            case Wire(code=code) if code:
                self.line(f"put_{_CODES[code]}(o, whole({value}))")
            case Wire(name="string"):
                self.line(f"put_text(o, {value}, flexible, {nullable})")
            case Wire(name="bytes"):
                self.line(f"put_bytes(o, {value}, flexible, {nullable})")
            case ArrayOf(StructOf(cls)) if cls in _STAND_INS and not in_place:
                stand_in, put = _STAND_INS[cls]
                with self.block(f"if type({value}) is {stand_in}:"):
                    self.line(f"{put}(o, {value}, flexible)")
                with self.block("else:"):
                    self._put(wire, value, mark, in_place=True)
            case ArrayOf(element):
                self.line(f"items = {value}")
                self.line(f"put_count(o, items, flexible, {nullable})")
                with self.block("if items is not None:"), self.block("for item in items:"):
                    self._put(element, "item", Mark(element))
            case StructOf(cls) if mark.nullable_since == NEVER:
                self.line(f"w_{cls.__name__}(o, {value}, v, flexible)")
            case StructOf(cls):
                self.line(f"part = {value}")
                self.line(f"put_mark(o, part, {nullable})")
                with self.block("if part is not None:"):
                    self.line(f"w_{cls.__name__}(o, part, v, flexible)")
            case _:
                raise NotImplementedError(f"{wire} in a compiled message")


_CODES: Final = {"b": "i8", "h": "i16", "H": "u16", "i": "i32", "q": "i64"}


def _default(cls: type[Struct], field: FieldSpec) -> str:
    return f"d_{cls.__name__}_{field.name}"


def _offset(cls: type[Struct], field: FieldSpec) -> str:
    return f"at_{cls.__name__}_{field.name}"


def _in_version(mark: Mark) -> str:
    """The condition that a version has the field; "" if each of them has."""
    conditions = [f"v >= {mark.first}"] if mark.first else []
    if mark.last != NEVER:
        conditions.append(f"v <= {mark.last}")
    return " and ".join(conditions)


def _nullable(mark: Mark) -> str:
    return "False" if mark.nullable_since == NEVER else f"v >= {mark.nullable_since}"


def _array_reader(wire: ArrayOf, *, at_top: bool) -> str:
    element = wire.element
    name = element.cls.__name__ if isinstance(element, StructOf) else element.name
    return f"a_{name}_{wire.at_most or ('top' if at_top else 0)}"


def _read_wire(wire: object, mark: Mark, *, at_top: bool = False) -> str:
    nullable = _nullable(mark)
    match wire:
        case Wire(name="bool"):
            return "(i8(c) != 0)"
        case Wire(code="16s"):
            return "uuid(c)"
        case Wire(code=code) if code:
            return f"{_CODES[code]}(c)"
        case Wire(name="string"):
            return f"text(c, flexible, {nullable})"
        case Wire(name="bytes"):
            return f"data(c, flexible, {nullable})"
        case ArrayOf():
            return f"{_array_reader(wire, at_top=at_top)}(c, v, flexible, {nullable})"
        case StructOf(cls) if mark.nullable_since == NEVER:
            return f"r_{cls.__name__}(c, v, flexible)"
        case _:
            raise NotImplementedError(f"{wire} in a compiled message")
