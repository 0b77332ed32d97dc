"""One partition: offsets without gaps, segments that roll and go, and an opening that is honest."""

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.api import Corrupt, LogClosed, LogSettings, TopicPartition, TruncatedLog
from storage.batch.record_batch import check_crc, iter_batches
from storage.disk import read_file
from storage.log import retention
from storage.log.kept_copies import CUTS_KEPT_MAX
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING, IndexRebuilt, TailCut
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import DATA, NOW_MS, TOPIC_ID, batch, keys_in, new_disk

KEY = TopicPartition("orders", 3)
PATH = f"{DATA}/orders-3"
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=64)
DAY_MS = 86_400_000


def new_log(settings: LogSettings = SETTINGS) -> tuple[SimulatedDisk, PartitionLog]:
    disk = new_disk()
    log = PartitionLog(disk, PATH, KEY, settings)
    log.create(TOPIC_ID)
    return disk, log


def filled(count: int = 12, settings: LogSettings = SETTINGS) -> tuple[SimulatedDisk, PartitionLog]:
    """One record of about 80 bytes a batch: three to a segment."""
    disk, log = new_log(settings)
    for number in range(count):
        log.append(batch(f"k{number}", timestamp_ms=NOW_MS + number), NOW_MS)
    return disk, log


def reopened(
    disk: SimulatedDisk, recovery_point: int = 0, log_start_offset: int = 0
) -> PartitionLog:
    log = PartitionLog(disk, PATH, KEY, SETTINGS)
    log.open(recovery_point, log_start_offset)
    return log


def segments(disk: SimulatedDisk) -> list[int]:
    return sorted(int(name[:20]) for name in disk.listdir(PATH) if name.endswith(".log"))


def read_all(log: PartitionLog, max_bytes: int = 100) -> list[str]:
    keys: list[str] = []
    offset = log.log_start_offset
    while True:
        content = log.read(offset, max_bytes, up_to=1 << 40, at_least_one=True)
        if not content:
            return keys
        for position, header in iter_batches(content):
            keys += keys_in([content[position : position + header.size]])
            offset = header.next_offset


def test_a_new_partition_is_a_folder_with_two_small_files() -> None:
    disk, log = new_log()
    assert sorted(disk.listdir(PATH)) == ["leader-epoch-checkpoint", "partition.metadata"]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
    assert log.read(0, 100, up_to=10, at_least_one=True) == b""
    assert list(log.batches(0)) == []
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None
    assert log.enforce_retention(NOW_MS) == 0
    again = reopened(disk, EVERYTHING)
    assert (again.topic_id, again.leader_epoch, again.log_end_offset) == (TOPIC_ID, 0, 0)


def test_append_gives_out_offsets_and_keeps_the_rest_of_the_batch() -> None:
    _, log = new_log()
    assert log.append(batch("a", "b") + batch("c", base_offset=77), NOW_MS) == 0
    assert log.append(batch("d"), NOW_MS) == 3
    stored = list(log.batches(0))
    assert [check_crc(batch).base_offset for batch in stored] == [0, 2, 3]
    assert keys_in(stored) == ["a", "b", "c", "d"]
    assert log.log_end_offset == log.high_watermark == 4


def test_segments_roll_by_size_and_reads_go_from_one_to_the_next() -> None:
    disk, log = filled()
    assert segments(disk) == [0, 3, 6, 9]
    assert read_all(log) == [f"k{number}" for number in range(12)]
    assert keys_in(list(log.batches(4))) == [f"k{number}" for number in range(4, 12)]
    for offset in (-1, 13):
        with pytest.raises(IndexError):
            log.read(offset, 100, up_to=100, at_least_one=True)
    assert log.read(12, 100, up_to=100, at_least_one=True) == b""
    assert log.read(5, 1, up_to=100, at_least_one=False) == b""


