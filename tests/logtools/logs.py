"""Log files for the tools to read: a partition's folder, a data directory, and how to harm them."""

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from coordinator.group import CommittedOffset
from coordinator.records import add_offset_commits, add_offset_tombstones
from protocol.names import GroupId, TopicName
from seams.java_hash import partition_of
from storage.api import Record, RecordPair, TopicPartition
from storage.batch.record_batch import encode_batch, iter_batches, read_header
from storage.disk import RealDisk
from storage.log.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    encode_epochs,
    encode_metadata,
    write_offsets,
)
from storage.log.segment import Segment

OFFSETS = "__consumer_offsets"
TOPIC_ID = UUID("61746f6d-6963-4672-a963-6b6c65733031")
ORDERS_ID = UUID("61746f6d-6963-4672-a963-6b6c65733032")
NOW_MS = 1_790_000_000_000
GROUP = "billing"
PARTITION = partition_of(GROUP, 50)


def commit(offset: int, partition: int = 0, *, group: str = GROUP, topic: str = "orders") -> Record:
    made: list[RecordPair] = []
    committed = CommittedOffset(offset, 0, "", NOW_MS, -1, ORDERS_ID)
    add_offset_commits(made, GroupId(group), TopicName(topic), {partition: committed}, 4)
    return Record(*made[0])


def tombstone(partition: int = 0, *, group: str = GROUP, topic: str = "orders") -> Record:
    made: list[RecordPair] = []
    add_offset_tombstones(made, GroupId(group), TopicName(topic), [partition])
    return Record(*made[0])


def batches(groups: Sequence[Sequence[Record]], base_offset: int = 0) -> list[bytes]:
    """One batch for each list of records, a second apart."""
    made = []
    for records in groups:
        made.append(encode_batch(records, base_offset, NOW_MS + base_offset * 1_000))
        base_offset += len(records)
    return made


def write_segment(folder: Path, made: Sequence[bytes], *, sealed: bool = True) -> Path:
    """A .log file of these batches, with its indexes, an entry for every second batch."""
    base_offset = read_header(made[0]).base_offset
    segment = Segment(RealDisk(), str(folder), base_offset, 1)
    segment.create()
    for batch in made:
        header = read_header(batch)
        segment.append([(batch, header.last_offset, header.max_timestamp)])
    if sealed:
        segment.seal()
    segment.sync()
    return Path(segment.path)


def write_partition(data_dir: Path, topic: str, partition: int, *segments: list[bytes]) -> Path:
    folder = data_dir / f"{topic}-{partition}"
    folder.mkdir(parents=True)
    (folder / PARTITION_METADATA).write_bytes(encode_metadata(TOPIC_ID))
    (folder / LEADER_EPOCHS).write_bytes(encode_epochs([(0, 0)]))
    for number, made in enumerate(segments):
        write_segment(folder, made, sealed=number < len(segments) - 1)
    return folder


def write_data_dir(path: Path) -> Path:
    """A sound one: a partition of the offsets topic in three segments, and its small files."""
    made = batches([[commit(n), commit(n, 1)] for n in range(30)])
    write_partition(path, OFFSETS, PARTITION, made[:10], made[10:20], made[20:])
    key = TopicPartition(OFFSETS, PARTITION)
    write_offsets(RealDisk(), str(path / RECOVERY_POINTS), {key: 60})
    write_offsets(RealDisk(), str(path / "cleaner-offset-checkpoint"), {key: 20})
    catalog = {
        "format": 1,
        "topics": [{"name": OFFSETS, "id": str(TOPIC_ID), "partitions": 50, "configs": {}}],
        "deleting": [],
        "next_producer_id": 0,
    }
    (path / "rollcall-topics.json").write_text(json.dumps(catalog))
    return path


def logs_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def positions(log: Path) -> list[int]:
    """Where its batches begin."""
    return [position for position, _ in iter_batches(log.read_bytes())]


def patch(path: Path, position: int, content: bytes) -> None:
    """Write over some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def flip(path: Path, position: int) -> None:
    """Turn one bit of a file over."""
    patch(path, position, bytes([path.read_bytes()[position] ^ 1]))
