"""Logs that are shorter than they were: refused by name, and what a repair still makes of them.

Each log was made durable by a clean stop or a checkpoint; then somebody took files away.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

import pytest

from protocol.names import TopicName
from storage.api import Corrupt, TopicPartition
from storage.log.checkpoints import RECOVERY_POINTS
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import SwapRefused, swap_in
from storage.snapshot import SnapshotHeader, covers_up_to, snapshot_positions, write_snapshot
from tests.simulator.disk import SimulatedDisk
from tests.storage.repair.test_repair import ONE_SEGMENT, _batch_at, expected, segments, stopped
from tests.storage.rig import DATA, NOW_MS, OFFSETS, TOPIC_ID, Rig, records
from tests.storage.start import KEY, SEVERAL_SEGMENTS, Start
from topics.catalog import Catalog, TopicEntry

FOLDER = f"{DATA}/{OFFSETS}-0"


@dataclass
class KnownTopics:
    """A catalog that was read already."""

    name: ClassVar[str] = "topic catalog"
    topics: list[TopicEntry] = field(
        default_factory=lambda: [TopicEntry(TopicName(OFFSETS), TOPIC_ID, 2)]
    )

    def load(self) -> bytes | None:
        return Catalog(self.topics).dump()

    def save(self, content: bytes) -> None:
        raise AssertionError(content)

    def keep_copy(self) -> str:
        raise AssertionError(self.name)


def start_of(
    disk: SimulatedDisk, *, repair: bool = False, catalog: KnownTopics | None = None
) -> Start:
    """A start that finds the offsets topic in its catalog."""
    return Start(disk, repair=repair, catalog=catalog or KnownTopics())


def idle(*, is_clean: bool) -> SimulatedDisk:
    """40 batches of two records in several segments: stopped, or killed when all was synced."""
    disk = stopped(settings=SEVERAL_SEGMENTS)
    if not is_clean:
        disk.remove(f"{DATA}/{CLEAN_SHUTDOWN}")
    return disk


def take_away(disk: SimulatedDisk, what: str) -> str:
    """What is damaged is named so."""
    first, *_, middle, last = segments(disk)
    match what:
        case "the folder":
            for name in disk.listdir(FOLDER):
                disk.remove(f"{FOLDER}/{name}")
            disk.remove_dir(FOLDER)
            return FOLDER
        case "all logs":
            for path in segments(disk):
                disk.remove(path)
            return FOLDER
        case "the first log":
            disk.remove(first)
            return first
        case "a middle log":
            disk.remove(middle)
            return middle
        case "the bytes of a middle log":
            disk.open(middle).truncate(0)
            return middle
        case "the bytes of the last log":
            disk.open(last).truncate(0)
            return last
        case _:
            size = disk.open(last).size()
            disk.open(last).truncate(size // 2)  # two batches of the same size
            return last


VICTIMS = [
    "the folder",
    "all logs",
    "the first log",
    "a middle log",
    "the bytes of a middle log",
    "the bytes of the last log",
    "the last batch",
]


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("what", VICTIMS)
def test_a_start_refuses_and_a_repair_says_what_is_lost(what: str, is_clean: bool) -> None:
    disk = idle(is_clean=is_clean)
    named = take_away(disk, what)
    for _ in range(2):  # the refusal changes nothing that the next start needs
        with pytest.raises(Corrupt) as refusal:
            start_of(disk)
        assert refusal.value.path == named
        assert "were durable" in str(refusal.value) or "its indexes go on" in str(refusal.value)
        disk = disk.after_kill()

    repaired = start_of(disk, repair=True)
    assert repaired.warnings()["Lost records"]["partition"] == f"{OFFSETS}-0"
    left = repaired.keys()
    assert set(left) < set(expected(40))
    assert repaired.append() == 80, "an offset that was lost is given to another record"

    again = start_of(repaired.disk.after_kill())
    assert again.keys() == [*left, "next"]
    assert again.warnings() == {}


def test_a_repair_keeps_the_snapshot_that_still_knows_the_groups() -> None:
    disk = idle(is_clean=True)
    write_snapshot(disk, FOLDER, SnapshotHeader(78, TOPIC_ID, 0, NOW_MS, 1, None), [])
    take_away(disk, "all logs")
    repaired = start_of(disk.after_kill(), repair=True)
    assert snapshot_positions(repaired.disk, FOLDER) == [78]
    assert "the snapshot of offset 78" in str(repaired.warnings())
    assert repaired.append() == 80
    # No pass of the cleaner makes it go before a newer one has what it alone knows.
    assert covers_up_to(repaired.disk, FOLDER, 78)
    assert not covers_up_to(repaired.disk, FOLDER, 79)
    log = repaired.store.partition_log(KEY)
    assert log is not None
    log.roll()
    log.flush()
    job_of = cleaned_copy(repaired.disk, log)
    with pytest.raises(SwapRefused, match="a snapshot alone knows"):
        swap_in(repaired.disk, log, job_of, [job_of])
    assert snapshot_positions(repaired.disk, FOLDER) == [78]
    write_snapshot(repaired.disk, FOLDER, SnapshotHeader(81, TOPIC_ID, 0, NOW_MS, 1, None), [])
    swap_in(repaired.disk, log, cleaned_copy(repaired.disk, log), [job_of])
    assert snapshot_positions(repaired.disk, FOLDER) == [81]


def cleaned_copy(disk: SimulatedDisk, log: PartitionLog) -> int:
    """What a pass over the first segment would have written; its base offset."""
    segment = log.segments[0]
    for path in filter(disk.exists, segment.paths):
        source = disk.open(path)
        copy = disk.open(f"{path}.cleaned", create=True)
        copy.pwrite(source.pread(source.size(), 0), 0)
    return segment.base_offset


def test_a_repair_takes_from_the_journal_what_follows_the_loss() -> None:
    disk = idle(is_clean=True)
    rig = Rig(disk, SEVERAL_SEGMENTS)
    rig.log().append(records("more"), NOW_MS)
    assert rig.journal.pump()
    disk = disk.after_kill()
    take_away(disk, "all logs")
    repaired = start_of(disk, repair=True)
    assert repaired.keys() == ["more"]
    assert repaired.append() == 81


def test_all_folders_gone_are_one_line() -> None:
    disk = stopped()
    rig = Rig(disk, ONE_SEGMENT)
    rig.log(1).append(records("other"), NOW_MS)
    assert rig.journal.pump()
    rig.stop()
    for partition in (0, 1):
        folder = f"{DATA}/{OFFSETS}-{partition}"
        for name in disk.listdir(folder):
            disk.remove(f"{folder}/{name}")
        disk.remove_dir(folder)
    with pytest.raises(Corrupt, match=r"offsets-0 .*offsets up to 79 .* \(and 1 more partitions\)"):
        start_of(disk.after_kill())


# --- what is no loss -----------------------------------------------------------------------------


def with_a_topic(name: str) -> SimulatedDisk:
    disk = idle(is_clean=True)
    with CheckpointLines(disk) as lines:
        lines.append(f"{name} 0 7")
    return disk


class CheckpointLines:
    """The lines of the recovery points, to be changed by hand."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._path = f"{DATA}/{RECOVERY_POINTS}"
        self._lines: list[str] = []

    def __enter__(self) -> list[str]:
        file = self._disk.open(self._path)
        self._lines = file.pread(file.size(), 0).decode().splitlines()[2:]
        return self._lines

    def __exit__(self, *_: object) -> None:
        file = self._disk.open(self._path)
        file.truncate(0)
        content = "\n".join(["0", str(len(self._lines)), *self._lines, ""])
        file.pwrite(content.encode(), 0)


