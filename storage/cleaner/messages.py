"""Pass messages: the input and the result of a cleaner pass.

Plain values, as they go to the worker process and come back (`broker/background/jobs.py`). They are
apart from the pass itself (`cleaner_pass.py`), so that a daemon's start does not import code that
only its worker runs.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict


class LastOfProducer(NamedTuple):
    """The last batch of an active producer; without data, a marker of its epoch."""

    last_offset: int | None
    producer_epoch: int


class SegmentExtent(NamedTuple):
    """A segment as the log knows it."""

    base_offset: int
    next_base: int
    size: int
    offset_entries: int = 0  # of its indexes, which a group of segments shares
    time_entries: int = 0


class Pass(Struct, frozen=True):
    """All that a pass must know of a log."""

    folder: str
    segments: tuple[SegmentExtent, ...]
    """Every segment from the log's start on; those at or after `first_uncleanable` are only looked
    at for the ends of transactions."""
    first_dirty: int
    first_uncleanable: int  # a segment's base offset
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    producers: Mapping[int, LastOfProducer] | None = None
    """Active ones with what they sent last; None: unknown, so every producer in the log counts."""

    def to_message(self) -> dict[str, object]:
        """As msgpack carries it."""
        producers = None
        if self.producers is not None:
            producers = [(key, *last) for key, last in self.producers.items()]
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {**values, "producers": producers}

    @classmethod
    def from_message(cls, message: Mapping[str, object]) -> "Pass":
        values: dict[str, object] = dict(message)
        segments, producers = values["segments"], values["producers"]
        assert isinstance(segments, Sequence)
        values["segments"] = tuple(SegmentExtent(*extent) for extent in segments)
        if producers is not None:
            assert isinstance(producers, Sequence)
            values["producers"] = {key: LastOfProducer(*last) for key, *last in producers}
        # The other process made these values, so their types are right.
        return cls(**values)  # type: ignore[arg-type]


class Replacement(NamedTuple):
    """A `.cleaned` segment and those that it is to replace, by base offset."""

    base_offset: int
    sources: tuple[int, ...]
    size: int


class PassResult(Struct):
    """What a pass did: Kafka's CleanerStats, and what is to be swapped in."""

    end_offset: int  # the log is clean up to here once all is swapped in
    replacements: list[Replacement] = field(default_factory=list)
    map_bytes_read: int = 0
    map_records_read: int = 0
    map_utilization: float = 0.0
    bytes_read: int = 0
    records_read: int = 0
    bytes_written: int = 0
    records_written: int = 0
    records_without_key: int = 0

    def to_message(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, object]) -> "PassResult":
        values: dict[str, object] = dict(message)
        replacements = values["replacements"]
        assert isinstance(replacements, Sequence)
        values["replacements"] = [
            Replacement(base, tuple(sources), size) for base, sources, size in replacements
        ]
        # The other process made these values, so their types are right.
        return cls(**values)  # type: ignore[arg-type]
