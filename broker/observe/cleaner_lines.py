"""In which words is the log cleaner told of? Those of Kafka's LogCleaner, the facts beside them."""

from collections.abc import Iterable
from typing import Final

from broker.observe import cleaner_events as cleaner
from broker.observe.log_lines import Facts, Line, Table, told

TABLE: Final[Table] = {}

_MEGABYTE: Final = 1 << 20


@told(TABLE, cleaner.CleaningBegun)
def _(event: cleaner.CleaningBegun) -> Iterable[Line]:
    facts: Facts = {
        "log": _name(event.log),
        "dirty_section": _section(event.first_dirty, event.first_uncleanable),
        "dirty_ratio": round(event.dirty_ratio, 3),
    }
    if event.is_overdue:
        facts["because"] = "max.compaction.lag.ms"
    yield Line("info", "Beginning cleaning of log", facts)


@told(TABLE, cleaner.LogCleaned)
def _(event: cleaner.LogCleaned) -> Iterable[Line]:
    result = event.result
    before, after = result.bytes_read, result.bytes_written
    yield Line(
        "info",
        "Log cleaner cleaned log",
        {
            "log": _name(event.log),
            "dirty_section": _section(event.first_dirty, result.end_offset),
            "seconds": round(event.seconds, 3),
            "mb_indexed": round(result.map_bytes_read / _MEGABYTE, 1),
            "buffer_utilization_percent": round(100 * result.map_utilization, 1),
            "start_size_mb": round(before / _MEGABYTE, 1),
            "start_messages": result.records_read,
            "end_size_mb": round(after / _MEGABYTE, 1),
            "end_messages": result.records_written,
            "size_reduction_percent": round(100 * (1 - after / before), 1) if before else 0.0,
            "segments_before": event.segments_before,
            "segments_after": event.segments_after,
        },
    )
    if result.records_without_key:
        facts: Facts = {"log": _name(event.log), "messages": result.records_without_key}
        yield Line("warning", "Found invalid messages during compaction", facts)


@told(TABLE, cleaner.CleaningAborted)
def _(event: cleaner.CleaningAborted) -> Iterable[Line]:
    facts: Facts = {"log": _name(event.log), "reason": event.reason}
    yield Line("info", "The cleaning of a log is aborted", facts)


@told(TABLE, cleaner.LogUncleanable)
def _(event: cleaner.LogUncleanable) -> Iterable[Line]:
    words = "Unexpected exception thrown when cleaning log. Marking its partition as uncleanable"
    yield Line("error", words, {"log": _name(event.log), "reason": event.reason})


@told(TABLE, cleaner.CleanOffsetReset)
def _(event: cleaner.CleanOffsetReset) -> Iterable[Line]:
    words = "Resetting first dirty offset to log start offset"
    yield Line("warning", words, {"log": _name(event.log), "reason": event.reason})


@told(TABLE, cleaner.PipelineOvertaken)
def _(event: cleaner.PipelineOvertaken) -> Iterable[Line]:
    facts: Facts = {
        "log": _name(event.log),
        "unread": _section(event.unread_from, event.cleaned_to),
        "because": "rollcall.pipeline.keep.ms, rollcall.pipeline.keep.bytes",
    }
    yield Line("warning", "Compacted what the pipeline has not read", facts)


def _name(log: tuple[str, int]) -> str:
    return f"{log[0]}-{log[1]}"


def _section(start: int, end: int) -> str:
    return f"[{start}, {end}]"