def test_segments_roll_by_the_age_of_their_records() -> None:
    disk, log = new_log(LogSettings(segment_ms=1000))
    for moment in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001):
        log.append(batch("k", timestamp_ms=moment), NOW_MS)
    assert segments(disk) == [0, 2]
    log.append(batch("no time", timestamp_ms=-1), NOW_MS + 1500)
    assert segments(disk) == [0, 2]
    log.enforce_retention(NOW_MS + 9000)
    assert segments(disk) == [0, 2, 4]


def test_jitter_rolls_a_segment_earlier_and_always_at_the_same_age() -> None:
    settings = LogSettings(segment_ms=1_000, segment_jitter_ms=600)
    disk, log = new_log(settings)
    log.append(batch("k", timestamp_ms=NOW_MS), NOW_MS)
    jitter_ms = retention.roll_jitter_ms(log.segments[0], settings)
    assert 0 < jitter_ms < 600
    for age_ms in (1_000 - jitter_ms, 1_001 - jitter_ms):
        log.append(batch("k", timestamp_ms=NOW_MS + age_ms), NOW_MS)
    assert segments(disk) == [0, 2]


def test_jitter_is_at_most_the_age() -> None:
    _, log = new_log(LogSettings(segment_ms=2, segment_jitter_ms=1 << 40))
    log.append(batch("k", timestamp_ms=NOW_MS), NOW_MS)
    (segment,) = log.segments
    assert retention.roll_jitter_ms(segment, log.settings) < 2
    at_once = LogSettings(segment_ms=0, segment_jitter_ms=5)
    assert retention.roll_jitter_ms(segment, at_once) == 0


def test_segments_roll_when_the_index_is_full() -> None:
    disk, log = new_log(LogSettings(index_interval_bytes=0, segment_index_bytes=36))
    for _ in range(6):
        log.append(batch("k", timestamp_ms=NOW_MS + log.log_end_offset), NOW_MS)
    assert segments(disk) == [0, 3]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    disk, log = filled(1)
    log.append(batch("x" * 500), NOW_MS)
    log.append(batch("y"), NOW_MS)
    assert segments(disk) == [0, 1, 2]


def test_moments_are_found_across_segments() -> None:
    _, log = filled()
    for number in range(12):
        assert log.offset_for_timestamp(NOW_MS + number) == (NOW_MS + number, number)
    assert log.offset_for_timestamp(NOW_MS + 12) is None
    assert log.max_timestamp() == (NOW_MS + 11, 11)
    log.delete_before(5)
    assert log.offset_for_timestamp(0) == (NOW_MS + 5, 5)


# --- shrinking -----------------------------------------------------------------------------------


def test_bytes_are_counted_from_an_entry_of_the_index_and_at_the_end_there_are_none() -> None:
    _, log = filled(settings=LogSettings(index_interval_bytes=1_000))  # an entry every 13 batches
    assert log.bytes_from(0) == log.bytes_from(11) == log.size_bytes
    assert log.bytes_from(12) == 0
    log.append(batch("one more", timestamp_ms=NOW_MS), NOW_MS)
    assert 0 < log.bytes_from(12) <= log.size_bytes
    assert new_log()[1].bytes_from(0) == 0


def test_delete_before_moves_the_start_and_drops_whole_segments() -> None:
    disk, log = filled()
    assert log.delete_before(7) == 7
    assert segments(disk) == [6, 9]
    with pytest.raises(IndexError):
        log.read(6, 100, up_to=100, at_least_one=True)
    assert keys_in([log.read(7, 1, up_to=100, at_least_one=True)]) == ["k7"]
    assert log.delete_before(3) == 7
    assert log.delete_before(99) == 12
    assert segments(disk) == [12]
    assert log.append(batch("next"), NOW_MS) == 12


