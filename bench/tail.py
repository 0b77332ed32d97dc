"""Tail: microseconds per record of what a start reads behind the newest snapshot.

    .venv/bin/python -m bench.tail [--records 200000] [--rounds 5]
    # the sources; RESULTS.md begins with the command for the compiled build

The load's own steps, in one thread and in memory: the walk over a segment with its checksums, the
records of each batch, and the groups that they are written into. By batches of commits as
OffsetCommit writes them: of 1, 10 and 50 partitions, of two topics, with metadata, and again and
again by the same members. Process time, best of the rounds, without the garbage collector, which
is off in a start. Beside it the same with the generic reader, which takes every record by itself.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from coordinator.group import CommittedOffset
from coordinator.image import NOTHING, Image
from coordinator.loaded_record import LoadedRecord
from coordinator.records import add_offset_commits
from coordinator.stored_commits import loaded_records
from protocol.names import OFFSETS_TOPIC, GroupId, TopicName
from storage.api import LogSettings, RecordPair, TopicPartition
from storage.batch.control_batch import logged_records
from storage.batch.record_batch import encode_batch
from storage.disk import RealDisk
from storage.log.partition_log import PartitionLog

AT_MS = 1_790_000_000_000
TOPIC_ID = UUID("61746f6d-6963-4672-a963-6b6c65733031")
EACH_ONCE = 1 << 30
MIXES = {
    "50 partitions, each once": (50, ("orders",), "", EACH_ONCE),
    "10 partitions, each once": (10, ("orders",), "", EACH_ONCE),
    "1 partition, each once": (1, ("orders",), "", EACH_ONCE),
    "10 partitions of 2 topics, each once": (5, ("orders", "payments"), "", EACH_ONCE),
    "10 partitions with metadata, each once": (10, ("orders",), "note", EACH_ONCE),
    "10 partitions, 1,000 members again": (10, ("orders",), "", 1_000),
    "1 partition, 1,000 members again": (1, ("orders",), "", 1_000),
}


def batches(
    records: int, partitions: int, topics: tuple[str, ...], metadata: str, members: int
) -> Iterator[tuple[bytes, int, int]]:
    """(batch, last offset, time), as an append takes them."""
    base = number = 0
    while base < records:
        rows: list[RecordPair] = []
        group = GroupId(f"bench-group-{number % members}")
        for topic in topics:
            commits = {
                n: CommittedOffset(number, 3, metadata, AT_MS + number, -1, TOPIC_ID)
                for n in range(partitions)
            }
            add_offset_commits(rows, group, TopicName(topic), commits, 4)
        batch = encode_batch(rows, base, AT_MS + number, 0)
        base += len(rows)
        number += 1
        yield batch, base - 1, AT_MS + number


Read = Callable[[bytes], Sequence[LoadedRecord]]


def measure(
    records: int, rounds: int, mix: tuple[int, tuple[str, ...], str, int]
) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{OFFSETS_TOPIC}-0"
        settings = LogSettings(segment_bytes=1 << 30, cleanup_delete=False, cleanup_compact=True)
        log = PartitionLog(RealDisk(), path, TopicPartition(OFFSETS_TOPIC, 0), settings)
        log.create(TOPIC_ID)
        log.open(0)
        placed = list(batches(records, *mix))
        log.append_placed(placed, placed[-1][2])
        count = placed[-1][1] + 1
        whole = by_record = float("inf")
        for _ in range(rounds):
            whole = min(whole, load(log, loaded_records) / count * 1e6)
            by_record = min(by_record, load(log, logged_records) / count * 1e6)
        return whole, by_record


def load(log: PartitionLog, read: Read) -> float:
    began = time.process_time()
    image = Image(NOTHING)
    for batch in log.checked_batches(0):
        for record in read(batch):
            image.apply(record)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    gc.disable()
    print(f"{'batches of':<44}{'us per record':>14}{'by record':>14}")
    for name, mix in MIXES.items():
        whole, by_record = measure(arguments.records, arguments.rounds, mix)
        print(f"{name:<44}{whole:>14.2f}{by_record:>14.2f}", flush=True)


if __name__ == "__main__":
    main()
