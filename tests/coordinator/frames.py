"""Frames of chance for the coordinator: valid ones, with the most extreme values that fit.

A request is written from its declaration and from raw bytes, so that a string may hold what is no
UTF-8: the product's own writer could not say that. `Frames.next` makes one for a version and an API
of the coordinator; `know` tells it which members and generations there are.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from protocol.codec import RequestHeader
from protocol.headers import ResponseHeader
from protocol.messages import REQUESTS
from protocol.names import ApiKey
from protocol.primitives import uvarint
from protocol.schema import ArrayOf, FieldSpec, Message, Struct, StructOf, Wire, fields_of
from tests.world import subscription

__all__ = [
    "CONSUMER_GROUP_REQUESTS",
    "COORDINATOR_REQUESTS",
    "Frames",
    "RequestHeader",
    "ResponseHeader",
]

COORDINATOR_REQUESTS: Final = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
)
CONSUMER_GROUP_REQUESTS: Final = (
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
)
OFTEN: Final = (ApiKey.JOIN_GROUP, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT)

LONGEST: Final = 32_767
LONG_ARRAY: Final = 9
FRAME_BYTES_MAX: Final = 40_000_000  # some frames are refused by their size
EXTREME_STRINGS: Final = (
    b"",
    b"x" * LONGEST,
    b"x" * (LONGEST - 36),  # one byte too long with a hyphen and a UUID behind it
    b"x" * (LONGEST - 37),
    b"\xff",
    b"\xff" * 10_922,  # fits again once it is read: 32,766 bytes
    b"\xff" * 10_923,
    b"\xff" * LONGEST,
    b"a" * 30_000 + b"\xff" * 1_000,
    b"\xed\xa0\x80" * 1_000,  # surrogates
    b"\xf0\x9f\xa6\x93" * 8_191,
    b"\xe2\x82\xac" * 10_922,
    b"\xc3",
    b"line\nbreak\x00\x1b[31m",
)
EXTREME_INTS: Final = {
    "b": (0, 1, -1, 127, -128),
    "h": (0, 1, -1, 32_767, -32_768),
    "i": (0, 1, -1, 2, 6_000, 10_000, (1 << 31) - 1, -(1 << 31)),
    "q": (0, 1, -1, 100, (1 << 63) - 1, -(1 << 63)),
}
EXTREME_BYTES: Final = (b"", b"\xff" * 9, bytes(70_000), b"\x00\x01\x7f\xff\xff\xff", b"\x80" * 5)
COUNTS: Final = (0, 1, 1, 1, 2, 3)
CONSUMER_HEARTBEAT: Final = "ConsumerGroupHeartbeatRequest"
OFTEN_NULL: Final = ("instance_id", "rack_id", "subscribed_topic_regex", "server_assignor")
MEMBER_EPOCHS: Final = (0, 0, 0, 1, 2, 3, -1, -2)
NAMES: Final = (b"g", b"h", b"t", b"t", b"consumer", b"range", b"client")


class Frames:
    def __init__(
        self,
        random: Random,
        requests: Sequence[ApiKey] = (*COORDINATOR_REQUESTS, *CONSUMER_GROUP_REQUESTS, *OFTEN),
    ) -> None:
        self.random = random
        self.requests = requests
        self.member_ids: list[bytes] = [b""]
        self.generations: list[int] = [1]
        self.group_ids: list[bytes] = [b"g", b"g", b"g", b"h", b"join"]
        self.inside = ""  # the struct that is being written
        self.topic_ids: list[bytes] = [bytes(16)]
        self.extreme = random.choice((0.01, 0.03, 0.3))  # how often a value is
        self.large = 0

    def next(self) -> bytes:
        """A frame without its size, as `decode_request` gets it."""
        api_key = self.random.choice(self.requests)
        cls = REQUESTS[api_key]
        version = self.random.choice((*cls.VERSIONS, cls.VERSIONS[-1], cls.VERSIONS[-1]))
        flexible = version >= cls.FLEXIBLE_SINCE
        client_id = self._string("client_id")
        head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4)
        head += len(client_id).to_bytes(2, "big") + client_id
        if flexible:
            head += self._tags()
        return head + self._struct(cls, version, flexible=flexible)

    # ------------------------------------------------------------ structs and fields

    def _struct(self, cls: type[Struct] | type[Message], version: int, *, flexible: bool) -> bytes:
        self.inside = cls.__name__
        raw = b"".join(
            self._field(field, version, flexible=flexible)
            for field in fields_of(cls)
            if field.mark.in_version(version) and field.mark.tag is None
        )
        return raw + (self._tags() if flexible else b"")

    def _tags(self) -> bytes:
        """Tags that nobody knows, now and then."""
        if self.random.random() > self.extreme / 4:
            return b"\0"
        return b"\x02" + b"\x63\x03abc" + b"\xff\xff\xff\xff\x07\0"

    def _field(self, field: FieldSpec, version: int, *, flexible: bool) -> bytes:
        wire, name = field.mark.wire, field.name
        often = 0.8 if "instance" in name else 0.1
        if self.inside == CONSUMER_HEARTBEAT and name in OFTEN_NULL:
            often = 0.8
        if field.mark.nullable_in(version) and self.random.random() < often:
            if isinstance(wire, StructOf):
                return b"\xff"
            if flexible:
                return b"\0"
            return b"\xff\xff" if isinstance(wire, Wire) and wire.name == "string" else b"\xff" * 4
        if isinstance(wire, ArrayOf):
            count = 0 if self._owns_nothing(name) else self._count(wire)
            if count > LONG_ARRAY:  # of one value, again and again
                item = self._value(wire.element, name, version, flexible=flexible)
                values = [item] * min(count, FRAME_BYTES_MAX // len(item))
            else:
                values = [
                    self._value(wire.element, name, version, flexible=flexible)
                    for _ in range(count)
                ]
            size = uvarint(len(values) + 1) if flexible else len(values).to_bytes(4, "big")
            return size + b"".join(values)
        return self._value(wire, name, version, flexible=flexible)

    def _owns_nothing(self, name: str) -> bool:
        """As one that joins must say."""
        is_owned = self.inside == CONSUMER_HEARTBEAT and name == "topic_partitions"
        return is_owned and self.random.random() < 0.7

    def _count(self, wire: ArrayOf) -> int:
        """Long arrays are of one value, again and again."""
        if self.large and self.random.random() < self.extreme / 4:
            return self.random.choice((9, self.large))
        return self.random.choice(COUNTS)

    def _value(self, wire: object, name: str, version: int, *, flexible: bool) -> bytes:
        match wire:
            case StructOf(cls):
                return self._struct(cls, version, flexible=flexible)
            case Wire(name="bool"):
                return self.random.choice((b"\0", b"\1"))
            case Wire(code="16s"):
                return self.random.choice(self.topic_ids)
            case Wire(name="string"):
                text = self._string(name)
                size = uvarint(len(text) + 1) if flexible else len(text).to_bytes(2, "big")
                return size + text
            case Wire(name="bytes" | "records"):
                blob = self._bytes()
                size = uvarint(len(blob) + 1) if flexible else len(blob).to_bytes(4, "big")
                return size + blob
            case Wire(code=code):
                if code in "dH":
                    return self.random.randbytes(8 if code == "d" else 2)
                width = {"b": 1, "h": 2, "i": 4, "q": 8}[code]
                return self._int(name, code).to_bytes(width, "big", signed=True)
        raise AssertionError(wire)

    # ------------------------------------------------------------ values

    def _string(self, name: str) -> bytes:
        if self.random.random() < self.extreme:
            return self.random.choice(EXTREME_STRINGS)
        if self.inside == CONSUMER_HEARTBEAT and name in ("group_id", "member_id"):
            return self.random.choice((b"c", b"c", b"c", b"c2", *self._known(name)))
        if "member_id" in name:
            return self.random.choice(self.member_ids)
        if "instance" in name:
            return self.random.choice((b"a", b"b", b"x" * 300))
        if "type" in name:
            return b"consumer"
        if name == "subscribed_topic_names":
            return b"t"
        if name == "subscribed_topic_regex":
            return self.random.choice((b"", b"t.*", b"("))
        if name == "server_assignor":
            return self.random.choice((b"range", b"uniform", b"uniform", b"none"))
        if name == "protocol_name" or self.inside == "JoinGroupRequestProtocol":
            return b"range"
        if name == "name":
            return b"t"
        if name in ("group_id", "groups", "groups_names"):
            return self.random.choice(self.group_ids)
        return self.random.choice(NAMES)

    def _known(self, name: str) -> list[bytes]:
        return self.group_ids[-2:] if name == "group_id" else self.member_ids[:2]

    def _bytes(self) -> bytes:
        if self.random.random() < self.extreme:
            return self.random.choice(EXTREME_BYTES)
        return self.random.choice((subscription("t"), b"assignment"))

    def _int(self, name: str, code: str) -> int:
        if self.random.random() < self.extreme:
            return self.random.choice(EXTREME_INTS[code])
        if name == "member_epoch":
            return self.random.choice((*MEMBER_EPOCHS, *self.generations[:2]))
        if name == "session_timeout_ms":
            return self.random.choice((6_000, 10_000))
        if name == "rebalance_timeout_ms":
            return self.random.choice((0, 6_000, 60_000, 60_000))
        if "generation" in name:
            return self.random.choice(self.generations)
        if name == "partition_index":
            return self.random.choice((0, 1, 99, 100))
        return self.random.choice(EXTREME_INTS[code][:2])

    def know(self, member_ids: Sequence[str], generations: Sequence[int]) -> None:
        """Say these in what comes: what there is, so that members get beyond their first join."""
        self.member_ids = [b"", *(text.encode() for text in member_ids)]
        self.generations = [-1, *generations, *generations]
        self.group_ids = [b"g", b"g", b"g", b"h", b"join", *self.member_ids[:2]]