def test_what_was_deleted_before_stays_deleted() -> None:
    disk, log = filled()
    log.delete_before(7)
    log.close()
    assert reopened(disk, EVERYTHING, log_start_offset=7).log_start_offset == 7
    # Without the checkpoint of log starts the segments say what they can.
    assert reopened(disk, EVERYTHING).log_start_offset == 6
    beyond = reopened(disk, EVERYTHING, log_start_offset=40)
    assert (beyond.log_start_offset, beyond.log_end_offset) == (40, 40)
    assert segments(disk) == [40]


@pytest.mark.parametrize("steps", range(9))
def test_a_start_beyond_the_log_removes_nothing_for_good_and_says_so(steps: int) -> None:
    """As a checkpoint has it that an earlier version left of a deleted topic of that name."""
    disk, log = filled()
    log.close()
    paths = [segment.path for segment in log.segments]
    contents = [read_file(disk, path) for path in paths]
    disk.cut_power_at = disk.operations + steps
    with suppress(PowerCut):
        reopened(disk, EVERYTHING, log_start_offset=40)
    disk = disk.after_kill()
    disk.cut_power_at = None
    again = reopened(disk, 0, log_start_offset=40)
    assert (again.log_start_offset, again.log_end_offset) == (40, 40)
    assert [read_file(disk, f"{path}.damaged") for path in paths] == contents
    cuts = [repair for repair in again.repairs if isinstance(repair, TailCut)]
    assert all(cut.kept_as == f"{cut.path}.damaged" for cut in cuts)
    assert steps or [cut.path for cut in cuts] == paths


def test_retention_by_time() -> None:
    disk, log = filled(settings=LogSettings(segment_bytes=300, retention_ms=DAY_MS))
    assert log.enforce_retention(NOW_MS + DAY_MS) == 0
    assert log.enforce_retention(NOW_MS + DAY_MS + 3) == 1
    assert (segments(disk), log.log_start_offset) == ([3, 6, 9], 3)
    assert log.enforce_retention(NOW_MS + 9 * DAY_MS) == 3
    assert (segments(disk), log.log_start_offset, log.log_end_offset) == ([12], 12, 12)
    log.close()
    assert reopened(disk, EVERYTHING).log_end_offset == 12


def test_retention_by_size_never_goes_below_the_limit() -> None:
    disk, log = filled(settings=LogSettings(segment_bytes=300, retention_bytes=450))
    assert log.enforce_retention(NOW_MS) == 2
    assert log.size_bytes >= 450
    assert segments(disk) == [6, 9]


def test_a_compacted_topic_keeps_everything() -> None:
    settings = LogSettings(
        segment_bytes=300, retention_ms=1, retention_bytes=1, cleanup_delete=False
    )
    disk, log = filled(settings=settings)
    assert log.enforce_retention(NOW_MS + DAY_MS) == 0
    assert segments(disk) == [0, 3, 6, 9]


def test_a_reader_keeps_its_place_while_segments_go() -> None:
    _, log = filled()
    walk = log.batches(0)
    first = next(walk)
    log.append(batch("late"), NOW_MS)
    log.delete_before(2)
    rest = list(walk)
    assert keys_in([first, *rest])[:12] == [f"k{number}" for number in range(12)]


@pytest.mark.parametrize("offset", [0, 1, 3, 4, 11, 12])
def test_truncation(offset: int) -> None:
    disk, log = filled()
    log.truncate_to(offset)
    assert log.log_end_offset == offset
    assert read_all(log) == [f"k{number}" for number in range(offset)]
    assert log.append(batch("next"), NOW_MS) == offset
    log.close()
    assert read_all(reopened(disk, EVERYTHING))[-1] == "next"


# --- opening -------------------------------------------------------------------------------------


def test_a_clean_log_opens_as_it_was() -> None:
    disk, log = filled()
    log.close()
    again = reopened(disk, EVERYTHING)
    assert again.repairs == []
    assert read_all(again) == [f"k{number}" for number in range(12)]
    assert again.max_timestamp() == (NOW_MS + 11, 11)
    assert again.append(batch("next"), NOW_MS) == 12


