"""Log lines of the log cleaner: the messages of Kafka's LogCleaner, with fields."""

from collections.abc import Iterable
from typing import Final

from broker.observe import cleaner_events as cleaner
from broker.observe.log_lines import (
    LineTable,
    LogFields,
    LogLine,
    log_lines_for,
    log_sentence,
)

CLEANER_LINES: Final[LineTable] = {}

_MEGABYTE: Final = 1 << 20


@log_lines_for(CLEANER_LINES, cleaner.CleaningBegun)
def _(event: cleaner.CleaningBegun) -> Iterable[LogLine]:
    fields: LogFields = {
        "log": _name(event.log),
        "dirty_section": _section(event.first_dirty, event.first_uncleanable),
        "dirty_ratio": round(event.dirty_ratio, 3),
    }
    if event.is_overdue:
        fields["because"] = "max.compaction.lag.ms"
    message = log_sentence("Beginning cleaning of log {}", _name(event.log))
    yield LogLine("info", message, fields)


@log_lines_for(CLEANER_LINES, cleaner.LogCleaned)
def _(event: cleaner.LogCleaned) -> Iterable[LogLine]:
    result = event.result
    before, after = result.bytes_read, result.bytes_written
    yield LogLine(
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
        fields: LogFields = {"log": _name(event.log), "messages": result.records_without_key}
        yield LogLine("warning", "Found invalid messages during compaction", fields)


@log_lines_for(CLEANER_LINES, cleaner.CleaningAborted)
def _(event: cleaner.CleaningAborted) -> Iterable[LogLine]:
    fields: LogFields = {"log": _name(event.log), "reason": event.reason}
    yield LogLine("info", "The cleaning of a log is aborted", fields)


@log_lines_for(CLEANER_LINES, cleaner.LogUncleanable)
def _(event: cleaner.LogUncleanable) -> Iterable[LogLine]:
    message = "Unexpected exception thrown when cleaning log. Marking its partition as uncleanable"
    yield LogLine("error", message, {"log": _name(event.log), "reason": event.reason})


@log_lines_for(CLEANER_LINES, cleaner.CleanOffsetReset)
def _(event: cleaner.CleanOffsetReset) -> Iterable[LogLine]:
    message = "Resetting first dirty offset to log start offset"
    yield LogLine("warning", message, {"log": _name(event.log), "reason": event.reason})


@log_lines_for(CLEANER_LINES, cleaner.PipelineOvertaken)
def _(event: cleaner.PipelineOvertaken) -> Iterable[LogLine]:
    fields: LogFields = {
        "log": _name(event.log),
        "unread": _section(event.unread_from, event.cleaned_to),
        "because": "rollcall.pipeline.keep.ms, rollcall.pipeline.keep.bytes",
    }
    yield LogLine("warning", "Compacted what the pipeline has not read", fields)


def _name(log: tuple[str, int]) -> str:
    return f"{log[0]}-{log[1]}"


def _section(start: int, end: int) -> str:
    return f"[{start}, {end}]"
