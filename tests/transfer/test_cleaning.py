"""Cleaning of imports: records that are not served survive the cleaner byte for byte."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.consumer.records import group_epoch_record
from protocol.names import GroupId
from storage.batch.record_batch import encode_batch
from storage.batch.timed_batches import TimedRecord, timed_batches
from tests.storage.cleaner.rig import Partition
from tests.transfer.given import (
    NOW_MS,
    classic_group,
    foreign_record,
    marker,
    offset_record,
    offset_tombstone,
    shown,
    transactional,
)
from transfer.contents import Contents
from transfer.rollcall_dir import read_logs
from transfer.source_stats import SourceStats


def test_records_of_every_type_survive_cleaning() -> None:
    newest = [
        *[foreign_record(kind, f"group-{kind}", b"\x00\x00newest") for kind in (11, 17, 42)],
        group_epoch_record(GroupId("group-3"), 9, 0),
        classic_group("classic", generation=9),
        offset_record("classic", "t", 0, 9),
    ]
    older = [
        *[foreign_record(kind, f"group-{kind}", b"\x00\x00older") for kind in (11, 17, 42)],
        group_epoch_record(GroupId("group-3"), 1, 0),
        classic_group("classic", generation=1),
        offset_record("classic", "t", 0, 1),
    ]
    partition = Partition()
    for records in (older, newest):
        timed = [TimedRecord(NOW_MS - n, *record) for n, record in enumerate(records)]
        for batch, _ in timed_batches(timed):
            partition.log.append(batch, NOW_MS)
        partition.roll()
    size = partition.log.size_bytes
    before = contents_of(partition)

    partition.clean()

    assert partition.log.size_bytes < size
    after = contents_of(partition)
    assert after.groups == before.groups
    kept = {
        key: stored.value for group in after.groups.values() for key, stored in group.state.items()
    }
    assert kept == dict(newest[:-1])
    times = [
        stored.timestamp_ms for group in after.groups.values() for stored in group.state.values()
    ]
    assert sorted(times) == [NOW_MS - n for n in reversed(range(len(newest) - 1))]


def contents_of(partition: Partition) -> Contents:
    found, tally = Contents(), SourceStats("cleaned", "rollcall")
    read_logs([partition.log], found, tally)
    return found


Step = tuple[str, int, int, int]
"""(what, producer, partition, offset)"""

steps = st.lists(
    st.tuples(
        st.sampled_from(["plain", "tombstone", "transactional", "commit", "abort", "roll"]),
        st.integers(1, 3),
        st.integers(0, 2),
        st.integers(0, 99),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps, st.integers(0, 3))
def test_a_log_says_the_same_before_and_after_it_was_cleaned(some: list[Step], cleans: int) -> None:
    partition = Partition()
    rolled_at = 0
    for what, producer, place, offset in some:
        end = partition.end
        if what == "roll":
            if end > rolled_at:  # an empty segment is not rolled
                partition.roll()
                rolled_at = end
        elif what in ("commit", "abort"):
            partition.append(marker(end, producer, commits=what == "commit"))
        elif what == "transactional":
            record = offset_record("g", "t", place, offset)
            partition.append(transactional([record], end, producer))
        else:
            record = offset_record("g", "t", place, offset)
            if what == "tombstone":
                record = offset_tombstone("g", "t", place)
            partition.append(encode_batch([record], end, NOW_MS))
    before, pending = state_of(partition)
    if partition.end > rolled_at:
        partition.roll()
    for number in range(cleans):
        partition.clean(at=NOW_MS + number * 2_000)
    assert state_of(partition) == (before, pending)


def state_of(partition: Partition) -> tuple[dict, list]:
    found, tally = Contents(), SourceStats("log", "rollcall")
    read_logs([partition.log], found, tally)
    return shown(found), sorted(tally.transactions.pending)