def test_a_deleted_topic_is_not_missed_and_one_in_the_catalog_stands_aside() -> None:
    assert start_of(with_a_topic("orders")).store.damaged == {}
    catalog = KnownTopics()
    catalog.topics.append(TopicEntry(TopicName("orders"), UUID(int=5), 1))
    start = start_of(with_a_topic("orders"), catalog=catalog)
    (damage,) = start.store.damaged.values()
    assert str(damage).startswith(f"{DATA}/orders-0 at byte 0: the folder is missing, though")
    assert "A partition is damaged and not served" in start.warnings()
    # It can be deleted, and a repair creates it again above the offsets that were given out.
    start.store.delete(TopicPartition("orders", 0))
    repaired = start_of(with_a_topic("orders"), catalog=catalog, repair=True)
    log = repaired.store.partition_log(TopicPartition("orders", 0))
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (7, 7, UUID(int=5))


def test_lost_recovery_points_of_a_compacted_log_lose_nothing() -> None:
    """The issue's case: what compaction has left is served as a whole, and nothing is unlinked."""
    for is_clean in (True, False):
        disk = idle(is_clean=is_clean)
        disk.remove(f"{DATA}/{RECOVERY_POINTS}")
        # As compaction leaves it: a sealed segment that ends early, with indexes of its own.
        following = int(segments(disk)[2][-24:-4])
        middle, position = _batch_at(disk, following - 4)
        base = int(middle[-24:-4])
        disk.open(middle).truncate(position)
        for suffix in ("index", "timeindex"):
            disk.remove(f"{FOLDER}/{base:020d}.{suffix}")
        names = set(segments(disk))
        start = start_of(disk.after_kill())
        assert names <= set(segments(start.disk))
        assert start.keys()[-1] == "39b"
        assert start.append() == 80
