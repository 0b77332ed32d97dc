"""Stored transactions: what a scenario left in the logs of the coordinators, and in `.txnindex`.

Three parts: the records of its transactional ids in `__transaction_state`; the batches of its
groups in `__consumer_offsets`, with their producers and markers; the aborted transactions of its
topics. The records of a transactional id are decoded here by hand: the broker's own code is under
test. Producer ids have numbers, times of the broker's clock are `<time>`.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

from coordinator.classic.generation_record import GENERATION_BEGUN
from logtools.group_records import decode_group_record
from logtools.layout import place_at
from logtools.walk import Batch, walk
from protocol.names import OFFSETS_TOPIC
from storage.batch.record_batch import BatchHeader, read_records
from storage.log.checkpoints import encode_uuid
from tests.compare.script import Scenario
from tests.compare.servers import RESTARTED
from tests.compare.shown_batches import shown_contents
from tests.compare.stored import Stored, StoredNames, stored_line, stored_lines

STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit",
                 "CompleteAbort")  # fmt: skip

_RAISING: Final = re.compile(r" epoch=(?!32766 )\d{2,} timeout=60000 Empty ")
"""A record of a producer that only starts again, to raise the epoch."""

_TOPIC_ID: Final = re.compile(r',"topicId":"[^"]*"')
"""Kafka does not write it with the offsets of a transaction; see docs/differences.md."""

_TAGS: Final = {0: "previous", 1: "next", 2: "client_version", 3: "next_epoch"}
_ABORTED: Final = struct.Struct(">hqqqq")
"""An entry of `.txnindex`: version, producer id, first, last and last stable offset."""


class _Names(StoredNames):
    given_ms = 0

    def __init__(self, topics: Mapping[UUID, str], *, numbers_epochs: bool) -> None:
        super().__init__({encode_uuid(topic_id): name for topic_id, name in topics.items()})
        self._numbers_epochs = numbers_epochs
        self._producers: dict[int, str] = {}
        self._epochs: dict[int, str] = {}

    def leader_epoch(self, epoch: int) -> str:
        return str(epoch)

    def coordinator_epoch(self, epoch: int) -> str:
        if epoch < 0 or not self._numbers_epochs:
            return str(epoch)
        return self._epochs.setdefault(epoch, f"E{len(self._epochs) + 1}")

    def producer(self, producer_id: int) -> str:
        if producer_id < 0:
            return str(producer_id)
        return self._producers.setdefault(producer_id, f"P{len(self._producers) + 1}")

    def knows(self, producer_id: int) -> bool:
        return producer_id in self._producers


def transaction_lines(
    data_dir: Path,
    scenario: str,
    topics: Mapping[UUID, str] | None = None,
    *,
    numbers_epochs: bool = False,
) -> list[str]:
    """What the scenario has left, in a form that can be compared."""
    names = _Names(topics or {}, numbers_epochs=numbers_epochs)
    lines = [
        *_of_transactional_ids(data_dir, scenario, names),
        *_of_groups(data_dir, scenario, names),
        *_of_topics(data_dir, scenario, names),
    ]
    return [line.replace(scenario, "~") for line in lines]


def stored_by(scenario: Scenario, data_dir: Path, topics: Mapping[UUID, str]) -> list[str]:
    """What this scenario has left, as its chapter shows it."""
    if scenario.is_of_transactions:
        restarts = scenario.profile in RESTARTED
        lines = transaction_lines(data_dir, scenario.name, topics, numbers_epochs=restarts)
        return [line for line in lines if not _RAISING.search(line)] if scenario.is_slow else lines
    return stored_lines(data_dir, scenario.name, topics, batches=scenario.is_of_consumers)


def _is_of(scenario: str, name: str | None) -> bool:
    return name == scenario or (name or "").startswith(f"{scenario}.")


def _batches(data_dir: Path, topic: str) -> Iterator[Batch]:
    for partition in place_at(data_dir, topic=topic).only([topic], []).partitions:
        for segment in partition.segments:
            for batch in walk(segment.path):
                if not isinstance(batch, Batch):
                    break  # another scenario's, just being written: ours would be missed
                yield batch


def _header(header: BatchHeader, names: _Names) -> str:
    return (
        f"[attributes={header.attributes:#x} {names.producer(header.producer_id)} "
        f"epoch={header.producer_epoch} sequence={header.base_sequence}]"
    )


# ---------------------------------------------------------------- __transaction_state


def _of_transactional_ids(data_dir: Path, scenario: str, names: _Names) -> Iterator[str]:
    found: list[tuple[str, bytes | None, BatchHeader]] = []
    for batch in _batches(data_dir, "__transaction_state"):
        records = read_records(batch.content)
        for _, _, key, value, headers in records:
            assert key is not None
            assert not headers
            record_type, length = struct.unpack_from(">hh", key)
            transactional_id = key[4:].decode()
            assert (record_type, length) == (0, len(key) - 4)
            if _is_of(scenario, transactional_id):
                found.append((transactional_id, value, batch.header))
    for transactional_id, value, header in sorted(found, key=lambda record: record[0]):
        shown = "tombstone" if value is None else _transaction(value, names)
        yield f"TransactionLog {transactional_id} {_header(header, names)} {shown}"


class _Reader:
    """Reads the fields of a value one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, code: str) -> int:
        (value,) = struct.unpack_from(f">{code}", self.data, self.at)
        self.at += struct.calcsize(f">{code}")
        return int(value)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def size(self, *, is_flexible: bool) -> int:
        """Of an array; -1 for null."""
        return self.varint() - 1 if is_flexible else self.take("i")

    def text(self, *, is_flexible: bool) -> str:
        length = self.varint() - 1 if is_flexible else self.take("h")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def no_tags(self, *, is_flexible: bool) -> None:
        assert not is_flexible or self.varint() == 0