@pytest.mark.parametrize("recovery_point", [0, 1, 3, 7, 12])
def test_a_killed_log_opens_whole(recovery_point: int) -> None:
    disk, _ = filled()
    again = reopened(disk, recovery_point)
    assert [repair for repair in again.repairs if isinstance(repair, TailCut)] == []
    assert read_all(again) == [f"k{number}" for number in range(12)]


def test_a_cut_keeps_the_segments_behind_it_and_a_copy() -> None:
    disk, _ = filled()
    path = f"{PATH}/{3:020d}.log"
    size = len(batch("k3"))
    tail = disk.open(path).pread(1000, size)
    disk.open(path).pwrite(b"?", size + 70)
    again = reopened(disk)
    assert again.log_end_offset == 12
    (cut,) = [repair for repair in again.repairs if isinstance(repair, TailCut)]
    assert cut[:3] == (path, size, len(tail))
    assert cut.kept_as == f"{path}.cut-{size}.damaged"
    kept = disk.open(cut.kept_as).pread(1000, 0)
    assert kept == tail[:70] + b"?" + tail[71:]
    assert read_all(again) == ["k0", "k1", "k2", "k3", *(f"k{n}" for n in range(6, 12))]
    assert again.append(batch("next"), NOW_MS) == 12
    again.close()
    # The cut is over: what is left is sound, and is trusted like all else.
    for recovery_point in (0, 4, 13, EVERYTHING):
        assert reopened(disk, recovery_point).repairs == []


def test_a_gap_between_sound_segments_is_no_damage() -> None:
    """Compaction leaves them, and without the recovery points nobody knows how far it got."""
    disk, log = filled()
    log.close()
    disk.open(f"{PATH}/{3:020d}.log").truncate(len(batch("k3")))
    for name in disk.listdir(PATH):
        if "index" in name:
            disk.remove(f"{PATH}/{name}")
    disk.remove(f"{PATH}/{6:020d}.log")
    for recovery_point in (0, 4, 5, 9, EVERYTHING):
        again = reopened(disk, recovery_point)
        assert again.log_end_offset == 12
        assert [repair for repair in again.repairs if isinstance(repair, TailCut)] == []
        assert read_all(again) == ["k0", "k1", "k2", "k3", "k9", "k10", "k11"]


def test_the_copies_of_torn_tails_are_bounded_and_zeros_are_not_kept() -> None:
    disk, _ = filled(2)
    path = f"{PATH}/{0:020d}.log"
    for number in range(CUTS_KEPT_MAX + 3):
        file = disk.open(path)
        file.pwrite(b"torn %d" % number, file.size())
        (cut,) = reopened(disk).repairs
        assert isinstance(cut, TailCut)
        assert disk.open(cut.kept_as).pread(100, 0) == b"torn %d" % number
    assert len([name for name in disk.listdir(PATH) if "damaged" in name]) == CUTS_KEPT_MAX
    file = disk.open(path)
    file.pwrite(bytes(5000), file.size())
    (cut,) = reopened(disk).repairs
    assert isinstance(cut, TailCut)
    assert (cut.bytes_cut, cut.kept_as) == (5000, "")


def test_a_torn_tail_without_a_batch_is_cut_without_a_copy_where_there_is_no_room() -> None:
    disk, _ = filled(2)
    file = disk.open(f"{PATH}/{0:020d}.log")
    file.pwrite(b"torn", file.size())
    disk.room = 0
    (cut,) = reopened(disk).repairs
    assert isinstance(cut, TailCut)
    assert cut.kept_as == ""
    disk.room = None
    # One that has a sound batch in it is not given up for want of room.
    end = file.size()
    file.pwrite(b"?" + batch("k2", base_offset=2), end)
    disk.room = 0
    with pytest.raises(OSError, match=r"no room for a copy of the \d+ bytes.*00\.log"):
        reopened(disk)
    disk.room = None
    assert file.size() > end


# --- a log that has shrunk -----------------------------------------------------------------------


