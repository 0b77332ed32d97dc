"""Record formats: groups and committed offsets as bytes in `__consumer_offsets`, and back.

State -> Record(key, value), byte for byte as Kafka 4.3.1 writes it, and back again from any version
that a Kafka ever wrote. A key opens with its record type, a value with its version, both int16; a
record without a value is a tombstone. Decisions call the writers, `restore.py` calls the readers.
The records of consumer groups are in `consumer/records.py` and `consumer/restore.py`.

Offset commits are the bulk of the log, so they are packed and unpacked by hand; a group's metadata
is written once a rebalance and goes through the compiled schemas.
Kafka's counterpart: `GroupCoordinatorRecordHelpers`, `CoordinatorRecordSerde`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from struct import Struct
from struct import error as struct_error
from sys import intern
from typing import Final, NamedTuple, Protocol, TypeVar, cast

from coordinator.group import CommittedOffset
from coordinator.record_schemas import (
    RECORD_SCHEMAS,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    MemberMetadata,
    OffsetCommitValue,
)
from coordinator.stored_records import StoredGroup, StoredMember
from protocol.compiled_codec import function_in_c
from protocol.compiler import reader, writer
from protocol.names import (
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicId,
    TopicName,
)
from protocol.primitives import (
    STRING_MAX_BYTES,
    UTF8,
    Malformed,
    Unwritable,
    read_uuid,
    string_length,
)
from protocol.schema import Message
from seams.java_hash import hash_map_order
from storage.api import Record, RecordPair

LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2

M = TypeVar("M", bound=Message)

KEY_PREFIXES_CACHED: Final = 32_768
"""Keys kept ready, one per (group, topic): some 200 bytes each."""

KEY_PREFIXES_READ: Final = 8_192
"""The same for a load, which meets what is committed together together."""

COMMIT_TIMES_CACHED: Final = 64

TOPIC_IDS_CACHED: Final = 4_096

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")


class UnreadableRecord(Exception):
    """A record that must be understood and is not: it fails the load of its partition."""

    def __init__(self, record_type: int, value_version: int | None, reason: str) -> None:
        version = "" if value_version is None else f", value version {value_version}"
        super().__init__(f"record type {record_type}{version}: {reason}")
        self.record_type = record_type
        self.value_version = value_version
        self.reason = reason


def record_type(key: bytes | None) -> int:
    """What kind of thing this key names."""
    if key is None or len(key) < _INT16.size:
        raise UnreadableRecord(-1, None, "the key is too short to name a record type")
    kind: int = _INT16.unpack_from(key)[0]
    return kind


# ---------------------------------------------------------------- committed offsets (type 1)

# The value when the metadata is empty, as it nearly always is: one Struct up to the commit time.
_VALUE_V4: Final = Struct(">hqiBq")  # version, offset, leader epoch, length + 1, commit time
_WHOLE_V4: Final = Struct(">hqiBq3s16s")  # and the tag buffer with the topic id
_HEAD_V3: Final = Struct(">hqi")
_HEAD_V1: Final = Struct(">hq")
_TAIL_V1: Final = Struct(">qq")
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"  # a tag buffer of one: tag 0, sixteen bytes
_NO_TAGS: Final = b"\x00"


@lru_cache(maxsize=KEY_PREFIXES_CACHED)
def offset_key_prefix(group_id: GroupId, topic: TopicName) -> bytes:
    """The key of an offset commit up to its partition, the last four bytes."""
    return _INT16.pack(OFFSET_COMMIT) + _string(group_id) + _string(topic)


def offset_commit_key(group_id: GroupId, topic: TopicName, partition: int) -> bytes:
    return offset_key_prefix(group_id, topic) + _INT32.pack(partition)


def add_offset_commits(
    records: list[RecordPair],
    group_id: GroupId,
    topic: TopicName,
    commits: Mapping[int, CommittedOffset],
    value_version: int,
) -> None:
    """Append the record of each committed offset of one topic: the hottest loop of the writers."""
    prefix = offset_key_prefix(group_id, topic)
    if value_version != 4 or _ADD_IN_C is None or not _ADD_IN_C(records, prefix, commits, _tags_of):
        add_in_python(records, prefix, commits, value_version)


def add_in_python(
    records: list[RecordPair],
    prefix: bytes,
    commits: Mapping[int, CommittedOffset],
    value_version: int,
) -> None:
    """The same after the key's `prefix`: the oracle of the function in C."""
    tag_of: TopicId | None = None
    tags = _NO_TAGS
    for partition, commit in commits.items():
        if commit.metadata or commit.expire_at_ms != -1 or value_version != 4:
            value = offset_commit_value(commit, value_version)
        else:
            topic_id = commit.topic_id
            if topic_id is not tag_of:
                tags = _tags_of(topic_id)
                tag_of = topic_id
            offset, leader_epoch = commit.committed_offset, commit.leader_epoch
            value = _VALUE_V4.pack(4, offset, leader_epoch, 1, commit.committed_at_ms) + tags
        records.append((prefix + _INT32.pack(partition), value))


