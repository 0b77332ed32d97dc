"""Sample records: every type and every value version, encoded by our schemas.

`record.py` has the real Kafka read them; test_records_golden.py asks whether it read what we said.
"""

from collections.abc import Iterator
from struct import pack
from uuid import UUID

from coordinator import record_schemas as schemas
from coordinator.record_schemas import RECORD_SCHEMAS
from protocol.compiler import writer
from protocol.schema import Message
from storage.api import Record

ID_1, ID_2 = UUID(int=(1 << 127) + 7), UUID("6f1d3c1e-5b7a-4f0e-9d67-0c7b1a2f3e4d")


def sample_records() -> list[Record]:
    return [*_values(), *_tombstones()]


def record_of(kind: int, key: Message, version: int, value: Message) -> Record:
    """A record as the schemas write it, with the envelope that record.py and Kafka put around."""
    key_bytes = writer(RECORD_SCHEMAS[kind].key, 0, prefix=pack(">h", kind))(key)
    value_class = RECORD_SCHEMAS[kind].value
    return Record(key_bytes, writer(value_class, version, prefix=pack(">h", version))(value))


def _tombstones() -> Iterator[Record]:
    for kind, schema in RECORD_SCHEMAS.items():
        yield Record(writer(schema.key, 0, prefix=pack(">h", kind))(schema.key()), None)


def _values() -> Iterator[Record]:
    offset_key = schemas.OffsetCommitKey("g-é", "orders", 2_000_000)
    legacy = schemas.LegacyOffsetCommitValue(12, "old", 1_400_000_000_000)
    yield record_of(0, offset_key, 0, legacy)
    for version in schemas.OffsetCommitValue.VERSIONS:
        for metadata in ("", "a note: é \U0001f600", "x" * 300):
            commit = schemas.OffsetCommitValue(1 << 40, 17, metadata, 1_700_000_000_123, -1, ID_2)
            if version == 1:
                commit.expire_timestamp = 1_700_000_060_123
            yield record_of(1, offset_key, version, commit)
    yield record_of(1, offset_key, 4, schemas.OffsetCommitValue(-1, -1, "", 0))
    yield from _classic_groups()
    yield from _consumer_groups()
    yield from _share_groups()
    yield from _streams_groups()


def _classic_groups() -> Iterator[Record]:
    key = schemas.GroupMetadataKey("connect-cluster")
    for version in schemas.GroupMetadataValue.VERSIONS:
        members = [
            schemas.MemberMetadata("m-1", None, "c", "/127.0.0.1", 60_000, 10_000, b"s1", b"a1"),
            schemas.MemberMetadata(
                "m-2", "static-2", "c", "/10.0.0.9", -1, 45_000, b"", b"\x00\xff"
            ),
        ]
        full = schemas.GroupMetadataValue("connect", 7, "sessioned", "m-1", 1_700_000_000_123)
        full.members = members
        yield record_of(2, key, version, full)
        empty = schemas.GroupMetadataValue("connect", 8, None, None, 1_700_000_000_456)
        yield record_of(2, key, version, empty)