def _transaction(value: bytes, names: _Names) -> str:
    read = _Reader(value)
    version = read.take("h")
    is_flexible = version >= 1
    producer_id, epoch, timeout_ms = read.take("q"), read.take("h"), read.take("i")
    state = STATES[read.take("b")]
    partitions = _partitions(read, is_flexible=is_flexible)
    updated_ms, begun_ms = read.take("q"), read.take("q")
    tags = _tags(read, names) if is_flexible else ""
    assert read.at == len(value)
    assert updated_ms > 0
    begun = begun_ms if begun_ms <= 0 else "<time>"
    return (
        f"v{version} {names.producer(producer_id)} epoch={epoch} timeout={timeout_ms} {state} "
        f"partitions={partitions} begun={begun}{tags}"
    )


def _partitions(read: _Reader, *, is_flexible: bool) -> dict[str, list[int]] | None:
    count = read.size(is_flexible=is_flexible)
    if count < 0:
        return None
    found: dict[str, list[int]] = {}
    for _ in range(count):
        topic = read.text(is_flexible=is_flexible)
        found[topic] = sorted(read.take("i") for _ in range(read.size(is_flexible=is_flexible)))
        read.no_tags(is_flexible=is_flexible)
    assert len(found) == count
    return dict(sorted(found.items()))


def _tags(read: _Reader, names: _Names) -> str:
    shown = ""
    for _ in range(read.varint()):
        tag, size = read.varint(), read.varint()
        number = read.take("q" if size == 8 else "h")
        shown += f" {_TAGS[tag]}={names.producer(number) if size == 8 else number}"
    return shown


# ---------------------------------------------------------------- __consumer_offsets


def _of_groups(data_dir: Path, scenario: str, names: _Names) -> Iterator[str]:
    for number, batch in enumerate(_batches(data_dir, OFFSETS_TOPIC)):
        header = batch.header
        if header.is_control:
            if names.knows(header.producer_id):
                marker = shown_contents(batch.content, 0, header, names)
                yield f"{OFFSETS_TOPIC} {_header(header, names)} {marker}"
            continue
        for _, _, key, value, _ in read_records(batch.content):
            assert key is not None
            group = decode_group_record(key, value).group
            if int.from_bytes(key[:2], signed=True) == GENERATION_BEGUN:
                continue  # ours alone
            if _is_of(scenario, group):
                record = Stored(group or "", ("", number), key, value)
                if header.is_transactional:
                    line = _TOPIC_ID.sub("", stored_line(record, StoredNames({})))
                else:
                    line = stored_line(record, names)
                yield f"{OFFSETS_TOPIC} {_header(header, names)} {line}"


# ---------------------------------------------------------------- the scenario's topics


def _of_topics(data_dir: Path, scenario: str, names: _Names) -> Iterator[str]:
    for path in sorted(data_dir.glob(f"{scenario}.*/*.txnindex")):
        data = path.read_bytes()
        for at in range(0, len(data) - len(data) % _ABORTED.size, _ABORTED.size):
            version, producer_id, first, last, stable = _ABORTED.unpack_from(data, at)
            yield (
                f"{path.parent.name}/{path.name} v{version} {names.producer(producer_id)} "
                f"first={first} last={last} last_stable={stable}"
            )
