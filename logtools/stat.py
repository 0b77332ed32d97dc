"""Log statistics: what takes the space, which groups write it, and what cleaning would free.

One pass over each partition, in the order of its offsets. The newest record of each key is kept:
memory grows with the keys of one partition, because all records of a group are in one partition. A
record is counted as dead when a later one supersedes it. Cleaning now would free what is dead at
the end of the segments that the cleaner may touch; at most it could free what is dead at the end.
Kafka has no counterpart; the rules are those of LogCleanerManager and Cleaner.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from heapq import nlargest
from typing import Final

from msgspec import Struct, field

from logtools.layout import DataPlace, PartitionPlace, SegmentFile
from logtools.record_owner import Owners, group_and_topic
from logtools.record_sizes import Unreadable, sized_records
from logtools.upkeep import Cleanable, Upkeep, cleanable
from logtools.walk import DamagedBytes, walk
from protocol.names import OFFSETS_TOPIC
from storage.api import LogSettings
from storage.batch.record_batch import HEADER_BYTES, BatchHeader


class Freed(Struct):
    """What cleaning takes away."""

    records: int = 0
    bytes: int = 0

    def add(self, other: "Freed") -> None:
        self.records += other.records
        self.bytes += other.bytes


class Counts(Struct):
    """The figures of one partition, or of all together."""

    segments: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    damaged_bytes: int = 0
    tombstones: int = 0
    live_records: int = 0
    live_bytes: int = 0
    commits: int = 0
    memberless_commits: int = 0
    """Of partitions that no member of the group had at the time."""
    oldest_ms: int | None = None
    newest_ms: int | None = None
    by_type: Counter[str] = field(default_factory=Counter)
    dirty_ratio: float | None = None
    """Of one partition that has been written to; as the cleaner computes it."""
    frees_now: Freed = field(default_factory=Freed)
    frees_at_most: Freed = field(default_factory=Freed)

    def add(self, other: "Counts") -> None:
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.by_type.update(other.by_type)
        self.frees_now.add(other.frees_now)
        self.frees_at_most.add(other.frees_at_most)
        self.saw(other.oldest_ms, other.newest_ms)

    def saw(self, oldest_ms: int | None, newest_ms: int | None) -> None:
        if oldest_ms is not None:
            self.oldest_ms = min(oldest_ms, self.oldest_ms or oldest_ms)
        if newest_ms is not None:
            self.newest_ms = max(newest_ms, self.newest_ms or newest_ms)

    @property
    def records_per_batch(self) -> float:
        return self.records / self.batches if self.batches else 0.0

    @property
    def commits_per_second(self) -> float | None:
        """Over the time from the oldest record to the newest; None if that is no time."""
        if self.oldest_ms is None or self.newest_ms is None or self.newest_ms <= self.oldest_ms:
            return None
        return self.commits * 1_000 / (self.newest_ms - self.oldest_ms)


_SUMS: Final = (
    "segments", "bytes", "batches", "records", "damaged_bytes", "tombstones", "live_records",
    "live_bytes", "commits", "memberless_commits",
)  # fmt: skip


class Share(Struct):
    """One group, topic or member: what it wrote."""

    name: str
    commits: int = 0
    records: int = 0
    bytes: int = 0


class Tops:
    """The largest writers. Groups are whole within a partition, so only the best are carried on."""

    __slots__ = ("_best", "_keep", "topics")

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._best: dict[str, list[Share]] = {}
        self.topics: dict[str, Share] = {}

    def offer(self, kind: str, shares: Iterator[Share]) -> None:
        best = [*self._best.get(kind, ()), *shares]
        self._best[kind] = nlargest(self._keep, best, key=_weight)

    def of(self, kind: str) -> list[Share]:
        if kind == "topics":
            return nlargest(self._keep, self.topics.values(), key=_weight)
        return self._best.get(kind, [])


def _weight(share: Share) -> tuple[int, int, str]:
    return share.bytes, share.commits, share.name


class Statistics(Struct):
    partitions: list[tuple[PartitionPlace, Counts]]
    total: Counts
    tops: Tops


class _Key:
    """The newest record of a key, and what all of them came to."""

    __slots__ = ("batch", "commits", "is_dead", "live_bytes", "total_bytes")

    def __init__(self) -> None:
        self.batch = 0
        self.live_bytes = 0
        self.is_dead = False  # a tombstone whose time is over: dropped, newest or not
        self.commits = 0
        self.total_bytes = 0


def statistics(
    place: DataPlace,
    now_ms: int,
    *,
    keep: int = 10,
    settings: LogSettings | None = None,
    upkeep: Upkeep | None = None,
    progressed: Callable[[float], None] | None = None,
) -> Statistics:
    """Count everything. `settings` are those by which the logs would be cleaned.

    `progressed` gets, after each partition, the part of them that is counted, from 0 to 1.
    """
    total, tops = Counts(), Tops(keep)
    partitions = []
    for partition in place.partitions:
        may_clean = cleanable(partition, upkeep or Upkeep(), settings or LogSettings(), now_ms)
        counter = _PartitionCounter(partition, now_ms)
        counter.run(may_clean)
        counter.add_to(tops)
        total.add(counter.counts)
        partitions.append((partition, counter.counts))
        if progressed is not None:
            progressed(len(partitions) / len(place.partitions))
    return Statistics(partitions, total, tops)


class _PartitionCounter:
    def __init__(self, place: PartitionPlace, now_ms: int) -> None:
        self.counts = Counts()
        self._place = place
        self._now_ms = now_ms
        self._is_offsets = place.topic == OFFSETS_TOPIC
        self._keys: dict[bytes, _Key] = {}
        self._left = array("I")  # by batch: records that are still the newest of their key
        self._bare = 0  # batches that have none left
        self._dead = Freed()
        self._owners = Owners()
        self._members: dict[str, Share] = {}
        self._groups: dict[str, Share] = {}
        self._topics: dict[str, Share] = {}

    def run(self, may_clean: Cleanable) -> None:
        counts = self.counts
        counts.dirty_ratio = may_clean.dirty_ratio
        for segment in self._place.segments:
            if segment.base_offset == may_clean.up_to and may_clean.is_due:
                counts.frees_now = self._freed()
                if self._left and not self._left[-1]:
                    # The last batch of a cleaning stays, empty, to keep its offset.
                    counts.frees_now.bytes -= HEADER_BYTES
            self._segment(segment)
        self._close()

    def _segment(self, segment: SegmentFile) -> None:
        counts = self.counts
        counts.segments += 1
        for found in walk(segment.path):
            if isinstance(found, DamagedBytes):
                counts.bytes += found.size
                counts.damaged_bytes += found.size
                continue
            header = found.header
            counts.bytes += header.size
            counts.batches += 1
            counts.records += header.records_count
            if header.records_count:
                first_ms = None if header.has_delete_horizon else header.base_timestamp
                counts.saw(first_ms, header.max_timestamp)
            self._left.append(header.records_count)
            if header.is_control:
                counts.by_type["Control"] += header.records_count
                continue
            try:
                sized = sized_records(found.content, header)
            except Unreadable:
                counts.damaged_bytes += header.size
                continue
            if not header.records_count:
                self._bare += 1
            self._batch(header, sized.records, sized.scale)

    def _batch(
        self,
        header: BatchHeader,
        records: list[tuple[bytes | None, bytes | None, int]],
        scale: float,
    ) -> None:
        number = len(self._left) - 1
        expired = header.has_delete_horizon and header.base_timestamp <= self._now_ms
        keys, by_type = self._keys, self.counts.by_type
        for raw_key, value, record_size in records:
            size = record_size if scale == 1.0 else round(record_size * scale)
            if raw_key is None:
                self._kill(number, size)  # the cleaner drops records without a key
                by_type["no key"] += 1
                continue
            known = keys.get(raw_key)
            if known is None:
                known = keys[raw_key] = _Key()
            elif not known.is_dead:
                self._kill(known.batch, abs(known.live_bytes))
            known.batch = number
            known.is_dead = False
            known.total_bytes += size
            if value is None:
                self.counts.tombstones += 1
                known.live_bytes = -size
                if expired:
                    known.is_dead = True
                    self._kill(number, size)
            else:
                known.live_bytes = size
            if self._is_offsets:
                self._of_offsets(raw_key, value, size, known)

    def _kill(self, batch: int, size: int) -> None:
        self._dead.records += 1
        self._dead.bytes += size
        self._left[batch] -= 1
        if not self._left[batch]:
            self._bare += 1

    def _of_offsets(self, key: bytes, value: bytes | None, size: int, known: _Key) -> None:
        """Who wrote it: by the group in its key, and by whom the group last gave the partition."""
        kind, group, topic = group_and_topic(key)
        self.counts.by_type[kind] += 1
        by_group = self._groups.get(group)
        if by_group is None:
            by_group = self._groups[group] = Share(group)
        by_group.records += 1
        by_group.bytes += size
        if topic is None:
            self._owners.learn(key, value)
            return
        by_topic = self._topics.get(topic)
        if by_topic is None:
            by_topic = self._topics[topic] = Share(topic)
        by_topic.records += 1
        by_topic.bytes += size
        if value is None:
            return
        self.counts.commits += 1
        known.commits += 1
        by_group.commits += 1
        by_topic.commits += 1
        owner = self._owners.of(key, value)
        if owner is None:  # an administrator, a simple consumer, a partition assigned by hand
            self.counts.memberless_commits += 1
            return
        by_member = self._members.get(owner)
        if by_member is None:
            by_member = self._members[owner] = Share(owner)
        by_member.commits += 1
        by_member.records += 1
        by_member.bytes += size

    # --- what cleaning would free --------------------------------------------------------------

    def _freed(self) -> Freed:
        return Freed(self._dead.records, self._dead.bytes + self._bare * HEADER_BYTES)

    def _close(self) -> None:
        counts = self.counts
        for known in self._keys.values():
            if known.live_bytes > 0:
                counts.live_records += 1
                counts.live_bytes += known.live_bytes
            elif not known.is_dead:
                self._kill(known.batch, -known.live_bytes)  # a tombstone, once its time is over
        counts.frees_at_most = self._freed()

    def add_to(self, tops: Tops) -> None:
        """Add the largest of this partition."""
        tops.offer("groups", iter(self._groups.values()))
        tops.offer("members", iter(self._members.values()))
        tops.offer("keys", self._key_shares())
        for name, share in self._topics.items():
            known = tops.topics.setdefault(name, Share(name))
            known.commits += share.commits
            known.records += share.records
            known.bytes += share.bytes

    def _key_shares(self) -> Iterator[Share]:
        for key, known in self._keys.items():
            if known.commits:
                _, group, topic = group_and_topic(key)
                partition = int.from_bytes(key[-4:])
                yield Share(
                    f"{group} {topic}-{partition}", known.commits, known.commits, known.total_bytes
                )
