"""A coordinator's log without a disk: a list, and a position up to which it counts as stored."""

from collections.abc import Sequence

from storage.api import (
    BatchProducer,
    EndMarker,
    LogClosed,
    LoggedRecord,
    Position,
    RecordPair,
    StoredMarker,
    StoredRecord,
    TransactionalRecord,
)


class MemoryLog:
    """Satisfies `storage.api.Log`; the test decides when what was appended is stored."""

    def __init__(self, records: Sequence[LoggedRecord] = ()) -> None:
        self.records: list[LoggedRecord] = list(records)
        self.batches: list[list[StoredRecord]] = []  # plain ones, appended since this was opened
        self.stored_position: Position = self.end_position
        self.leader_epoch = 0
        self.full = False
        self.closed = False

    @property
    def end_position(self) -> Position:
        return self.records[-1].offset + 1 if self.records else 0

    def has_room(self) -> bool:
        return not self.full and not self.closed

    def append(
        self,
        records: Sequence[RecordPair],
        timestamp_ms: int,
        producer: BatchProducer | None = None,
    ) -> Position:
        if self.closed:
            raise LogClosed
        first = self.end_position
        batch = [
            StoredRecord(first + n, timestamp_ms, key, value)
            for n, (key, value) in enumerate(records)
        ]
        if producer is None:
            self.batches.append(batch)
            self.records.extend(batch)
        else:
            self.records.extend(
                TransactionalRecord(*record, *producer, n) for n, record in enumerate(batch)
            )
        return self.end_position

    def append_marker(self, marker: EndMarker, timestamp_ms: int) -> Position:
        if self.closed:
            raise LogClosed
        self.records.append(StoredMarker(self.end_position, timestamp_ms, marker))
        return self.end_position

    def store(self, upto: Position | None = None) -> Position:
        """Everything before this position, by default everything, is on the disk now."""
        self.stored_position = self.end_position if upto is None else upto
        return self.stored_position

    def survivors(self) -> list[LoggedRecord]:
        """What a crash leaves."""
        return [record for record in self.records if record.offset < self.stored_position]