def _tags_of(topic_id: TopicId) -> bytes:
    return _topic_id_tags(topic_id.int)


_ADD_IN_C: Final = function_in_c("add_offset_commits")


def offset_commit_value(commit: CommittedOffset, value_version: int) -> bytes:
    """The value in Kafka's choice of version: 1 when the client set an expiry, else the newest.

    `value_version` is what the configuration takes for the newest: 4, or 3 for readers that do not
    know the flexible format.
    """
    offset, at_ms = commit.committed_offset, commit.committed_at_ms
    if commit.expire_at_ms != -1:
        return (
            _HEAD_V1.pack(1, offset)
            + _string(commit.metadata)
            + _TAIL_V1.pack(at_ms, commit.expire_at_ms)
        )
    if value_version == 3:
        head = _HEAD_V3.pack(3, offset, commit.leader_epoch)
        return head + _string(commit.metadata) + _INT64.pack(at_ms)
    text = commit.metadata.encode()
    head = _HEAD_V3.pack(4, offset, commit.leader_epoch)
    tags = _topic_id_tags(commit.topic_id.int)
    return head + string_length(len(text) + 1) + text + _INT64.pack(at_ms) + tags


def batch_bytes_at_most(records: Sequence[RecordPair]) -> int:
    """No batch of these records is larger: 61 bytes, and up to 21 beside each key and value."""
    return 61 + sum(21 + len(key) + len(value or b"") for key, value in records)


def add_offset_tombstones(
    records: list[RecordPair], group_id: GroupId, topic: TopicName, partitions: Iterable[int]
) -> None:
    prefix = offset_key_prefix(group_id, topic)
    records.extend((prefix + _INT32.pack(partition), None) for partition in partitions)


class OffsetKey(NamedTuple):
    group_id: GroupId
    topic: TopicName
    partition: int


_new_offset_key: Final[Callable[[tuple[GroupId, TopicName, int]], OffsetKey]] = partial(
    tuple.__new__, OffsetKey
)


def read_offset_key(key: bytes) -> OffsetKey:
    """The key of a record of type 1, or of its ancestor, type 0."""
    group_id, topic = read_offset_key_prefix(key[:-4])
    return _new_offset_key((group_id, topic, _INT32.unpack_from(key, len(key) - 4)[0]))


@lru_cache(maxsize=KEY_PREFIXES_READ)
def read_offset_key_prefix(prefix: bytes) -> tuple[GroupId, TopicName]:
    """Cached for the sake of a load, which meets each (group, topic) again and again."""
    try:
        group_id, pos = _read_string(prefix, 2)
        topic, pos = _read_string(prefix, pos)
    except (IndexError, struct_error) as error:
        raise UnreadableRecord(OFFSET_COMMIT, None, f"the key breaks off: {error}") from error
    if pos != len(prefix):
        raise UnreadableRecord(OFFSET_COMMIT, None, "the key does not end with its partition")
    return GroupId(group_id), TopicName(intern(topic))


@lru_cache(maxsize=COMMIT_TIMES_CACHED)
def one_time(committed_at_ms: int) -> int:
    """The partitions of one commit share its time: 32 bytes each that a load need not keep."""
    return committed_at_ms


