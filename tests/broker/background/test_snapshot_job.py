"""Snapshots of a real log: they say what the log says, whatever happened in it and to the disk.

Histories are drawn at random, with everything that a log may hold: all versions of values, groups
that end and begin again, generations without assignments, transactions, types that nobody knows. At
any cut the snapshot and the log since then must give what the whole log gives; and wherever the
power goes while a snapshot is taken or the older one removed, a start finds the same.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import GetSetDescriptorType, MemberDescriptorType
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.background.snapshot_job import SnapshotAbandoned, read_snapshot, take_snapshot
from broker.partitions.loading import Tail
from coordinator.classic.generation_record import generation_record, generation_tombstone
from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.consumer.evolve import evolve_consumer_group
from coordinator.consumer.group import ConsumerGroup, ConsumerMember
from coordinator.consumer.records import event_records
from coordinator.group_types import AnyGroup
from coordinator.image import (
    BEFORE_CONSUMER_GROUPS,
    BEFORE_TRANSACTIONS,
    SKIPPED_KEPT_MAX,
    Image,
)
from coordinator.loaded_record import StoredCommits
from coordinator.offsets.transactions import plain_transactions
from coordinator.record_schemas import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator.records import add_offset_tombstones, group_tombstone
from coordinator.stored_commits import loaded_records
from protocol.names import GenerationId, GroupId, GroupInstanceId, MemberId, TopicName
from storage.api import (
    AbortedTransaction,
    LogSettings,
    Record,
    RecordPair,
    StoredRecord,
    TopicPartition,
)
from storage.batch.record_batch import encode_batch
from storage.cleaner.cleaner import write_clean_offsets
from storage.disk import Disk
from storage.log.log_files import LogFiles
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import swap_in
from storage.snapshot import (
    SnapshotHeader,
    delete_snapshots_before,
    snapshot_path,
    snapshot_positions,
    write_snapshot,
)
from tests.coordinator.consumer.random_events import GROUP as CONSUMER_GROUP
from tests.coordinator.consumer.random_events import RandomEvents
from tests.coordinator.golden.samples import record_of
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.transfer.given import marker, transactional

FOLDER = "/data/__consumer_offsets-0"
TOPIC_ID = UUID(int=77)
AT_MS = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=1_500, index_interval_bytes=200)

GROUPS = [GroupId(name) for name in ("red", "green", "")]
TOPICS = [TopicName("orders"), TopicName("audit")]


# ---------------------------------------------------------------- histories

groups = st.sampled_from(GROUPS)
partitions = st.integers(0, 2)
members = st.lists(
    st.tuples(st.sampled_from(("m-1", "m-2", "m-3")), st.sampled_from((None, "i-1"))),
    max_size=2,
    unique_by=(lambda record: record[0], lambda record: record[1] or record[0]),
)


@st.composite
def offset_records(draw: st.DrawFn) -> Record:
    group_id = draw(st.sampled_from([*GROUPS, CONSUMER_GROUP]))
    key = OffsetCommitKey(group_id, draw(st.sampled_from(TOPICS)), draw(partitions))
    version = draw(st.integers(-1, 4))
    metadata = draw(st.sampled_from(("", "note", "é\N{GRINNING FACE}")))
    offset, at_ms = draw(st.integers(-1, 1 << 62)), AT_MS + draw(st.integers(0, 3))
    if version == -1:
        return record_of(0, key, 0, LegacyOffsetCommitValue(offset, metadata, at_ms))
    expire = AT_MS + 9 if version == 1 else -1
    topic_id = draw(st.sampled_from((UUID(int=0), UUID(int=5))))
    value = OffsetCommitValue(offset, draw(st.integers(-1, 2)), metadata, at_ms, expire, topic_id)
    return record_of(1, key, version, value)


@st.composite
def group_records(draw: st.DrawFn) -> Record:
    subscription = draw(
        st.sampled_from((b"", b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"))
    )
    stored = [
        MemberMetadata(name, instance, "c", "/h", 60_000, 10_000, subscription, b"\x00\xff")
        for name, instance in draw(members)
    ]
    value = GroupMetadataValue(
        draw(st.sampled_from(("", "consumer", "connect"))),
        draw(st.integers(0, 4)),
        draw(st.sampled_from((None, "range"))),
        draw(st.sampled_from((None, *[member.member_id for member in stored]))),
        AT_MS - draw(st.integers(0, 3)),
        stored,
    )
    return record_of(2, GroupMetadataKey(draw(groups)), draw(st.integers(0, 4)), value)


@st.composite
def generation_records(draw: st.DrawFn) -> Record:
    present = [
        ClassicMember(
            member_id=MemberId(name),
            group_instance_id=None if instance is None else GroupInstanceId(instance),
            client_id="c",
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", b"s"), ("sticky", b"")),
        )
        for name, instance in draw(members)
    ]
    leader = present[0].member_id if present else MemberId("")
    generation_id = GenerationId(draw(st.integers(1, 6)))
    protocol = ("consumer", "range")
    return generation_record(draw(groups), generation_id, protocol, leader, AT_MS, present)


tombstones = st.one_of(
    st.builds(group_tombstone, groups),
    st.builds(generation_tombstone, groups),
    st.builds(
        lambda *of: _offset_tombstone(*of),  # noqa: PLW0108 - it is defined below
        st.sampled_from([*GROUPS, CONSUMER_GROUP]), st.sampled_from(TOPICS), partitions,
    ),
)  # fmt: skip
foreign = st.sampled_from([Record(b"\x00\x0b\x00\x01g", b"??"), Record(b"\x00\x63x", None)])
records = st.one_of(
    offset_records(), offset_records(), group_records(), generation_records(), tombstones, foreign
)


def _offset_tombstone(group_id: GroupId, topic: TopicName, partition: int) -> Record:
    made: list[RecordPair] = []
    add_offset_tombstones(made, group_id, topic, [partition])
    return Record(*made[0])


@dataclass
class Batch:
    """Records, in a transaction of some producer or in none; or the end of its transaction.

    Without either: what the next event of a consumer group writes (`with_consumer_group`).
    """

    records: list[Record]
    producer_id: int = -1
    commits: bool | None = None


def with_consumer_group(history: Sequence[Batch], seed: int) -> list[Batch]:
    """A consumer group has few orders of records that are possible: it goes through one of them."""
    group = ConsumerGroup(CONSUMER_GROUP, AT_MS)
    turns = iter(RandomEvents(seed, group))
    made: list[Batch] = []
    for batch in history:
        written: Sequence[RecordPair] = batch.records
        while not written and batch.producer_id < 0:
            event = next(turns)
            evolve_consumer_group(group, event)
            written = event_records(event)
        made.append(
            Batch([Record(*record) for record in written], batch.producer_id, batch.commits)
        )
    return made


batches = st.one_of(
    st.builds(Batch, st.lists(records, min_size=1, max_size=4)),
    st.builds(Batch, st.lists(records, min_size=1, max_size=4)),
    st.builds(Batch, st.just([])),
    st.builds(Batch, st.just([])),
    st.builds(Batch, st.lists(offset_records(), min_size=1, max_size=3), st.sampled_from((1, 2))),
    st.builds(Batch, st.just([]), st.sampled_from((1, 2)), st.booleans()),
)


# ---------------------------------------------------------------- logs and what they say


@dataclass
class Written:
    """A partition's log on a simulated disk."""

    disk: SimulatedDisk = field(default_factory=SimulatedDisk)

    def __post_init__(self) -> None:
        if not self.disk.exists(FOLDER):
            self.disk.make_dir("/data")
            self.log = self._log()
            self.log.create(TOPIC_ID)
        else:
            self.log = self._log()
            self.log.open(0)
        self.ended: object = None

    def _log(self) -> PartitionLog:
        return PartitionLog(self.disk, FOLDER, TopicPartition("__consumer_offsets", 0), SMALL)

    def append(self, batch: Batch) -> int:
        """The position after it."""
        at = self.log.log_end_offset
        if batch.commits is not None:
            content, size = marker(at, batch.producer_id, commits=batch.commits), 1
        elif batch.producer_id >= 0:
            content = transactional(batch.records, at, batch.producer_id)
            size = len(batch.records)
        else:
            content, size = encode_batch(batch.records, at, AT_MS), len(batch.records)
        self.log.append_placed([(content, at + size - 1, AT_MS)], AT_MS)
        return at + size

    def take(self, up_to: int) -> dict[str, object]:
        """From where the one before it ended."""
        result = take(self.disk, up_to, self.ended)
        self.ended = result["end"]
        return result

    def state(self, *, by_snapshot: bool = True) -> "State":
        snapshot = None
        if by_snapshot:
            end = self.log.log_end_offset
            snapshot, _ = read_snapshot(self.disk, FOLDER, log_end=end, topic_id=TOPIC_ID)
        tail = Tail(self.log, snapshot, loaded_records)
        image = Image(tail.load_start)
        while tail.read_on():
            for record in tail.records:
                image.apply(record)
        skipped = [(record.offset, record.record_type, record.name) for record in image.skipped]
        found: dict[str, object] = {}
        while (taken := image.take_next()) is not None:
            group = taken[0]
            group.check()
            found[group.group_id] = portrait(group)
        return found, skipped, plain_transactions(image.transactions)