def _consumer_groups() -> Iterator[Record]:
    group = schemas.GroupKey("g-848")
    member = schemas.GroupMemberKey("g-848", "nVBqyNyEQpCMPdL4z_nV0g")
    with_epochs = schemas.TopicPartitionsWithEpochs
    yield record_of(3, group, 0, schemas.ConsumerGroupMetadataValue(5, -(1 << 60)))
    yield record_of(3, group, 0, schemas.ConsumerGroupMetadataValue(5))
    topic = schemas.TopicMetadata(ID_1, "orders", 2, [schemas.PartitionMetadata(1, ["a", "b"])])
    yield record_of(4, group, 0, schemas.ConsumerGroupPartitionMetadataValue([topic]))
    full = schemas.ConsumerGroupMemberMetadataValue(
        "i", "rack", "c", "/h", ["orders", "audit"], "o.*", 300_000, "uniform"
    )
    for classic in (
        None,
        schemas.ClassicMemberMetadata(),
        schemas.ClassicMemberMetadata(45_000, [schemas.ClassicProtocol("range", b"\x00\x01")]),
    ):
        full.classic_member_metadata = classic
        yield record_of(5, member, 0, full)
    bare = schemas.ConsumerGroupMemberMetadataValue(None, None, "c", "/h", (), None, 1, None, None)
    yield record_of(5, member, 0, bare)
    yield record_of(6, group, 0, schemas.TargetAssignmentMetadataValue(5, 1_700_000_000_123))
    target = schemas.TargetAssignmentMemberValue([schemas.TopicPartitions(ID_2, [0, 3])])
    yield record_of(7, member, 0, target)
    current = schemas.ConsumerGroupCurrentMemberAssignmentValue(
        6,
        5,
        1,
        [with_epochs(ID_1, [1, 2], [6, 5]), with_epochs(ID_2, [0], None)],
        [with_epochs(ID_2, [4])],
    )
    yield record_of(8, member, 0, current)
    regex_key = schemas.RegularExpressionKey("g-848", "o.*")
    regex = schemas.ConsumerGroupRegularExpressionValue(["audit", "orders"], 9, 1_700_000_000_123)
    yield record_of(16, regex_key, 0, regex)


def _share_groups() -> Iterator[Record]:
    group, member = schemas.GroupKey("g-share"), schemas.GroupMemberKey("g-share", "m")
    for rack in ("rack", None):
        subscription = schemas.ShareGroupMemberMetadataValue(rack, "c", "/h", ["orders"])
        yield record_of(10, member, 0, subscription)
    yield record_of(11, group, 0, schemas.ShareGroupMetadataValue(3, 1 << 61))
    yield record_of(12, group, 0, schemas.TargetAssignmentMetadataValue(3))
    partitions = [schemas.TopicPartitions(ID_2, [0, 1])]
    yield record_of(13, member, 0, schemas.TargetAssignmentMemberValue(partitions))
    current = schemas.ShareGroupCurrentMemberAssignmentValue(3, 2, 0, partitions)
    yield record_of(14, member, 0, current)
    initial = schemas.TopicPartitionsInfo(ID_2, "orders", [0])
    ready = schemas.TopicPartitionsInfo(ID_1, "audit", [1, 2])
    leaving = schemas.ShareTopicInfo(ID_2, "gone")
    state = schemas.ShareGroupStatePartitionMetadataValue([initial], [ready], [leaving])
    yield record_of(15, group, 0, state)


def _streams_groups() -> Iterator[Record]:
    group, member = schemas.GroupKey("g-streams"), schemas.GroupMemberKey("g-streams", "m")
    setting = schemas.KeyValue("num.standby.replicas", "1")
    for configs in ((), None, [setting]):
        metadata = schemas.StreamsGroupMetadataValue(4, 77, 1, configs)
        yield record_of(17, group, 0, metadata)
    for endpoint in (None, schemas.Endpoint("streams.example", 65_000)):
        subscription = schemas.StreamsGroupMemberMetadataValue(
            None, "rack", "c", "/h", 60_000, 2, "process", endpoint, [setting]
        )
        yield record_of(19, member, 0, subscription)
    yield record_of(20, group, 0, schemas.TargetAssignmentMetadataValue(5, 6))
    tasks = [schemas.TaskIds("0", [0, 1])]
    target = schemas.StreamsGroupTargetAssignmentMemberValue(tasks, [], tasks)
    yield record_of(21, member, 0, target)
    owned = [schemas.TaskIdsWithEpochs("0", [0], [4]), schemas.TaskIdsWithEpochs("1", [1], None)]
    current = schemas.StreamsGroupCurrentMemberAssignmentValue(4, 3, 1, owned, [], [], [], owned)
    yield record_of(22, member, 0, current)
    topic = schemas.StreamsTopicInfo("changelog", 3, 1, [setting])
    together = schemas.CopartitionGroup([0, 1], [-1], [2])
    part = schemas.Subtopology("0", ["orders"], ["o.*"], [topic], ["sink"], [topic], [together])
    yield record_of(23, group, 0, schemas.StreamsGroupTopologyValue(1, [part]))
