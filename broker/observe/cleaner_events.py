"""Cleaner events: what the log cleaner did. Log lines: cleaner_lines.py."""

from msgspec import Struct

from storage.api import TopicPartition
from storage.cleaner.messages import PassResult


class CleaningBegun(Struct, frozen=True):
    log: TopicPartition
    first_dirty: int
    first_uncleanable: int
    dirty_ratio: float
    is_overdue: bool
    """Because of max.compaction.lag.ms."""


class LogCleaned(Struct, frozen=True):
    log: TopicPartition
    first_dirty: int
    result: PassResult
    segments_before: int
    segments_after: int
    seconds: float


class CleaningAborted(Struct, frozen=True):
    """The log was deleted or cut meanwhile, or the pass failed for a reason that may go away."""

    log: TopicPartition
    reason: str


class LogUncleanable(Struct, frozen=True):
    """Not cleaned any more until the daemon starts again."""

    log: TopicPartition
    reason: str


class CleanOffsetReset(Struct, frozen=True):
    """What the checkpoint said of a log cannot be."""

    log: TopicPartition
    reason: str


class PipelineOvertaken(Struct, frozen=True):
    """Compacted before the pipeline has read it: rollcall.pipeline.keep.* allow no more."""

    log: TopicPartition
    unread_from: int
    cleaned_to: int


CleanerEvent = (
    CleaningBegun
    | LogCleaned
    | CleaningAborted
    | LogUncleanable
    | CleanOffsetReset
    | PipelineOvertaken
)