def closed() -> SimulatedDisk:
    """Four sealed and synced segments of three records, with their indexes."""
    disk, log = filled()
    log.close()
    return disk


@pytest.mark.parametrize("recovery_point", [12, EVERYTHING])
@pytest.mark.parametrize(
    ("victim", "keep", "lost"),
    [(9, 1, (10, 11)), (9, 0, (9, 11)), (3, 0, (3, 5)), (6, None, (6, 8)), (9, None, (9, 11))],
)
def test_a_log_below_its_recovery_point_is_refused(
    recovery_point: int, victim: int, keep: int | None, lost: tuple[int, int]
) -> None:
    disk = closed()
    path = f"{PATH}/{victim:020d}.log"
    if keep is None:
        disk.remove(path)
    else:
        disk.open(path).truncate(keep * len(batch("k3")))
    log = PartitionLog(disk, PATH, KEY, SETTINGS)
    with pytest.raises(TruncatedLog) as refusal:
        log.open(recovery_point, known_end=12)
    assert refusal.value.offsets == lost


def test_what_a_stated_policy_removed_is_not_missed() -> None:
    disk = closed()
    log = reopened(disk, EVERYTHING)
    assert log.delete_before(7) == 7
    for suffix in ("log", "index", "timeindex"):
        assert not disk.exists(f"{PATH}/{3:020d}.{suffix}")
    # A crash between the removal of a log and that of its indexes leaves these.
    disk.open(f"{PATH}/{3:020d}.index", create=True)
    again = PartitionLog(disk, PATH, KEY, SETTINGS)
    again.open(12, 7, known_end=12)
    assert (again.log_start_offset, again.log_end_offset) == (7, 12)
    assert not disk.exists(f"{PATH}/{3:020d}.index")


def test_a_log_start_outlives_its_checkpoint_though_no_segment_is_left() -> None:
    disk, log = filled()
    assert log.delete_before(log.log_end_offset) == 12
    for name in disk.listdir(PATH):
        if name.endswith("log"):  # a power failure took what was not synced
            disk.remove(f"{PATH}/{name}")
    again = PartitionLog(disk, PATH, KEY, SETTINGS)
    again.open(0, 12)
    assert (again.log_start_offset, again.log_end_offset) == (12, 12)
    third = PartitionLog(disk, PATH, KEY, SETTINGS)
    third.open(0)  # the checkpoint is lost too
    assert third.append(batch("next"), NOW_MS) == 12


def test_segments_that_overlap_are_corrupt() -> None:
    disk, _ = filled(5)
    file = disk.open(f"{PATH}/{0:020d}.log")
    file.pwrite(disk.open(f"{PATH}/{3:020d}.log").pread(1000, 0), file.size())
    with pytest.raises(Corrupt, match="runs past the next one, 3"):
        reopened(disk)


def test_a_lost_index_is_made_again() -> None:
    disk, log = filled()
    log.close()
    for name in disk.listdir(PATH):
        if name.endswith(".index") or (name.endswith(".timeindex") and "3" in name):
            disk.remove(f"{PATH}/{name}")
    again = reopened(disk, EVERYTHING)
    assert {type(repair) for repair in again.repairs} == {IndexRebuilt}
    assert read_all(again) == [f"k{number}" for number in range(12)]
    assert again.offset_for_timestamp(NOW_MS + 4) == (NOW_MS + 4, 4)
    again.close()
    assert reopened(disk, EVERYTHING).repairs == []


def test_leftovers_of_a_crash_are_swept_away() -> None:
    disk, _ = filled(2)
    for name in (f"{9:020d}.index", f"{9:020d}.log.deleted", f"{0:020d}.log.cleaned", "x.tmp"):
        disk.open(f"{PATH}/{name}", create=True)
    reopened(disk)
    assert [name for name in disk.listdir(PATH) if "9" in name or "." in name[21:]] == []


