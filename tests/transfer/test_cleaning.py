"""What was imported and is not served outlives the cleaner byte for byte, and can go out again."""

from storage.timed_batches import TimedRecord, batches_of
from tests.storage.cleaner_rig import Partition
from tests.transfer.given import NOW_MS, classic_group, foreign_record, offset_record
from transfer.contents import Contents
from transfer.rollcall_dir import read_logs
from transfer.tally import Tally


def test_records_of_every_type_survive_cleaning() -> None:
    newest = [
        *[foreign_record(kind, f"group-{kind}", b"\x00\x00newest") for kind in (3, 11, 17, 42)],
        classic_group("classic", generation=9),
        offset_record("classic", "t", 0, 9),
    ]
    older = [
        *[foreign_record(kind, f"group-{kind}", b"\x00\x00older") for kind in (3, 11, 17, 42)],
        classic_group("classic", generation=1),
        offset_record("classic", "t", 0, 1),
    ]
    partition = Partition()
    for records in (older, newest):
        timed = [TimedRecord(NOW_MS - n, *record) for n, record in enumerate(records)]
        for batch, _ in batches_of(timed):
            partition.log.append(batch, NOW_MS)
        partition.roll()
    size = partition.log.size_bytes
    before = contents_of(partition)

    partition.clean()

    assert partition.log.size_bytes < size
    after = contents_of(partition)
    assert after.groups == before.groups
    kept = {key: one.value for group in after.groups.values() for key, one in group.state.items()}
    assert kept == {record.key: record.value for record in newest[:-1]}
    times = [one.timestamp_ms for group in after.groups.values() for one in group.state.values()]
    assert sorted(times) == [NOW_MS - n for n in reversed(range(len(newest) - 1))]


def contents_of(partition: Partition) -> Contents:
    found, tally = Contents(), Tally("cleaned", "rollcall")
    read_logs([partition.log], found, tally)
    return found
