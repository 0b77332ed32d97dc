"""Offsets log: `__consumer_offsets`, read from the files by an independent reader.

Independent of coordinator/records.py on purpose: a test that reads with the writer's own code would
not notice that both are wrong. Only what the interop tests look at is decoded.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from storage.batch.record_batch import iter_batches, stored_records

OFFSET_COMMIT = 1
GROUP_METADATA = 2


class Cursor:
    """Reads the non-flexible primitives of Kafka's record schemas, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, code: str) -> int:
        (value,) = struct.unpack_from(">" + code, self.data, self.position)
        self.position += struct.calcsize(">" + code)
        return value

    def blob(self, code: str) -> bytes | None:
        length = self.take(code)
        if length < 0:
            return None
        self.position += length
        return self.data[self.position - length : self.position]

    def string(self) -> str | None:
        raw = self.blob("h")
        return None if raw is None else raw.decode()


@dataclass(frozen=True)
class StoredMember:
    member_id: str
    assigned: dict[str, list[int]]


@dataclass(frozen=True)
class Generation:
    number: int
    members: tuple[StoredMember, ...]

    @property
    def member_ids(self) -> frozenset[str]:
        return frozenset(member.member_id for member in self.members)


def stored_generations(data_dir: Path, group: str) -> list[Generation]:
    """Every generation with members that was ever stored for the group, in log order."""
    found = []
    for key, value in records_of(data_dir):
        if key.take("h") != GROUP_METADATA or key.string() != group or value is None:
            continue
        version = value.take("h")
        assert version == 3, "Kafka 4.3.1 writes version 3"
        value.string()  # protocol type
        number = value.take("i")
        value.string(), value.string(), value.take("q")  # protocol, leader, timestamp
        members = tuple(_member(value) for _ in range(value.take("i")))
        if members:
            found.append(Generation(number, members))
    return found


def stored_commits(data_dir: Path, group: str) -> dict[tuple[str, int], list[int]]:
    """(topic, partition) -> every offset that was ever stored for it, in log order."""
    found: dict[tuple[str, int], list[int]] = {}
    for key, value in records_of(data_dir):
        if key.take("h") != OFFSET_COMMIT or key.string() != group or value is None:
            continue
        partition = (key.string(), key.take("i"))
        value.take("h")  # every version of the value begins with the offset
        found.setdefault(partition, []).append(value.take("q"))
    return found


def _member(value: Cursor) -> StoredMember:
    member_id = value.string()
    value.string(), value.string(), value.string()  # instance id, client id, client host
    value.take("i"), value.take("i")  # rebalance and session timeout
    value.blob("i")  # subscription
    assignment = Cursor(value.blob("i"))
    assigned: dict[str, list[int]] = {}
    if assignment.data:
        assignment.take("h")  # version
        for _ in range(assignment.take("i")):
            topic = assignment.string()
            assigned[topic] = [assignment.take("i") for _ in range(assignment.take("i"))]
    return StoredMember(member_id, assigned)


def records_of(data_dir: Path):
    for segment in sorted(Path(data_dir).glob("__consumer_offsets-*/*.log")):
        content = segment.read_bytes()
        for position, header in iter_batches(content):
            for record in stored_records(content[position : position + header.size]):
                value = None if record.value is None else Cursor(record.value)
                yield Cursor(record.key), value
