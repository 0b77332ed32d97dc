"""Consumer reconciliation: rebalances and owners of KIP-848 groups, from their records alone.

A group of the consumer protocol has no generations: its records say the group epoch, the members,
the target assignment of each epoch, and what each member has of it. `GroupReplay` applies them in
the order of the log, as a coordinator does that loads the partition.

A rebalance goes from the first group epoch that the members have not reached to the moment at which
all have (as in the daemon's history, several epochs may pass meanwhile). A partition has *moved* if
a member gave it back and another one has it; in between it has no owner. The last record of a
member before the epoch names the member that began it. Causes are in a history only.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct, convert
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.engine import fn
from pipeline.result_tables import RESULTS
from pipeline.worker_imports import prepare_worker

_Row = Mapping[str, object]
TopicPartitionId = tuple[bytes, int]
"""Topic id and partition."""

_STABLE: Final = "STABLE"
_REBALANCES: Final = RESULTS["rebalances"].schema
_OWNERS: Final = pa.schema(
    [
        ("log_partition", pa.int32()),
        ("log_offset", pa.int64()),
        ("group", pa.string()),
        ("topic_id", pa.binary()),
        ("partition", pa.int32()),
        ("owner", pa.struct([("member_id", pa.string()), ("client_id", pa.string())])),
        ("only_topic", pa.string()),
    ]
)


class AssignedTopic(Struct, frozen=True):
    topic_id: bytes
    partitions: list[int]


class ConsumerGroupRecord(Struct, frozen=True):
    """The columns of `consumer_groups` that the replay reads."""

    log_partition: int
    log_offset: int
    log_timestamp_ms: int
    record: str
    group: str
    tombstone: bool
    member_id: str | None = None
    epoch: int | None = None
    state: str | None = None
    partitions: list[AssignedTopic] | None = None
    pending_revocation: list[AssignedTopic] | None = None
    client_id: str | None = None
    client_host: str | None = None
    topics: list[str] | None = None


class _Member(Struct):
    client_id: str | None = None
    host: str | None = None
    topics: tuple[str, ...] = ()
    epoch: int | None = None
    is_stable: bool = False
    owned: frozenset[TopicPartitionId] = frozenset()


class _Running(Struct):
    """A rebalance that has not ended."""

    began_at_ms: int
    generation_before: int | None
    members_before: int | None
    trigger: tuple[str, _Member] | None
    moved: int = 0
    unowned_ms: int = 0


class GroupReplay:
    """The records of one group. `rebalances`: rows of that table; `owners`: from which record on a
    member has a partition (member_id null: nobody has it)."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.rebalances: list[_Row] = []
        self.owners: list[_Row] = []
        self._epoch: int | None = None
        self._members: dict[str, _Member] = {}
        self._members_at_epoch: int | None = None
        self._changed: tuple[str, _Member] | None = None  # whose record came last
        self._released: dict[TopicPartitionId, tuple[str, int]] = {}  # by whom, and when
        self._running: _Running | None = None

    def apply(self, records: Iterable[ConsumerGroupRecord]) -> None:
        """All records, in the order of the log."""
        for record in records:
            match record.record:
                case "group" if record.tombstone:
                    self._delete()
                case "group":
                    assert record.epoch is not None
                    self._bump(record.epoch, record.log_timestamp_ms)
                case "member":
                    self._update_member(record)
                case "current":
                    self._move(record)
        if self._running is not None:
            self._end(self._running, None)

    def _delete(self) -> None:
        """A new group of this name begins without a past."""
        if self._running is not None:
            self._end(self._running, None)
        self._epoch = self._members_at_epoch = self._changed = None
        self._members.clear()
        self._released.clear()

    def _bump(self, epoch: int, at_ms: int) -> None:
        if epoch != self._epoch and self._running is None:
            self._running = _Running(at_ms, self._epoch, self._members_at_epoch, self._changed)
        self._epoch, self._members_at_epoch = epoch, len(self._members)
        self._changed = None
        if not self._members:
            self._end_if_reconciled(at_ms)

    def _update_member(self, record: ConsumerGroupRecord) -> None:
        member_id = record.member_id
        assert member_id is not None
        if record.tombstone:
            member = self._members.pop(member_id, _Member())
        else:
            member = self._members.setdefault(member_id, _Member())
            member.client_id, member.host = record.client_id, record.client_host
            member.topics = tuple(record.topics or ())
        self._changed = (member_id, member)

    def _move(self, record: ConsumerGroupRecord) -> None:
        """The current assignment of a member; a tombstone comes just before that of the member."""
        member_id, at_ms = record.member_id, record.log_timestamp_ms
        assert member_id is not None
        member = self._members.get(member_id)
        if member is None:
            if record.tombstone:
                return
            member = self._members[member_id] = _Member()  # its first record was compacted away
        owned = _partitions(record.partitions) | _partitions(record.pending_revocation)
        given, taken = member.owned - owned, owned - member.owned
        member.epoch, member.is_stable = record.epoch, record.state == _STABLE
        member.owned = owned
        for partition in sorted(given):
            self._add_owner(record, partition, None, None)
            self._released[partition] = (member_id, at_ms)
        for partition in sorted(taken):
            self._add_owner(record, partition, member_id, member.client_id)
            releaser, since_ms = self._released.pop(partition, (member_id, at_ms))
            if self._running is not None:
                began_at_ms = self._running.began_at_ms
                self._running.unowned_ms += max(0, at_ms - max(since_ms, began_at_ms))
                self._running.moved += releaser != member_id
        if not record.tombstone:
            self._end_if_reconciled(at_ms)

    def _add_owner(
        self,
        record: ConsumerGroupRecord,
        partition: TopicPartitionId,
        member_id: str | None,
        client: str | None,
    ) -> None:
        topics = {topic for member in self._members.values() for topic in member.topics}
        topic_id, number = partition
        self.owners.append(
            {
                "log_partition": record.log_partition,
                "log_offset": record.log_offset,
                "group": self.group,
                "topic_id": topic_id,
                "partition": number,
                "owner": {"member_id": member_id, "client_id": client},
                "only_topic": topics.pop() if len(topics) == 1 else None,
            }
        )

    def _end_if_reconciled(self, at_ms: int) -> None:
        members = self._members.values()
        if self._running is not None and all(
            member.is_stable and member.epoch == self._epoch for member in members
        ):
            self._end(self._running, at_ms)

    def _end(self, running: _Running, at_ms: int | None) -> None:
        """`at_ms` None: it has not ended in these records."""
        self._running = None
        trigger_id, trigger = running.trigger or (None, None)
        unowned_s = None if at_ms is None else running.unowned_ms / 1000
        self.rebalances.append(
            {
                "group": self.group,
                "group_type": "consumer",
                "cause": None,
                "began_at_ms": running.began_at_ms,
                "duration_ms": None if at_ms is None else max(0, at_ms - running.began_at_ms),
                "generation_before": running.generation_before,
                "generation_after": self._epoch,
                "members_before": running.members_before,
                "members_after": len(self._members),
                "partitions_moved": running.moved,
                "unowned_partition_seconds": unowned_s,
                "member_id": trigger_id,
                "client_id": None if trigger is None else trigger.client_id,
                "host": None if trigger is None else trigger.host,
            }
        )


