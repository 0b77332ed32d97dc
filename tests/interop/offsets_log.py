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
CONSUMER_GROUP_METADATA = 3
CURRENT_MEMBER_ASSIGNMENT = 8
UUID_BYTES = 16


class Cursor:
    """Reads the primitives of Kafka's record schemas, one after the other."""

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

    def varint(self) -> int:
        """Unsigned."""
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def elements(self) -> range:
        """Of a compact array, whose length is stored plus one."""
        return range(self.varint() - 1)

    def skip(self, size: int) -> bytes:
        self.position += size
        return self.data[self.position - size : self.position]

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())


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


def stored_epochs(data_dir: Path, group: str) -> list[int]:
    """Every group epoch that was ever stored for the consumer group, in log order."""
    return [
        value.take("i")
        for key, value in records_of(data_dir)
        if key.take("h") == CONSUMER_GROUP_METADATA
        and key.string() == group
        and value is not None
        and value.take("h") == 0
    ]


StoredPartition = tuple[bytes, int]


def check_stored_owners(data_dir: Path, group: str) -> int:
    """No partition was ever stored for two members at once; how many assignments were stored."""
    of_members: dict[str | None, set[StoredPartition]] = {}
    count = 0
    for key, value in records_of(data_dir):
        if key.take("h") != CURRENT_MEMBER_ASSIGNMENT or key.string() != group:
            continue
        member_id = key.string()
        of_members[member_id] = set() if value is None else _current_assignment(value)
        count += 1
        owned = [partition for owned in of_members.values() for partition in owned]
        assert len(owned) == len(set(owned)), f"two owners at once: {of_members}"
    return count


def _current_assignment(value: Cursor) -> set[StoredPartition]:
    """What the member has, and what it is to give back."""
    value.take("h")
    value.take("i"), value.take("i"), value.take("b")  # both epochs, state
    owned = _topic_partitions(value)
    return owned | _topic_partitions(value)


def _topic_partitions(value: Cursor) -> set[StoredPartition]:
    found: set[StoredPartition] = set()
    for _ in value.elements():
        topic_id = value.skip(UUID_BYTES)
        found |= {(topic_id, value.take("i")) for _ in value.elements()}
        value.skip_tags()
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
