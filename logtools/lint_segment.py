"""Lint of segments: each batch, record and index of a partition's log, and their order.

One pass over the segments in constant memory. Of the offsets topic every record must also be
readable, and must belong to this partition: a group is hashed to one partition, and in any other
one nobody would find it.
"""

from pathlib import Path

from msgspec import Struct, field

from logtools.decoders import decoder_for
from logtools.findings import Finding, Findings, LintCounts
from logtools.layout import PartitionPlace, SegmentFile
from logtools.lint_index import OffsetIndexCheck, TimeIndexCheck
from logtools.lint_transactions import TransactionIndexCheck
from logtools.walk import Batch, DamagedBytes, walk
from protocol.names import COORDINATOR_TOPICS
from seams.java_hash import partition_of
from storage.batch.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    InvalidBatch,
    RecordFields,
    read_records,
)

_KNOWN_ATTRIBUTES = (
    COMPRESSION_MASK | LOG_APPEND_TIME | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG
)
_FAULTS_PER_SEGMENT = 1_000  # a file that is wrong throughout needs no line for each record


class PartitionLint(Struct):
    """What is known of a partition when its segments have passed by."""

    place: PartitionPlace
    tally: LintCounts
    offsets_partitions: int | None = None
    """How many partitions the offsets topic has; None when nobody knows."""
    next_offset: int = 0
    leader_epoch: int = -1
    epoch_starts: dict[int, int] = field(default_factory=dict)
    """The first offset that was seen of each leader epoch."""
    bases: list[int] = field(default_factory=list)

    def segments(self) -> Findings:
        for number, segment in enumerate(self.place.segments):
            is_last = number == len(self.place.segments) - 1
            yield from self._segment(segment, is_last=is_last)

    def _segment(self, segment: SegmentFile, *, is_last: bool) -> Findings:
        file = str(segment.path)
        self.bases.append(segment.base_offset)
        if segment.base_offset < self.next_offset:
            problem = f"begins at {segment.base_offset}, but the one before it has offsets up to "
            yield Finding(file, None, "overlap", f"{problem}{self.next_offset - 1}")
        self.next_offset = segment.base_offset
        offset_index, time_index = _open_indexes(segment, sealed=not is_last)
        transactions = _open_transactions(segment)
        self.tally.files += 1 + (offset_index is not None) + (time_index is not None)
        said = 0
        for found in walk(segment.path):
            if isinstance(found, DamagedBytes):
                self.tally.bytes += found.size
                problem = f"{found.size} bytes cannot be read: {found.reason}"
                yield Finding(file, found.position, "batch", problem)
                continue
            if offset_index is not None:
                offset_index.batch(found.position, found.header)
            if time_index is not None:
                time_index.batch(found.header)
            if transactions is not None:
                transactions.batch(found.header)
            for finding in self._batch(file, segment.base_offset, found):
                said += 1
                if said <= _FAULTS_PER_SEGMENT:
                    yield finding
        if said > _FAULTS_PER_SEGMENT:
            yield Finding(file, None, "batch", f"{said - _FAULTS_PER_SEGMENT} more findings here")
        yield from _finish(segment, offset_index, time_index, sealed=not is_last)
        if transactions is not None:
            yield from transactions.finish(self.next_offset)

    def _batch(self, file: str, segment_base: int, batch: Batch) -> Findings:
        header, position = batch.header, batch.position
        self.tally.batches += 1
        self.tally.bytes += header.size
        self.tally.records += header.records_count
        for check, problem in self._header_faults(segment_base, header):
            yield Finding(file, position, check, problem)
        self.next_offset = max(self.next_offset, header.next_offset)
        self.leader_epoch = max(self.leader_epoch, header.partition_leader_epoch)
        if header.partition_leader_epoch >= 0:  # -1: of a broker that knew none
            self.epoch_starts.setdefault(header.partition_leader_epoch, header.base_offset)
        try:
            records = read_records(batch.content)
        except InvalidBatch as fault:
            yield Finding(file, position, "records", fault.reason)
            return
        for check, problem in _record_faults(header, records):
            yield Finding(file, position, check, problem)
        if not header.is_control:
            yield from self._content_faults(file, position, records)

    def _header_faults(self, segment_base: int, header: BatchHeader) -> list[tuple[str, str]]:
        faults = []
        base, last = header.base_offset, header.last_offset
        if base < self.next_offset:
            faults.append(("offsets", f"offset {base} comes after {self.next_offset - 1}"))
        if last - segment_base > 2**31 - 1:
            faults.append(("offsets", f"offset {last} is too far from the file's {segment_base}"))
        if header.partition_leader_epoch < self.leader_epoch:
            epoch = header.partition_leader_epoch
            faults.append(("epoch", f"leader epoch {epoch} comes after {self.leader_epoch}"))
        if header.records_count > header.last_offset_delta + 1:
            count, room = header.records_count, header.last_offset_delta + 1
            faults.append(("count", f"{count} records in a range of {room} offsets"))
        if header.attributes & ~_KNOWN_ATTRIBUTES:
            faults.append(("attributes", f"attributes {header.attributes:#06x} are not known"))
        return faults

    def _content_faults(self, file: str, position: int, records: list[RecordFields]) -> Findings:
        """Of the topics whose records have a form: can they be understood, and is this the place?

        A record type that nobody knows is no fault: a newer Kafka has written it.
        """
        if self.place.topic not in COORDINATOR_TOPICS:
            return
        decode = decoder_for(self.place.topic)
        partition, partitions = self.place.partition, self.offsets_partitions
        for offset, _, key, value, _ in records:
            shown = decode(key, value)
            if shown.problem is not None:
                yield Finding(file, position, "content", f"offset {offset}: {shown.problem}")
            elif shown.group is not None and partition is not None and partitions is not None:
                home = partition_of(shown.group, partitions)
                if home != partition:
                    problem = f"offset {offset}: group {shown.group} belongs to partition {home} "
                    yield Finding(file, position, "home", f"{problem}of {partitions}")


