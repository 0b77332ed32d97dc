"""Checkpoint files: Kafka's text files of offsets, leader epochs and partition metadata.

All are text that an operator can read and Kafka's own code can load. The offset checkpoints
(`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`) are in the data directory, a
line per partition; `leader-epoch-checkpoint` and `partition.metadata` are in each partition's
folder.
Kafka's counterparts: CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataFile.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from storage.api import Corrupt, TopicPartition
from storage.disk import Disk, overwrite, read_file, replace_file

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEAN_OFFSETS = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
"""A Kafka that runs rewrites this file of its log directory every five seconds, Rollcall never."""
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

NO_TOPIC_ID = UUID(int=0)

_VERSION = "0"
_COUNT = re.compile(r"[0-9]{1,10}")  # as int() takes it, and no digits of other scripts
_UUID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")


def _encode(lines: Sequence[str]) -> bytes:
    return "\n".join((_VERSION, str(len(lines)), *lines, "")).encode()


def _decode(path: str, content: bytes) -> list[list[str]]:
    """The words of each entry; Corrupt unless the version and the count are right."""
    lines = content.decode("utf-8", "replace").splitlines()
    if len(lines) < 2 or lines[0] != _VERSION or _COUNT.fullmatch(lines[1]) is None:
        raise Corrupt(path, 0, "not a checkpoint file of version 0")
    entries = [line.split() for line in lines[2:]]
    if len(entries) != int(lines[1]):
        raise Corrupt(path, 0, f"{lines[1]} entries expected, {len(entries)} found")
    return entries


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """An offset checkpoint; empty when there is none."""
    if not disk.exists(path):
        return {}
    offsets: dict[TopicPartition, int] = {}
    for words in _decode(path, read_file(disk, path)):
        try:
            topic, partition, offset = words
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise Corrupt(path, 0, f"malformed line {' '.join(words)!r}") from None
    return offsets


def sound_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """As `read_offsets`; of a damaged file nothing, until the next checkpoint says it all again."""
    try:
        return read_offsets(disk, path)
    except Corrupt:
        return {}


def forget_lines(disk: Disk, path: str, keys: Iterable[TopicPartition]) -> None:
    """Remove the lines of these from an offset checkpoint, durably."""
    lines, gone = sound_offsets(disk, path), set(keys)
    if not gone.isdisjoint(lines):
        write_offsets(disk, path, {key: offset for key, offset in lines.items() if key not in gone})


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = [f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items())]
    replace_file(disk, path, _encode(lines))


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    """(leader epoch, its first offset), rising; empty when there is no file."""
    if not disk.exists(path):
        return []
    epochs: list[tuple[int, int]] = []
    for words in _decode(path, read_file(disk, path)):
        try:
            epoch, start_offset = words
            epochs.append((int(epoch), int(start_offset)))
        except ValueError:
            raise Corrupt(path, 0, f"malformed line {' '.join(words)!r}") from None
    return epochs


def encode_epochs(epochs: Sequence[tuple[int, int]]) -> bytes:
    return _encode([f"{epoch} {start_offset}" for epoch, start_offset in epochs])


def write_epochs(disk: Disk, path: str, epochs: Sequence[tuple[int, int]]) -> None:
    """In place: a rename over a file makes some file systems write it to the disk at once, and a
    start does this for every partition. Not synced."""
    overwrite(disk, path, encode_epochs(epochs))


def encode_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()  # no newline, as Kafka


def read_topic_id(disk: Disk, path: str) -> UUID:
    """The topic id in a `partition.metadata`; NO_TOPIC_ID when a crash left it missing or torn."""
    if not disk.exists(path):
        return NO_TOPIC_ID
    content, _, _ = read_file(disk, path).partition(b"\x00")  # a crash may leave zeros for the rest
    try:
        text = content.decode()
    except UnicodeDecodeError as fault:
        raise Corrupt(path, fault.start, "partition.metadata is not UTF-8") from None
    lines = dict(line.partition(": ")[::2] for line in text.split("\n"))
    if lines.get("version", "0") not in ("", "0"):
        raise Corrupt(path, 0, f"partition.metadata of version {lines['version']}")
    return decode_uuid(lines.get("topic_id", "")) or NO_TOPIC_ID


def readable_topic_id(disk: Disk, folder: str) -> UUID:
    """The topic id of a partition's folder; NO_TOPIC_ID also when it cannot be read."""
    try:
        return read_topic_id(disk, f"{folder}/{PARTITION_METADATA}")
    except (Corrupt, OSError):
        return NO_TOPIC_ID


def encode_uuid(uuid: UUID) -> str:
    """Kafka's 22 characters: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID | None:
    """The UUID of Kafka's 22 characters; None when they are not one."""
    if _UUID_TEXT.fullmatch(text) is None:
        return None
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
