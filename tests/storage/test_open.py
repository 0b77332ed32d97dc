"""Damaged topic: a user topic with a damaged sealed segment; all other topics are served."""

from storage.api import LogSettings, TopicPartition
from storage.journal.journal import JournalLimits
from storage.log.log_store import LogStore
from storage.open import PartitionSetAside, StorageSettings, open_logs
from tests.storage.rig import DATA, NOW_MS, TOPIC_ID, batch, new_disk

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("paid", 0)
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=64, segment_ms=1_000)


def test_damage_before_an_empty_active_segment_sets_its_partition_aside() -> None:
    disk = new_disk()
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    store.open()
    for key in (KEY, OTHER):
        log = store.create(key, TOPIC_ID, SETTINGS)
        log.append(batch("k0", timestamp_ms=NOW_MS), NOW_MS)
        assert log.roll_if_old(NOW_MS + 5_000)
        log.flush()
    store.write_checkpoints()

    disk = disk.after_kill()
    disk.open(f"{DATA}/orders-0/{0:020d}.log").pwrite(b"?", 16)  # its magic
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    told: list[object] = []
    open_logs(store, StorageSettings(JournalLimits(), ("__consumer_offsets",)), told.append)
    assert list(store.damaged) == [KEY]
    assert list(store.partitions()) == [OTHER]
    assert [type(event) for event in told] == [PartitionSetAside]
    # What the checkpoints know of it stays, and forbids nothing at the next start.
    store.write_checkpoints()
    assert store.close() == []
    again = LogStore(disk, DATA, lambda _: SETTINGS)
    again.open()
    log = again.partition_log(KEY)
    assert log is not None
    assert log.log_end_offset == 1