def _record_faults(header: BatchHeader, records: list[RecordFields]) -> list[tuple[str, str]]:
    """Do the records keep what their header says of offsets and times?"""
    faults = []
    previous = header.base_offset - 1
    for fields in records:
        if not previous < fields[0] <= header.last_offset:
            problem = f"record {fields[0]} after {previous}; the batch ends with "
            faults.append(("offsets", f"{problem}{header.last_offset}"))
        previous = fields[0]
    if records and not header.log_append_time:
        latest = max(fields[1] for fields in records)
        if latest != header.max_timestamp:
            said = f"greatest timestamp {header.max_timestamp} in the header, {latest} in the"
            faults.append(("timestamp", f"{said} records"))
    return faults


def _open_indexes(
    segment: SegmentFile, *, sealed: bool
) -> tuple[OffsetIndexCheck | None, TimeIndexCheck | None]:
    """The indexes that are there."""
    offset_path, time_path = _index_path(segment, "index"), _index_path(segment, "timeindex")
    base = segment.base_offset
    return (
        OffsetIndexCheck(offset_path, base) if offset_path.exists() else None,
        TimeIndexCheck(time_path, base, sealed=sealed) if time_path.exists() else None,
    )


def _open_transactions(segment: SegmentFile) -> TransactionIndexCheck | None:
    path = _index_path(segment, "txnindex")
    return TransactionIndexCheck(path, segment.base_offset) if path.exists() else None


def _finish(
    segment: SegmentFile,
    offset_index: OffsetIndexCheck | None,
    time_index: TimeIndexCheck | None,
    *,
    sealed: bool,
) -> Findings:
    for check, name in ((offset_index, "index"), (time_index, "timeindex")):
        if check is not None:
            yield from check.finish()
        elif sealed:
            problem = "missing, though the segment is sealed; the next start writes it again"
            yield Finding(str(_index_path(segment, name)), None, name, problem)


def _index_path(segment: SegmentFile, name: str) -> Path:
    """The index beside a segment, also beside one that was set aside for deletion."""
    return Path(f"{segment.stem}.{name}{segment.leftover}")
