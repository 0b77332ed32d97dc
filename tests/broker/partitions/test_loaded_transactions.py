"""Loaded transactions: a log with transactions in it, served by a daemon.

As a Kafka's own files, moved as they are, hold them. What an open or an aborted transaction wrote
was never committed, and no client may read it; the open one is aborted.
"""

from confluent_kafka import Consumer, TopicPartition

from seams.java_hash import partition_of
from storage.batch.record_batch import encode_batch
from tests.transfer.given import NOW_MS, marker, offset_record, transactional, write_segment

OFFSETS_RETENTION = {"offsets.retention.minutes": str(2**31 - 1)}  # NOW_MS may be long ago


def test_only_what_was_committed_is_read(start_daemon) -> None:
    daemon = start_daemon(OFFSETS_RETENTION)
    daemon.stop()
    home = partition_of("g", 50)
    folder = daemon.data_dir / f"__consumer_offsets-{home}"
    for old in folder.glob("0*"):
        old.unlink()
    write_segment(
        daemon.data_dir,
        home,
        0,
        encode_batch([offset_record("g", "t", n, 1) for n in range(4)], 0, NOW_MS),
        transactional([offset_record("g", "t", 0, 50)], 4, 7),
        transactional([offset_record("g", "t", 1, 60)], 5, 8),
        transactional([offset_record("g", "t", 2, 70)], 6, 9),
        marker(7, 7, commits=True),
        marker(8, 8, commits=False),
    )
    for _ in range(2):  # read from the log, then from what the first stop may have written down
        daemon.start()
        client = Consumer(
            {
                "bootstrap.servers": daemon.bootstrap,
                "group.id": "g",
                "isolation.level": "read_uncommitted",  # else it asks for stable offsets
            }
        )
        places = client.committed([TopicPartition("t", n) for n in range(4)], 60)
        assert [place.offset for place in places] == [50, 1, 1, 1]
        client.close()
        client = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "g"})
        (place,) = client.committed([TopicPartition("t", 1)], 60)
        assert place.offset == 1
        # The transaction coordinator of that Kafka is not here: the open one is aborted.
        (place,) = client.committed([TopicPartition("t", 2)], 60)
        assert place.offset == 1
        client.close()
        assert daemon.stop() == 0