def test_a_folder_whose_small_files_were_lost_opens_without_its_id() -> None:
    disk, log = filled(2)
    disk.remove(f"{PATH}/partition.metadata")
    disk.open(f"{PATH}/leader-epoch-checkpoint").truncate(3)
    again = reopened(disk)
    assert again.topic_id == UUID(int=0)
    assert again.leader_epoch == 0
    again.name_topic(log.topic_id)
    assert reopened(disk).topic_id == TOPIC_ID


# --- failures ------------------------------------------------------------------------------------


def test_a_closed_log_takes_no_more() -> None:
    _, log = filled(2)
    log.close()
    with pytest.raises(LogClosed, match=r"orders-3: closed"):
        log.append(batch("late"), NOW_MS)


def test_after_a_failed_fsync_nothing_is_appended_and_nothing_synced_again() -> None:
    disk, log = filled(2)
    disk.fail_sync(".log")
    with pytest.raises(OSError, match="input/output"):
        log.flush()
    assert log.recovery_point == 0
    with pytest.raises(LogClosed, match="fsync failed"):
        log.append(batch("late"), NOW_MS)
    operations = disk.operations
    log.close()
    assert disk.operations == operations


def test_a_full_disk_refuses_an_append_and_nothing_is_half_there() -> None:
    disk, log = filled(2)
    disk.room = 10
    with pytest.raises(OSError, match="no space"):
        log.append(batch("late") + batch("later"), NOW_MS)
    assert log.log_end_offset == 2
    disk.room = None
    assert log.append(batch("now"), NOW_MS) == 2
    assert read_all(log) == ["k0", "k1", "now"]


def test_flush_makes_everything_durable_the_names_too() -> None:
    disk, log = filled()
    log.flush()
    assert log.recovery_point == 12
    operations = disk.operations
    log.flush()
    assert disk.operations == operations


