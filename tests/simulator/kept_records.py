"""Kept records: what one partition has to serve, and whether a log serves it.

A record was acknowledged, or it is in doubt: its append was interrupted. What was acknowledged is
served after every start, unless a stated policy took it: a log start that was moved up, retention,
compaction. A power failure may take what was not synced. Nothing is served that was never written,
and no offset is given out twice.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from storage.api import TopicLog
from storage.batch.record_batch import read_header, read_records


class Written(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None
    at_ms: int


class Kept(Struct):
    """Of one partition. All offsets below are of acknowledged records unless it says otherwise."""

    records: dict[int, Written] = field(default_factory=dict)
    doubted: list[list[Written]] = field(default_factory=list)
    """Batches that were never acknowledged: a prefix of them may be there, each whole."""
    end: int = 0
    durable_to: int = 0
    """What is below it survives a power failure."""
    start: int = 0
    """Below it a policy may have taken what it wants."""
    is_cleaned: bool = False
    """Of each key the newest record is enough."""
    is_elsewhere: bool = False
    """Its folder was moved away: whatever is served instead is right."""

    def appended(self, batch: Sequence[Written]) -> None:
        self.records.update((record.offset, record) for record in batch)
        self.end = batch[-1].offset + 1

    def from_start(self) -> list[Written]:
        """Those that no policy may have taken."""
        return [record for offset, record in self.records.items() if offset >= self.start]

    def check(self, log: TopicLog, *, power_lost: bool) -> None:
        """Raises AssertionError. Afterwards what is served is what is known."""
        served = served_by(log)
        limit = min(self.durable_to, self.end) if power_lost else self.end
        if not self.is_elsewhere:
            self._check_origin(served)
            self._check_presence(served, limit)
            assert log.log_end_offset >= limit, f"ends at {log.log_end_offset}, told of {limit}"
        # Without its log start a log may show again what is below it.
        below = {offset: record for offset, record in self.records.items() if offset < self.start}
        self.records = {**below, **served}
        self.doubted = []
        self.end = log.log_end_offset
        self.start = max(self.start, log.log_start_offset)
        self.durable_to = self.end if power_lost else min(self.durable_to, self.end)
        self.is_elsewhere = False

    def _check_origin(self, served: dict[int, Written]) -> None:
        known = dict(self.records)
        is_whole = True
        for batch in self.doubted:
            there = [record.offset in served for record in batch]
            assert all(there) or not any(there), "half of a batch"
            assert is_whole or not any(there), "a batch without the one before it"
            is_whole = all(there)
            if is_whole:
                known.update((record.offset, record) for record in batch)
        for offset, record in served.items():
            assert known.get(offset) == record, f"{record} was never written at {offset}"

    def _check_presence(self, served: dict[int, Written], limit: int) -> None:
        due = [record for record in self.records.values() if self.start <= record.offset < limit]
        if not self.is_cleaned:
            missing = [record.offset for record in due if record.offset not in served]
            assert not missing, f"lost the offsets {missing}"
            return
        newest_served = {record.key: record for record in served.values()}
        newest_due = {record.key: record for record in due}
        for key, record in newest_due.items():
            found = newest_served.get(key)
            if record.value is None and found is None:
                continue  # its tombstone has done what it was for
            assert found is not None, f"lost {record}"
            assert found.offset >= record.offset, f"{found} came back, {record} was its end"


def served_by(log: TopicLog) -> dict[int, Written]:
    """Every record that a consumer from the start of the log would get."""
    found: dict[int, Written] = {}
    previous = -1
    for batch in log.batches(log.log_start_offset):
        if read_header(batch).is_control:
            continue
        for offset, at_ms, key, value, _ in read_records(batch):
            assert offset > previous, "offsets rise"
            previous = offset
            if offset >= log.log_start_offset:
                assert key is not None
                found[offset] = Written(offset, key, value, at_ms)
    return found


def latest_start_by_age(records: Iterable[Written], end: int, horizon_ms: int) -> int:
    """How far retention.ms may move the log start: to the first record that is young enough."""
    return next((record.offset for record in records if record.at_ms >= horizon_ms), end)


def latest_start_by_size(log: TopicLog, limit_bytes: int) -> int:
    """How far retention.bytes may move it: as many bytes as the limit stay."""
    batches = [(read_header(batch), len(batch)) for batch in log.batches(log.log_start_offset)]
    left = sum(size for _, size in batches)
    start = log.log_start_offset
    for header, size in batches:
        left -= size
        if left < limit_bytes:
            break
        start = header.next_offset
    return start
