"""Segment swap: readers during a swap, swaps that come too late, and files to be removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from storage.batch.record_batch import read_header
from storage.disk import RealDisk
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import SwapRefused, remove_cleaned, remove_deleted, swap_in
from tests.storage.cleaner.rig import KEY, SETTINGS, Partition
from tests.storage.rig import TOPIC_ID


def three_segments(log: Partition) -> Partition:
    for number in range(3):
        log.write(a=number, **{f"k{number}": number})
        log.write(b=number)
        log.roll()
    return log


@pytest.fixture(params=["simulated", "real"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Partition]:
    """On a disk in memory, and on a real one, whose files have handles."""
    made = Partition()
    if request.param == "real":
        made.disk = RealDisk()
        made.log = PartitionLog(made.disk, str(tmp_path / "compacted-0"), KEY, SETTINGS)
        made.log.create(TOPIC_ID)
    yield three_segments(made)
    made.log.abandon("tested")


def test_a_reader_that_has_begun_reads_what_it_began_with(log: Partition) -> None:
    everything = log.batches()
    reader = log.log.batches(0)
    first = next(reader)
    log.clean()
    assert [first, *reader] == everything
    assert len(log.batches()) < len(everything)


def test_a_reader_that_opens_a_source_after_its_name_is_gone(log: Partition) -> None:
    segments = list(log.log.segments)
    for segment in segments:
        segment.release()
    before = [segment.pread(0, segment.size) for segment in segments]
    for segment in segments:
        segment.release()
    log.clean()
    for segment in segments:
        segment.release()  # as a reader does that is done with it
    assert [segment.pread(0, segment.size) for segment in segments] == before


def test_a_fetch_from_any_offset_finds_the_next_batch_there_is(log: Partition) -> None:
    end = log.end
    log.clean()
    kept = [read_header(batch) for batch in log.batches()]
    for offset in range(end):
        content = log.log.read(offset, 1 << 20, up_to=end, at_least_one=True)
        expected = next((batch for batch in kept if batch.last_offset >= offset), None)
        if expected is None:
            assert content == b""
        else:
            assert read_header(content).base_offset == expected.base_offset


def test_the_log_is_the_same_after_a_start(log: Partition) -> None:
    log.clean()
    again = PartitionLog(log.disk, log.log.path, KEY, SETTINGS)
    again.open(0)
    assert list(again.batches(0)) == log.batches()
    assert again.log_end_offset == log.end
    assert [segment.base_offset for segment in again.segments] == [
        segment.base_offset for segment in log.log.segments
    ]


def test_a_swap_of_segments_that_were_removed_meanwhile_is_refused(log: Partition) -> None:
    (replacement,) = log.run().replacements
    log.log.settings = replace(SETTINGS, cleanup_delete=True, retention_bytes=0)
    assert log.log.enforce_retention(0)
    left = log.batches()
    with pytest.raises(SwapRefused, match="has lost segments"):
        swap_in(log.disk, log.log, replacement.base_offset, replacement.sources)
    assert log.batches() == left
    remove_cleaned(log.disk, log.log.path)
    assert not [name for name in log.disk.listdir(log.log.path) if "cleaned" in name]


def test_a_swap_into_a_closed_log_is_refused(log: Partition) -> None:
    (replacement,) = log.run().replacements
    log.log.abandon("deleted")
    with pytest.raises(SwapRefused, match="is closed"):
        swap_in(log.disk, log.log, replacement.base_offset, replacement.sources)


def test_what_was_replaced_stays_until_it_is_removed(log: Partition) -> None:
    (replacement,) = log.run().replacements
    replaced = swap_in(log.disk, log.log, replacement.base_offset, replacement.sources)
    assert len(replaced) == 9
    names = [name for name in log.disk.listdir(log.log.path) if name.endswith(".deleted")]
    assert len(names) == 9
    remove_deleted(log.disk, log.log, replaced)
    remove_deleted(log.disk, log.log, replaced)
    assert not [name for name in log.disk.listdir(log.log.path) if name.endswith(".deleted")]


def test_nothing_is_removed_from_a_folder_that_may_be_anothers(log: Partition) -> None:
    (replacement,) = log.run().replacements
    replaced = swap_in(log.disk, log.log, replacement.base_offset, replacement.sources)
    log.log.abandon("deleted")
    remove_deleted(log.disk, log.log, replaced)
    assert len([name for name in log.disk.listdir(log.log.path) if "deleted" in name]) == 9


def test_a_start_removes_what_waited(log: Partition) -> None:
    (replacement,) = log.run().replacements
    swap_in(log.disk, log.log, replacement.base_offset, replacement.sources)
    again = PartitionLog(log.disk, log.log.path, KEY, SETTINGS)
    again.open(0)
    assert not [name for name in log.disk.listdir(log.log.path) if name.count(".") > 1]
    assert list(again.batches(0)) == log.batches()


def test_the_copy_has_the_time_of_its_last_source(tmp_path: Path) -> None:
    import os

    folder = tmp_path / "compacted-0"
    log = PartitionLog(RealDisk(), str(folder), KEY, SETTINGS)
    log.create(TOPIC_ID)
    made = Partition()
    made.disk, made.log = RealDisk(), log
    three_segments(made)
    for number, segment in enumerate(log.segments[:-1]):
        os.utime(segment.path, (1_000_000 + number, 1_000_000 + number))
    made.clean()
    assert Path(log.segments[0].path).stat().st_mtime == 1_000_002


def test_appends_go_on_after_a_swap(log: Partition) -> None:
    log.clean()
    log.write(z=1)
    assert log.kept()[log.end - 1] == ("z", "1")
    log.roll()
    log.clean()
    assert log.kept()[log.end - 1] == ("z", "1")
