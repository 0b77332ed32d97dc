"""After a crash: at whatever step the power went, all that was promised comes back, or a reason."""

import random
from itertools import pairwise

import pytest

from storage.api import Corrupt, LogSettings, TopicPartition
from storage.journal.write_ahead import FIRST_GROUP
from storage.journal.write_ahead_pair import FILE_NAMES
from storage.log.checkpoints import RECOVERY_POINTS
from storage.log.log_store import LogStore
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import DATA, NOW_MS, OFFSETS, Rig, new_disk, records

WAL = f"{DATA}/{FILE_NAMES[0]}"
SEGMENT = f"{DATA}/{OFFSETS}-0/{0:020d}.log"


def written(disk: SimulatedDisk, count: int = 5) -> Rig:
    """Two partitions with `count` batches each, one flush for each pair."""
    rig = Rig(disk)
    logs = [rig.log(0), rig.log(1)]
    for number in range(count):
        for log in logs:
            log.append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    return rig


def expected(count: int) -> list[str]:
    return [f"{number}{letter}" for number in range(count) for letter in "ab"]


def test_segments_that_were_never_synced_come_back_from_the_journal() -> None:
    for seed in range(30):
        disk = new_disk()
        rig = written(disk)
        again = rig.restarted_on(disk.after_crash(random.Random(seed)))
        assert again.keys(0) == again.keys(1) == expected(5)
        assert (again.recovered.groups, again.recovered.batches) == (5, 10)
        assert 0 <= again.recovered.reapplied <= 10


def test_folders_that_were_never_synced_come_back_with_their_topic_id() -> None:
    disk = new_disk()
    rig = written(disk)
    crashed = next(
        left
        for left in (disk.after_crash(random.Random(seed)) for seed in range(100))
        if f"{OFFSETS}-0" not in left.listdir(DATA)
    )
    again = rig.restarted_on(crashed)
    log = rig.store.partitions()[TopicPartition(OFFSETS, 0)]
    assert again.store.partitions()[TopicPartition(OFFSETS, 0)].topic_id == log.topic_id
    assert again.keys(0) == expected(5)


def test_a_journal_group_torn_at_any_byte_takes_only_itself() -> None:
    disk = new_disk()
    rig = written(disk, 3)
    file = disk.open(WAL)
    start = FIRST_GROUP + 1024 + 512  # of the third group: the first also declares
    while file.pread(4, start) != b"RlGr":
        start -= 512
    end = start + 28 + int.from_bytes(file.pread(4, start + 24), "big")
    whole = file.pread(end - start, start)
    for cut in range(0, len(whole), 3):
        # The segments lose the third group as well: they are written after the journal's sync.
        left = disk.after_crash(random.Random(0))
        for partition in (0, 1):
            path = f"{DATA}/{OFFSETS}-{partition}/{0:020d}.log"
            if left.exists(path):
                left.open(path).truncate(0)
        left.open(WAL).pwrite(whole[:cut] + bytes(len(whole) - cut), start)
        again = rig.restarted_on(left)
        assert again.keys(0) == again.keys(1) == expected(2)


def test_a_segment_torn_at_any_byte_is_made_whole() -> None:
    size = 0
    while True:
        disk = new_disk()
        rig = written(disk, 2)
        whole = disk.open(SEGMENT).pread(1 << 20, 0)
        if size > len(whole):
            break
        left = disk.after_kill()
        left.open(SEGMENT).truncate(size)
        again = rig.restarted_on(left)
        assert again.keys(0) == expected(2)
        assert left.open(SEGMENT).pread(1 << 20, 0) == whole
        size += 1


def test_power_may_go_at_every_step_of_a_recovery() -> None:
    steps = 0
    while True:
        disk = new_disk()
        rig = written(disk)
        left = disk.after_crash(random.Random(steps))
        left.cut_power_at = steps
        try:
            rig.restarted_on(left).journal.pump()
        except PowerCut:
            again = rig.restarted_on(left.after_crash(random.Random(steps + 1)))
            assert again.keys(0) == again.keys(1) == expected(5)
            steps += 1
            continue
        break
    assert steps > 15


def test_what_a_start_has_shown_stays_though_no_segment_is_synced_yet() -> None:
    """The last group was never synced: a kill, or an fsync that failed, came before it."""
    for seed in range(30):
        disk = new_disk()
        rig = written(disk)
        rig.log(0).append(records("5a", "5b"), NOW_MS)
        if seed % 2:
            disk.fail_sync(FILE_NAMES[0])
            assert not rig.journal.pump()
        else:
            disk.cut_power_at = disk.operations + 1  # after the write
            with pytest.raises(PowerCut):
                rig.journal.pump()
        left = disk.after_kill()
        again = rig.restarted_on(left)
        assert again.keys(0) == expected(6)
        third = again.restarted_on(left.after_crash(random.Random(seed)))
        assert third.keys(0) == expected(6)
        assert third.keys(1) == expected(5)


def test_appends_after_a_recovery_are_stored_once_the_segments_are_synced() -> None:
    disk = new_disk()
    rig = written(disk)
    left = disk.after_crash(random.Random(1))
    again = rig.restarted_on(left)
    log = again.log(0)
    log.append(records("5a", "5b"), NOW_MS)
    assert again.stored == []
    assert again.journal.pump()
    assert again.stored == [(log.topic_partition, log.end_position)]
    third = again.restarted_on(left.after_crash(random.Random(2)))
    assert third.recovered.batches == 1  # the passes before it are gone
    assert third.keys(0) == expected(6)
    assert third.keys(1) == expected(5)