State = tuple[dict[str, object], list[tuple[int, int, str | None]], object]


def take(disk: Disk, up_to: int, ended: object = None) -> dict[str, object]:
    arguments: dict[str, object] = {
        "folder": FOLDER, "up_to": up_to, "topic_id": str(TOPIC_ID), "now_ms": AT_MS,
        "ended": ended,
    }  # fmt: skip
    return take_snapshot(disk, arguments)


def portrait(thing: AnyGroup | ClassicMember | ConsumerMember) -> object:
    """Everything that a group or a member is, in the order in which it is kept, if that counts."""
    slots = [
        name
        for cls in type(thing).__mro__
        for name, what in vars(cls).items()
        # A compiled class has its attributes as it has its properties.
        if isinstance(what, MemberDescriptorType | GetSetDescriptorType) and name[:2] != "__"
    ]
    assert slots, thing
    if isinstance(thing, ConsumerGroup | ConsumerMember):
        return {name: _part(getattr(thing, name)) for name in slots if name != "lock"}
    facts: list[tuple[str, object]] = []
    for name in slots:
        fact = getattr(thing, name)
        if name == "lock":
            continue
        if name == "members":
            fact = [(key, portrait(member)) for key, member in fact.items()]
        elif name == "offsets":
            fact = [(topic, list(commits.items())) for topic, commits in fact.items()]
        elif isinstance(fact, dict):
            fact = list(fact.items())
        facts.append((name, fact))
    return facts