def read_offset_commit_value(value: bytes, kind: int = OFFSET_COMMIT) -> CommittedOffset:
    """What was committed, from a value of any version."""
    if len(value) == _WHOLE_V4.size and kind == OFFSET_COMMIT:
        # What nearly all of a log consists of: version 4, no metadata, a topic id.
        version, offset, epoch, length, committed_at_ms, tags, raw_id = _WHOLE_V4.unpack(value)
        if version == 4 and length == 1 and tags == _TOPIC_ID_TAG:
            time = one_time(committed_at_ms)
            return CommittedOffset(offset, epoch, "", time, -1, read_uuid(raw_id))
    if kind == LEGACY_OFFSET_COMMIT:
        old = read_value(LegacyOffsetCommitValue, kind, value)
        return CommittedOffset(old.offset, -1, old.metadata, old.commit_timestamp)
    new = read_value(OffsetCommitValue, kind, value)
    return CommittedOffset(
        new.offset,
        new.leader_epoch,
        new.metadata,
        new.commit_timestamp,
        new.expire_timestamp,
        new.topic_id,
    )


# ---------------------------------------------------------------- groups (type 2)

_GROUP_METADATA_VERSION: Final = 3  # Kafka reads 4 as well, and writes 3.

_BEFORE_MEMBERS: Final = 2 + 2 + 4 + 2 + 2 + 8 + 4
"""Version, an empty type, generation, no protocol, no leader, time, number of members."""


class MemberDescription(Protocol):
    """What a group's record has of a member, whatever it reads."""

    @property
    def member_id(self) -> MemberId: ...
    @property
    def group_instance_id(self) -> GroupInstanceId | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def session_timeout_ms(self) -> int: ...


class MemberState(MemberDescription, Protocol):
    """What a group's record keeps of a member."""

    @property
    def subscription(self) -> bytes: ...
    @property
    def assignment(self) -> bytes: ...


def group_metadata_key(group_id: GroupId) -> bytes:
    return _INT16.pack(GROUP_METADATA) + _string(group_id)


def group_metadata_record(
    group_id: GroupId,
    *,
    protocol_type: str | None,
    generation_id: int,
    protocol_name: str | None,
    leader_id: str | None,
    state_since_ms: int,
    members: Iterable[MemberState],
) -> Record:
    """A group and all its members in one record: they are stored together or not at all.

    No leader and no protocol, as in an empty group, are nulls; no protocol type is "". The members
    stand in the order in which Java walks through a map of them.
    """
    members = list(members)
    ids = [member.member_id for member in members]
    places = {member_id: place for place, member_id in enumerate(hash_map_order(ids))}
    value = GroupMetadataValue(
        protocol_type or "",
        generation_id,
        protocol_name,
        leader_id or None,
        state_since_ms,
        [
            MemberMetadata(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.subscription,
                member.assignment,
            )
            for member in sorted(members, key=lambda member: places[member.member_id])
        ],
    )
    return Record(group_metadata_key(group_id), _group_writer()(value))


def group_record_of_parts(
    group_id: GroupId,
    *,
    protocol_type: str | None,
    generation_id: int,
    protocol_name: str | None,
    leader_id: str | None,
    state_since_ms: int,
    members: int,
    parts: Sequence[bytes],
) -> Record:
    """The same record, of members that are written already: see `member_part`. `members`: how many.

    Their parts are in the order of `members_in_order`.
    """
    value = GroupMetadataValue(
        protocol_type or "", generation_id, protocol_name, leader_id or None, state_since_ms, ()
    )
    head = _group_writer()(value)[: -_INT32.size] + _INT32.pack(members)
    return Record(group_metadata_key(group_id), head + b"".join(parts))


def members_in_order(member_ids: Iterable[MemberId]) -> list[MemberId]:
    """As Kafka writes them: in the order of its HashMap of members."""
    return cast("list[MemberId]", hash_map_order([*member_ids]))


def member_part(member: MemberDescription) -> bytes:
    """How a member begins in the group's record; its subscription and assignment follow.

    Both as `bytes_part`.
    """
    metadata = MemberMetadata(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
    )
    alone = _group_writer()(GroupMetadataValue("", 0, None, None, 0, (metadata,)))
    return alone[_BEFORE_MEMBERS : -2 * _INT32.size]