def _partitions(owned: Sequence[AssignedTopic] | None) -> frozenset[TopicPartitionId]:
    return frozenset(
        (of_topic.topic_id, partition)
        for of_topic in owned or ()
        for partition in of_topic.partitions
    )


_NEEDED: Final = ConsumerGroupRecord.__struct_fields__

# In Spark: a group has few records, so one task replays all of them.


def rebalances_of_records(consumer_groups: DataFrame) -> DataFrame:
    """The columns of `rebalances`, for each group of the consumer protocol."""

    def replay(records: pa.Table) -> pa.Table:
        prepare_worker()
        return pa.Table.from_pylist(list(_replayed(records).rebalances), schema=_REBALANCES)

    by_group = consumer_groups.select(*_NEEDED).groupBy("log_partition", "group")
    return by_group.applyInArrow(replay, from_arrow_schema(_REBALANCES))


def owners_of_records(consumer_groups: DataFrame, topic_ids: DataFrame) -> DataFrame:
    """log_partition, log_offset, group, topic, partition, owner: as `in_order.owners` has them.

    `topic_ids` (topic_id, topic) names the topics. A topic that it lacks is known by name if the
    group is subscribed to no other; otherwise its owners stay unknown.
    """

    def replay(records: pa.Table) -> pa.Table:
        prepare_worker()
        return pa.Table.from_pylist(list(_replayed(records).owners), schema=_OWNERS)

    by_group = consumer_groups.select(*_NEEDED).groupBy("log_partition", "group")
    found = by_group.applyInArrow(replay, from_arrow_schema(_OWNERS))
    named = found.join(fn.broadcast(topic_ids), "topic_id", "left")
    topic = fn.coalesce("topic", "only_topic").alias("topic")
    return named.select("log_partition", "log_offset", "group", topic, "partition", "owner").where(
        "topic IS NOT NULL"
    )


def _replayed(records: pa.Table) -> GroupReplay:
    """The same record may come from several sources; its place identifies it."""
    rows = convert(records.to_pylist(), list[ConsumerGroupRecord])
    by_place = {row.log_offset: row for row in rows}
    replay = GroupReplay(records.column("group")[0].as_py())
    replay.apply(by_place[place] for place in sorted(by_place))
    return replay