def _part(fact: object) -> object:
    if isinstance(fact, dict):
        return {key: _part(value) for key, value in fact.items()}
    return portrait(fact) if isinstance(fact, ConsumerMember) else fact


@settings(max_examples=250, deadline=None)
@given(st.lists(batches, min_size=1, max_size=25), st.data(), st.integers(0, 2**32))
def test_a_snapshot_and_the_log_since_say_what_the_whole_log_says(
    history: Sequence[Batch], data: st.DataObject, seed: int
) -> None:
    history = with_consumer_group(history, seed)
    cuts = data.draw(st.sets(st.integers(0, len(history)), max_size=3))
    written = Written()
    ends = [0, *map(written.append, history)]
    expected = written.state(by_snapshot=False)
    for cut in sorted(cuts):
        result = written.take(ends[cut])
        assert result["position"] == ends[cut]
        assert snapshot_positions(written.disk, FOLDER) == [ends[cut]]
        assert written.state() == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(batches, min_size=4, max_size=12), st.integers(0, 2**32))
def test_wherever_the_power_goes_a_start_finds_the_same(
    history: Sequence[Batch], chance: int
) -> None:
    """At every write, rename, sync and removal of a snapshot, and of the one that it replaces."""
    history = with_consumer_group(history, chance)
    written = Written()
    ends = [0, *map(written.append, history)]
    written.log.flush()
    expected = written.state(by_snapshot=False)
    middle, end = ends[len(history) // 2], ends[-1]
    written.take(middle)
    dice, stops = random.Random(chance), 0
    while True:
        trial = SimulatedDisk(written.disk._root.survivor(random.Random(0)))
        trial.cut_power_at = stops
        try:
            take(trial, end)
        except PowerCut:
            pass
        else:
            break
        stops += 1
        for left in (trial.after_crash(dice), trial.after_kill()):
            after = Written(left)
            assert after.state() == expected
            assert not any(name.endswith(".tmp") for name in left.listdir(FOLDER))
            take(left, end)  # and the next attempt succeeds
            assert after.state() == expected
    assert stops >= 6  # created, cut, written, synced, renamed, and so on


def test_a_full_disk_or_a_failed_sync_leaves_the_older_snapshot() -> None:
    written = Written()
    first = written.append(Batch([record_of_offset(1)]))
    written.take(first)
    last = written.append(Batch([record_of_offset(2)]))
    expected = written.state(by_snapshot=False)
    written.disk.room = 10
    with pytest.raises(OSError, match="space"):
        written.take(last)
    written.disk.room = None
    written.disk.fail_sync(".groups.tmp")
    with pytest.raises(OSError, match="output"):
        written.take(last)
    assert snapshot_positions(written.disk, FOLDER) == [first]
    assert written.state() == expected
    written.take(last)
    assert snapshot_positions(written.disk, FOLDER) == [last]
    assert written.state() == expected


def record_of_offset(offset: int, partition: int = 0) -> Record:
    key = OffsetCommitKey("red", "orders", partition)
    return record_of(1, key, 4, OffsetCommitValue(offset, 1, "", AT_MS, -1, UUID(int=5)))


@pytest.mark.pure  # it patches what a compiled function has bound
def test_groups_that_no_record_was_about_are_copied_and_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = Written()
    for name in ("a", "b", "c"):
        key = OffsetCommitKey(name, "orders", 0)
        at = written.append(Batch([record_of(1, key, 4, OffsetCommitValue(1, 1, "", AT_MS))]))
    written.take(at)
    at = written.append(Batch([record_of(1, key, 4, OffsetCommitValue(2, 1, "", AT_MS))]))
    decoded: list[str] = []
    from coordinator import image
    from coordinator.group_types import group_of_plain

    def seen(group_id: GroupId, plain: object) -> ClassicGroup:
        decoded.append(group_id)
        return group_of_plain(group_id, plain)

    monkeypatch.setattr(image, "group_of_plain", seen)
    result = written.take(at)
    assert decoded == ["c"]
    assert (result["groups"], result["records"]) == (3, 1)


def test_what_is_not_stored_yet_is_not_in_it() -> None:
    written = Written()
    stored = written.append(Batch([record_of_offset(1)]))
    written.append(Batch([record_of_offset(2)]))
    assert written.take(stored)["position"] == stored
    assert written.state() == written.state(by_snapshot=False)


@pytest.mark.parametrize("damage", ["gone", "torn", "nonsense"])
def test_without_a_usable_index_the_segment_is_read_from_its_beginning(damage: str) -> None:
    written = Written()
    while len(LogFiles(written.disk, FOLDER)._segments) < 2:
        end = written.append(Batch([record_of_offset(n, n) for n in range(3)]))
    written.take(6)
    path = f"{FOLDER}/{0:020d}.index"
    if damage == "gone":
        written.disk.remove(path)
    elif damage == "torn":
        written.disk.open(path).truncate(11)
    else:
        written.disk.open(path).pwrite(b"\xff" * 8, 0)
    assert written.take(end)["position"] == end
    assert written.state() == written.state(by_snapshot=False)


def test_what_an_earlier_fold_has_read_is_not_read_again() -> None:
    written = Written()
    for number in range(5):
        end = written.append(Batch([record_of_offset(number, number)]))
    written.take(end)
    files = LogFiles(written.disk, FOLDER)
    ((base, size),) = files._segments
    assert written.ended == (end, (base, size))
    # Nothing can be read any more of what it has read.
    file = written.disk.open(f"{FOLDER}/{0:020d}.log")
    file.pwrite(b"\xff" * size, 0)
    last = end
    for number in range(2):
        batch = encode_batch([record_of_offset(7 + number)], last, AT_MS)
        file.pwrite(batch, file.size())
        last += 1
        assert written.take(last)["records"] == 1
    assert written.ended == (last, (0, file.size()))


@given(st.integers(0, 5), st.integers(0, 2_000), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_the_end_of_the_last_job_is_checked_and_not_trusted(
    segment: int, byte: int, position: int
) -> None:
    written = Written()
    ends = [written.append(Batch([record_of_offset(n, n)])) for n in range(9)]
    first = written.take(ends[4])
    assert first["position"] == 5
    written.ended = (position + 1, (segment, byte))
    assert written.take(ends[-1])["records"] == 4
    assert written.state() == written.state(by_snapshot=False)


def test_a_log_without_records_says_nothing() -> None:
    written = Written()
    assert written.take(0)["groups"] == 0
    assert written.state()[:2] == ({}, [])


def test_a_batch_that_is_being_appended_does_not_disturb() -> None:
    written = Written()
    stored = written.append(Batch([record_of_offset(1)]))
    half = encode_batch([record_of_offset(2)], stored, AT_MS)[:70]
    path = f"{FOLDER}/{0:020d}.log"
    file = written.disk.open(path)
    file.pwrite(half, file.size())
    assert written.take(stored)["position"] == stored


def test_a_damaged_log_gives_no_snapshot() -> None:
    from storage.api import Corrupt

    written = Written()
    written.append(Batch([record_of_offset(1)]))
    end = written.append(Batch([record_of_offset(2)]))
    written.disk.open(f"{FOLDER}/{0:020d}.log").pwrite(b"\xff", 16)  # the magic of the first
    with pytest.raises(Corrupt):
        written.take(end)
    assert snapshot_positions(written.disk, FOLDER) == []


# ---------------------------------------------------------------- beside the cleaner


class DisturbedDisk:
    """Lets something happen when a file with this ending is opened for the first time."""

    def __init__(self, disk: SimulatedDisk, ending: str, happens: object) -> None:
        self._disk = disk
        self._ending = ending
        self._happens = happens

    def __getattr__(self, name: str) -> object:
        return getattr(self._disk, name)

    def open(self, path: str, *, create: bool = False) -> object:
        happens, self._happens = self._happens, None
        if happens is not None and path.endswith(self._ending):
            happens()  # type: ignore[operator]
        else:
            self._happens = happens
        return self._disk.open(path, create=create)


def test_a_snapshot_that_the_cleaner_has_taken_away_is_not_built_upon() -> None:
    written = Written()
    first = written.append(Batch([record_of_offset(1)]))
    written.take(first)
    last = written.append(Batch([_offset_tombstone(GROUPS[0], TOPICS[0], 0)]))
    disturbed = DisturbedDisk(
        written.disk, ".index", lambda: delete_snapshots_before(written.disk, FOLDER, last)
    )
    with pytest.raises(SnapshotAbandoned, match="was removed meanwhile"):
        take(disturbed, last)  # type: ignore[arg-type]
    assert snapshot_positions(written.disk, FOLDER) == []


def test_segments_that_are_swapped_meanwhile_give_no_snapshot() -> None:
    written = Written()
    while len(LogFiles(written.disk, FOLDER)._segments) < 3:
        end = written.append(Batch([record_of_offset(n, n) for n in range(3)]))

    def swap() -> None:
        log = written.log
        sources = [segment.base_offset for segment in log.segments_from(0)][:2]
        cleaned = log.segment(0, ".cleaned")
        cleaned.create()
        batch = encode_batch([record_of_offset(1)], 0, AT_MS)
        cleaned.append([(batch, 0, AT_MS)])
        cleaned.seal()
        cleaned.release()
        swap_in(written.disk, log, 0, sources)

    with pytest.raises(SnapshotAbandoned):
        take(DisturbedDisk(written.disk, ".index", swap), end)  # type: ignore[arg-type]
    assert snapshot_positions(written.disk, FOLDER) == []
    assert written.take(end)["position"] == end
    assert written.state() == written.state(by_snapshot=False)


def test_while_names_change_nothing_is_read() -> None:
    written = Written()
    end = written.append(Batch([record_of_offset(1)]))
    written.disk.open(f"{FOLDER}/{0:020d}.log.swap", create=True)
    with pytest.raises(SnapshotAbandoned):
        written.take(end)


def test_a_swap_takes_older_snapshots_away_for_good() -> None:
    written = Written()
    while len(LogFiles(written.disk, FOLDER)._segments) < 3:
        end = written.append(Batch([record_of_offset(n, n) for n in range(3)]))
        if end == 3:
            written.take(end)
    log = written.log
    sources = [segment.base_offset for segment in log.segments_from(0)][:2]
    cleaned = log.segment(0, ".cleaned")
    cleaned.create()
    last = log.segments_from(0)[1].next_offset - 1
    cleaned.append([(encode_batch([record_of_offset(1)], last, AT_MS), last, AT_MS)])
    cleaned.seal()
    cleaned.release()
    assert snapshot_positions(written.disk, FOLDER) == [3]
    swap_in(written.disk, log, 0, sources)
    assert not written.disk.exists(snapshot_path(FOLDER, 3))


def test_of_commits_that_replace_each_other_only_the_last_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those before a tombstone, which says something of them besides."""
    written = Written()
    for offset in range(1, 101):
        at = written.append(Batch([record_of_offset(offset, partition) for partition in (0, 1)]))
    written.append(Batch([_offset_tombstone(GroupId("red"), TopicName("orders"), 0)]))
    at = written.append(Batch([record_of_offset(7)]))
    expected = written.state(by_snapshot=False)
    decoded: list[int] = []
    apply = Image.apply

    def seen(image: Image, record: StoredRecord | StoredCommits) -> None:
        if isinstance(record, StoredCommits):
            decoded.extend(commit.committed_offset for commit in record.commits.values())
        else:
            decoded.append(record.offset)
        apply(image, record)

    with monkeypatch.context() as patched:
        patched.setattr(Image, "apply", seen)
        assert written.take(at)["records"] == 202
    assert decoded == [1, 1, 198, 199, 200, 7]
    assert written.state() == expected


# ---------------------------------------------------------------- snapshots of an older meaning


@pytest.mark.parametrize(
    ("skipped", "is_used"),
    [
        ([], True),
        ([(5, 11, "ShareGroupMetadata")], True),
        ([(5, 3, "ConsumerGroupMetadata")], False),
        ([(5, 16, "ConsumerGroupRegularExpression")], False),
        ([(5, 11, "ShareGroupMetadata")] * SKIPPED_KEPT_MAX, False),  # and maybe others
    ],
)
def test_a_snapshot_of_before_consumer_groups_is_used_if_it_skipped_none(
    skipped: list[tuple[int, int, str]],
    is_used: bool,
) -> None:
    written = Written()
    end = written.append(Batch([record_of_offset(1)]))
    about = SnapshotHeader(end, TOPIC_ID, 0, AT_MS, BEFORE_CONSUMER_GROUPS, (skipped, ()))
    write_snapshot(written.disk, FOLDER, about, [])

    found, ignored = read_snapshot(written.disk, FOLDER, log_end=end, topic_id=TOPIC_ID)

    assert (found is not None) is is_used
    assert len(ignored) == (0 if is_used else 1)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_snapshot_of_before_transactions_is_used_if_none_was_open(is_open: bool) -> None:
    written = Written()
    end = written.append(Batch([record_of_offset(1)]))
    open_records = [(7, 0, 0, AT_MS, b"key", b"value")] if is_open else []
    notes = ([(5, 3, "ConsumerGroupMetadata")], open_records)
    about = SnapshotHeader(end, TOPIC_ID, 0, AT_MS, BEFORE_TRANSACTIONS, notes)
    write_snapshot(written.disk, FOLDER, about, [])

    found, ignored = read_snapshot(written.disk, FOLDER, log_end=end, topic_id=TOPIC_ID)

    assert (found is None) is is_open
    assert len(ignored) == int(is_open)
    if found is not None:
        assert Tail(written.log, found, loaded_records).load_start.transactions is None


def test_a_snapshot_in_the_middle_of_a_transaction_keeps_it_open() -> None:
    written = Written()
    written.append(Batch([record_of_offset(1)]))
    end = written.append(Batch([record_of_offset(5)], producer_id=7))
    written.take(end)
    before = written.state()[0]
    written.append(Batch([], producer_id=7, commits=True))
    assert written.state()[0] != before
    assert written.state() == written.state(by_snapshot=False)


def test_a_snapshot_forgets_what_was_aborted_in_the_cleaned_part() -> None:
    written = Written()
    for producer_id in (7, 8):
        written.append(Batch([record_of_offset(1)], producer_id))
        end = written.append(Batch([], producer_id, commits=False))
    clean = {TopicPartition("__consumer_offsets", 0): 2}
    write_clean_offsets(written.disk, "/data", clean)
    written.take(end)
    snapshot, _ = read_snapshot(written.disk, FOLDER, log_end=end, topic_id=TOPIC_ID)
    transactions = Tail(written.log, snapshot, loaded_records).load_start.transactions
    assert transactions is not None
    assert transactions.producers.aborted == [AbortedTransaction(8, 2, 3, 4)]