def bytes_part(value: bytes) -> bytes:
    """Bytes behind their length."""
    return length_part(len(value)) + value


def length_part(length: int) -> bytes:
    return _INT32.pack(length)


@cache
def _group_writer() -> Callable[[GroupMetadataValue], bytes]:
    version = _GROUP_METADATA_VERSION
    return writer(GroupMetadataValue, version, prefix=_INT16.pack(version))


def new_group_record(group_id: GroupId, at_ms: int) -> Record:
    """A classic group as it begins: without members, in generation 0."""
    return group_metadata_record(
        group_id,
        protocol_type=None,
        generation_id=0,
        protocol_name=None,
        leader_id=None,
        state_since_ms=at_ms,
        members=(),
    )


def group_tombstone(group_id: GroupId) -> Record:
    return Record(group_metadata_key(group_id), None)


def read_group_key(key: bytes) -> GroupId:
    return GroupId(read_key(GroupMetadataKey, GROUP_METADATA, key).group)


def read_group_metadata_value(value: bytes) -> StoredGroup:
    stored = read_value(GroupMetadataValue, GROUP_METADATA, value)
    return StoredGroup(
        stored.protocol_type or None,
        GenerationId(stored.generation),
        stored.protocol,
        None if stored.leader is None else MemberId(stored.leader),
        stored.current_state_timestamp,
        [
            StoredMember(
                MemberId(member.member_id),
                None
                if member.group_instance_id is None
                else GroupInstanceId(member.group_instance_id),
                member.client_id,
                member.client_host,
                member.rebalance_timeout,
                member.session_timeout,
                member.subscription,
                member.assignment,
            )
            for member in stored.members
        ],
    )


# ---------------------------------------------------------------- any record, for showing it


class DecodedRecord(NamedTuple):
    """A record in the classes of `record_schemas.py`; a tombstone has neither version nor value."""

    name: str
    key: Message
    value_version: int | None
    value: Message | None


def decode_record(key: bytes | None, value: bytes | None) -> DecodedRecord | None:
    """What this record says; None when its type is known to nobody."""
    kind = record_type(key)
    schema = RECORD_SCHEMAS.get(kind)
    if schema is None or key is None:
        return None
    decoded_key = read_key(schema.key, kind, key)
    if value is None:
        return DecodedRecord(schema.name, decoded_key, None, None)
    decoded_value = read_value(schema.value, kind, value)
    return DecodedRecord(schema.name, decoded_key, _value_version(kind, value), decoded_value)


# ---------------------------------------------------------------- pieces


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > STRING_MAX_BYTES:
        raise Unwritable(f"a string of {len(encoded)} bytes")
    return _INT16.pack(len(encoded)) + encoded


@lru_cache(maxsize=TOPIC_IDS_CACHED)
def _topic_id_tags(topic_id: int) -> bytes:
    """Of an id by its number, which a cache finds sooner than it finds the UUID."""
    return _TOPIC_ID_TAG + topic_id.to_bytes(16, "big") if topic_id else _NO_TAGS


def _read_string(buf: bytes, pos: int) -> tuple[str, int]:
    length: int = _INT16.unpack_from(buf, pos)[0]
    end = pos + 2 + length
    if length < 0 or end > len(buf):
        raise IndexError(f"a string of {length} bytes at {pos}")
    return buf[pos + 2 : end].decode(*UTF8), end


def _value_version(kind: int, value: bytes) -> int:
    if len(value) < _INT16.size:
        raise UnreadableRecord(kind, None, "the value is too short to name its version")
    return int.from_bytes(value[:2], "big", signed=True)


def read_key(cls: type[M], kind: int, key: bytes) -> M:
    try:
        return reader(cls, 0)(key, 2, len(key))
    except Malformed as error:
        raise UnreadableRecord(kind, None, f"key: {error}") from error


def read_value(cls: type[M], kind: int, value: bytes) -> M:
    version = _value_version(kind, value)
    if version not in cls.VERSIONS:
        raise UnreadableRecord(kind, version, "this version is not known")
    try:
        return reader(cls, version)(value, 2, len(value))
    except Malformed as error:
        raise UnreadableRecord(kind, version, str(error)) from error