def test_power_may_go_at_every_step_of_a_checkpoint_and_stop() -> None:
    steps = 0
    while True:
        disk = new_disk()
        rig = written(disk)
        disk.cut_power_at = disk.operations + steps
        try:
            rig.stop()
        except PowerCut:
            again = rig.restarted_on(disk.after_crash(random.Random(steps)))
            assert again.keys(0) == again.keys(1) == expected(5)
            steps += 1
            continue
        break
    assert steps > 20


def test_bytes_that_were_never_promised_give_way() -> None:
    disk = new_disk()
    rig = written(disk, 3)
    left = disk.after_kill()
    other = new_disk()
    foreign = Rig(other)
    log = foreign.log(0)
    for name in ("0a", "0b", "xx", "yy"):  # sound batches at the same offsets, other contents
        log.append(records(name), NOW_MS)
    foreign.journal.pump()
    content = other.open(SEGMENT).pread(1 << 20, 0)
    left.open(SEGMENT).truncate(0)
    left.open(SEGMENT).pwrite(content, 0)
    again = rig.restarted_on(left)
    assert again.keys(0) == expected(3)


def test_a_log_that_is_shorter_than_its_recovery_point_is_named_before_the_journal() -> None:
    disk = new_disk()
    rig = written(disk, 3)
    assert rig.journal.close()
    again = rig.restarted_on(disk.after_kill())
    again.log(0).append(records("more"), NOW_MS)
    again.journal.pump()
    left = again.disk
    assert isinstance(left, SimulatedDisk)
    left.remove(SEGMENT)
    left = left.after_kill()
    (damage,) = LogStore(left, DATA).open().damaged
    assert str(damage).endswith("ends at offset 0, though offsets up to 5 were durable")


def test_a_gap_between_a_log_and_the_journal_is_corrupt() -> None:
    disk = new_disk()
    rig = written(disk, 3)
    assert rig.journal.close()
    again = rig.restarted_on(disk.after_kill())
    again.log(0).append(records("more"), NOW_MS)
    again.journal.pump()
    left = disk.after_kill()
    left.remove(SEGMENT)
    left.remove(f"{DATA}/{RECOVERY_POINTS}")
    with pytest.raises(Corrupt, match=f"{OFFSETS}-0 ends at offset 0, the journal goes on at 6"):
        rig.restarted_on(left)


def test_the_journal_of_another_topic_is_refused() -> None:
    disk = new_disk()
    rig = written(disk, 1)
    left = disk.after_kill()
    metadata = f"{DATA}/{OFFSETS}-0/partition.metadata"
    content = left.open(metadata).pread(100, 0)
    left.open(metadata).pwrite(content[::-1][:1] * 10, len(content) - 22)
    with pytest.raises(Corrupt, match=f"{WAL} at byte {FIRST_GROUP}: group 0: .* topic id"):
        rig.restarted_on(left)


def test_a_damaged_partition_keeps_its_journal() -> None:
    disk = new_disk()
    rig = written(disk, 3)
    rig.stop()
    again = rig.restarted_on(disk)
    again.log(0).append(records("more"), NOW_MS)
    again.journal.pump()
    left = disk.after_kill()
    left.open(SEGMENT).pwrite(b"?", 100)  # below the recovery point
    before = left.open(WAL).pread(1 << 20, 0)
    with pytest.raises(Corrupt, match=SEGMENT):
        rig.restarted_on(left)
    assert left.open(WAL).pread(1 << 20, 0) == before


SEGMENT_OF_FIVE = LogSettings(segment_bytes=512, index_interval_bytes=128)
"""Five batches of two records fill a segment."""


def with_an_unsynced_segment() -> SimulatedDisk:
    """Three segments: the first below the recovery point, the second empty after a power cut."""
    disk = new_disk()
    rig = Rig(disk, SEGMENT_OF_FIVE)
    for number in range(15):
        if number == 5:
            rig.stop()
            rig = Rig(disk, SEGMENT_OF_FIVE)
        rig.log().append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    disk.write_back()
    disk.open(f"{DATA}/{OFFSETS}-0/{10:020d}.log").truncate(0)
    disk.write_back()
    return disk.after_kill()


def cut_short(disk: SimulatedDisk, at: int) -> bool:
    """A start that ends before this operation; False if it has fewer. Its segments are larger."""
    disk.cut_power_at = disk.operations + at
    try:
        Rig(disk)
    except PowerCut:
        return True
    return False


def test_a_segment_that_a_killed_start_removed_does_not_come_back() -> None:
    """The first start is killed while it removes segments, the power goes in the second."""
    removed = f"{DATA}/{OFFSETS}-0/{10:020d}.log"
    cases = 0
    for first in range(100):
        disk = with_an_unsynced_segment()
        if not cut_short(disk, first):
            break
        if disk.exists(removed):
            continue
        for second in range(100):
            disk = with_an_unsynced_segment()
            cut_short(disk, first)
            disk = disk.after_kill()
            was_cut = cut_short(disk, second)
            again = Rig(disk.after_crash(random.Random(second)))
            log = again.store.partition_log(TopicPartition(OFFSETS, 0))
            assert log is not None
            for segment, following in pairwise(log.segments):
                assert segment.next_offset <= following.base_offset
            assert again.keys(0) == expected(15)
            cases += 1
            if not was_cut:
                break
    assert cases > 20