@given(st.lists(st.sampled_from(["append", "flush", "delete", "reopen", "close"]), max_size=30))
def test_any_history_reads_back(acts: list[str]) -> None:
    disk, log = new_log()
    expected: list[str] = []
    for number, act in enumerate(acts):
        match act:
            case "append":
                names = [f"{number}-{each}" for each in range(number % 4 + 1)]
                log.append(batch(*names), NOW_MS)
                expected += names
            case "flush":
                log.flush()
            case "delete":
                log.delete_before(log.log_end_offset // 2)
            case _:
                start = log.log_start_offset
                if act == "close":
                    log.close()
                log = reopened(disk, EVERYTHING if act == "close" else log.recovery_point, start)
        kept = keys_in(list(log.batches(0)))
        assert len(kept) >= len(expected) - log.log_start_offset
        assert kept == expected[len(expected) - len(kept) :]
        assert log.log_end_offset == len(expected)


# Reading without opening, and what is given up


def test_only_the_segment_that_is_written_to_is_read_without_opening_a_file() -> None:
    disk, log = filled(12)
    log.flush()  # what is dirty stays open
    first_of_active = segments(disk)[-1]
    for offset in range(12):
        found = log.read_open(offset, 1, up_to=12, at_least_one=True)
        if offset < first_of_active:
            assert found is None
        else:
            assert found == log.read(offset, 1, up_to=12, at_least_one=True)
    assert log.read_open(12, 1, up_to=12, at_least_one=True) == b""
    with pytest.raises(IndexError):
        log.read_open(13, 1, up_to=12, at_least_one=True)


def test_an_active_segment_that_is_not_open_yet_is_not_read_without() -> None:
    disk, log = filled(12)
    log.close()
    again = reopened(disk, EVERYTHING)
    for segment in again.segments:
        segment.release()
    assert again.read_open(11, 1, up_to=12, at_least_one=True) is None
    assert again.read(11, 1, up_to=12, at_least_one=True)
    assert again.read_open(11, 1, up_to=12, at_least_one=True)


def test_a_log_that_was_given_up_never_reads_what_bears_its_name_since() -> None:
    disk, old = filled(12)
    old.flush()
    old.abandon("deleted")
    disk.rename(PATH, f"{PATH}-gone")
    new = PartitionLog(disk, PATH, KEY, SETTINGS)
    new.create(TOPIC_ID)
    new.append(batch("another topic's"), NOW_MS)
    with pytest.raises(FileNotFoundError):
        old.read(0, 100, up_to=12, at_least_one=True)
    with pytest.raises(LogClosed):
        old.append(batch("late"), NOW_MS)
    assert read_all(new) == ["another topic's"]


def test_a_read_from_a_segment_that_retention_drops_at_this_moment_is_out_of_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, log = filled(12)
    log.flush()
    oldest = log.segments[0]
    read = type(oldest).read

    def read_late(segment: object, *arguments: object, **named: object) -> object:
        if segment is oldest:
            log.delete_before(6)
        return read(segment, *arguments, **named)  # type: ignore[arg-type] # as it came

    monkeypatch.setattr(type(oldest), "read", read_late)
    with pytest.raises(IndexError):
        log.read(0, 100, up_to=12, at_least_one=True)


# --- records without a timestamp -----------------------------------------------------------------


def without_times(count: int, settings: LogSettings) -> tuple[SimulatedDisk, PartitionLog]:
    disk, log = new_log(settings)
    for number in range(count):
        log.append(batch(f"k{number}", timestamp_ms=-1), NOW_MS)
    return disk, log


def test_records_without_a_time_roll_by_the_age_of_their_segment() -> None:
    settings = LogSettings(segment_bytes=1 << 20, segment_ms=1_000)
    disk, log = without_times(2, settings)
    log.append(batch("young", timestamp_ms=-1), NOW_MS + 1_000)
    assert segments(disk) == [0]
    log.append(batch("old", timestamp_ms=-1), NOW_MS + 1_001)
    assert segments(disk) == [0, 3]
    # As in Kafka, a start counts from zero: a file does not say when it was made.
    log.close()
    again = PartitionLog(disk, PATH, KEY, settings)
    again.open(EVERYTHING)
    assert not again.roll_if_old(NOW_MS + 50_000)
    assert again.roll_if_old(NOW_MS + 51_001)


def test_records_without_a_time_are_as_old_as_their_file() -> None:
    settings = LogSettings(segment_bytes=300, retention_ms=DAY_MS)
    disk, log = without_times(12, settings)
    for number, base in enumerate(segments(disk)):
        path = f"{PATH}/{base:020d}.log"
        disk._find(path).modified_ms = NOW_MS + number * 1_000
    assert log.enforce_retention(NOW_MS + DAY_MS) == 0
    assert log.enforce_retention(NOW_MS + DAY_MS + 1_001) == 2
    assert log.log_start_offset == 6
    assert log.enforce_retention(NOW_MS + 2 * DAY_MS) == 2
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)


def test_the_names_that_stay_are_durable_before_a_segment_goes() -> None:
    """A file system may write a removal before a creation: offsets would be given out again."""
    disk, log = filled()
    log.flush()
    removed: list[str] = []
    remove = disk.remove

    def checked(path: str) -> None:
        folder = disk._directory(PATH)
        stay = {f"{segment.base_offset:020d}.log" for segment in log.segments}
        assert stay <= folder.durable.keys()
        removed.append(path)
        remove(path)

    disk.remove = checked  # type: ignore[method-assign]
    log.append(batch("x"), NOW_MS)  # a segment whose name was not synced
    assert log.enforce_retention(NOW_MS + 30 * DAY_MS) == 5
    assert len(removed) > 5


def test_a_log_that_was_given_up_in_the_middle_of_a_roll_makes_no_file() -> None:
    disk, log = filled(12)
    files = disk.listdir(PATH)
    log.abandon("deleted")
    with pytest.raises(LogClosed):
        log.roll()
    assert disk.listdir(PATH) == files
