"""Batches of producers: shows record batches by their fields, so that producer ids have numbers.

What two honest brokers may choose freely are the producer id and the time of a marker. Everything
else is shown or checked: the checksum must hold, and the bytes of a marker are those of its fields.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, Protocol

from storage.batch.record_batch import (
    BatchHeader,
    InvalidBatch,
    check_crc,
    iter_batches,
    read_records,
)
from tests.compare.batches import AT_MS

_MARKERS: Final = {0: "ABORT", 1: "COMMIT"}
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


class ProducerNames(Protocol):
    @property
    def given_ms(self) -> int: ...

    def producer(self, producer_id: int) -> str: ...

    def leader_epoch(self, epoch: int) -> str: ...

    def coordinator_epoch(self, epoch: int) -> str: ...


def are_shown(records: object, names: ProducerNames) -> bool:
    """Whether these are whole batches of which one has a producer, or the time of this run."""
    if not isinstance(records, bytes | memoryview | bytearray) or not records:
        return False
    data = bytes(records)
    try:
        headers = [check_crc(data, position, header) for position, header in iter_batches(data)]
        for position, header in iter_batches(data):
            read_records(data, position, header)
    except InvalidBatch:  # a scenario sends what is no batch
        return False
    return any(
        header.producer_id >= 0 or header.max_timestamp == names.given_ms != AT_MS
        for header in headers
    )


def shown_batches(records: bytes, names: ProducerNames) -> Iterator[str]:
    data = bytes(records)
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        yield f"{_header(header, names)} {shown_contents(data, position, header, names)}"


def _header(header: BatchHeader, names: ProducerNames) -> str:
    times = (header.base_timestamp, header.max_timestamp)
    shown = f"times={'<now>' if header.is_control else times} "
    if times == (names.given_ms, names.given_ms):
        shown = ""
    return (
        f"at={header.base_offset} leader_epoch={names.leader_epoch(header.partition_leader_epoch)} "
        f"attributes={header.attributes:#x} {shown}"
        f"{names.producer(header.producer_id)} epoch={header.producer_epoch} "
        f"sequence={header.base_sequence}"
    )


def shown_contents(data: bytes, position: int, header: BatchHeader, names: ProducerNames) -> str:
    records = read_records(data, position, header)
    if header.is_control and len(records) == 1:
        _, _, key, value, _ = records[0]
        if len(key or b"") == _KEY.size and len(value or b"") == _VALUE.size:
            key_version, kind = _KEY.unpack(key or b"")
            version, coordinator_epoch = _VALUE.unpack(value or b"")
            assert (key_version, version) == (0, 0)
            epoch = names.coordinator_epoch(coordinator_epoch)
            return f"{_MARKERS[kind]} coordinator_epoch={epoch} bytes={header.size}"
    return " ".join(f"{key!r}:{value!r}" for _, _, key, value, _ in records)
