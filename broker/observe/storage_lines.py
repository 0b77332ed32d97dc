"""Log lines of an opened data directory: torn tails, damage, repairs, and what they lost."""

from collections.abc import Iterable
from typing import Final

from broker.observe.log_lines import LineTable, LogFields, LogLine, log_lines_for
from coordinator.records import (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    UnreadableRecord,
    read_group_key,
    read_offset_key,
    record_type,
)
from protocol.names import OFFSETS_TOPIC
from storage import open as opening
from storage.log.partition_folders import PARTITION_NUMBER_MAX

STORAGE_LINES: Final[LineTable] = {}

GROUPS_NAMED_MAX: Final = 1_000
"""Groups of which a report says what they lost; the copy has the others too."""


@log_lines_for(STORAGE_LINES, opening.RepairResumed)
def _(_: opening.RepairResumed) -> Iterable[LogLine]:
    yield LogLine("warning", "A repair was interrupted: it goes on now", {})


@log_lines_for(STORAGE_LINES, opening.ImportUndone)
def _(_: opening.ImportUndone) -> Iterable[LogLine]:
    yield LogLine("warning", "An import was interrupted: nothing of it is left", {})


@log_lines_for(STORAGE_LINES, opening.ImportKept)
def _(_: opening.ImportKept) -> Iterable[LogLine]:
    message = "An import was interrupted and others used the directory since: what it wrote stays"
    yield LogLine("warning", message, {})


@log_lines_for(STORAGE_LINES, opening.PartitionSetAside)
def _(event: opening.PartitionSetAside) -> Iterable[LogLine]:
    yield LogLine("warning", "A partition is damaged and not served", {"reason": event.reason})


@log_lines_for(STORAGE_LINES, opening.FolderIgnored)
def _(event: opening.FolderIgnored) -> Iterable[LogLine]:
    fields: LogFields = {"path": event.path, "greatest": PARTITION_NUMBER_MAX}
    yield LogLine("warning", "Left a folder alone: no partition has such a number", fields)


@log_lines_for(STORAGE_LINES, opening.TransactionsRead)
def _(event: opening.TransactionsRead) -> Iterable[LogLine]:
    fields: LogFields = {"path": event.path, "aborted": event.aborted, "open": event.open}
    if event.open:
        message = "Transactions of a moved log were open: they count as aborted"
        yield LogLine("warning", message, fields)
    else:
        yield LogLine("info", "Read the transactions of a log that came from a Kafka", fields)


@log_lines_for(STORAGE_LINES, opening.JournalRecovered)
def _(event: opening.JournalRecovered) -> Iterable[LogLine]:
    yield LogLine("info", "Recovered the journal", event.recovered._asdict())


@log_lines_for(STORAGE_LINES, opening.PartitionLeftOut)
def _(event: opening.PartitionLeftOut) -> Iterable[LogLine]:
    kept_as = ", ".join(event.journal_kept_as) or "no room for a copy"
    fields: LogFields = {"reason": event.reason, "journal_kept_as": kept_as}
    yield LogLine("warning", "Left out a damaged partition and the journal of it", fields)


@log_lines_for(STORAGE_LINES, opening.TailTruncated)
def _(event: opening.TailTruncated) -> Iterable[LogLine]:
    fields: LogFields = event.cut._asdict()
    fields["restored_by_the_journal"] = event.restored_by_the_journal
    yield LogLine("warning", "Cut a torn tail", fields)


@log_lines_for(STORAGE_LINES, opening.IndexesRebuilt)
def _(event: opening.IndexesRebuilt) -> Iterable[LogLine]:
    # A kill may leave them behind their segment.
    level = "warning" if event.was_clean else "info"
    yield LogLine(level, "Rebuilt the indexes of a segment", event.rebuilt._asdict())


@log_lines_for(STORAGE_LINES, opening.DamageRepaired)
def _(event: opening.DamageRepaired) -> Iterable[LogLine]:
    repaired = event.repaired
    fields: LogFields = repaired._asdict()
    del fields["lost"]
    message = "Cut what was damaged" if repaired.bytes_cut else "Put aside what was damaged"
    yield LogLine("warning", message, {**fields, "kept_as": ", ".join(repaired.kept_as)})


@log_lines_for(STORAGE_LINES, opening.RecordsRestored)
def _(event: opening.RecordsRestored) -> Iterable[LogLine]:
    topic, partition = event.topic_partition
    fields: LogFields = {"partition": f"{topic}-{partition}"}
    yield LogLine("warning", "The journal had all that was cut", fields)


@log_lines_for(STORAGE_LINES, opening.RecordsLost)
def _(event: opening.RecordsLost) -> Iterable[LogLine]:
    lost = event.lost
    topic, partition = lost.topic_partition
    yield LogLine(
        "warning",
        "Lost records",
        {
            "partition": f"{topic}-{partition}",
            "first_offset": lost.first_offset,
            "last_offset": lost.last_offset,
            "readable_in_the_copy": lost.records,
        },
    )
    if topic == OFFSETS_TOPIC:
        for group, what in list(_by_group(lost.keys).items())[:GROUPS_NAMED_MAX]:
            fields: LogFields = {"group_id": group, "of": ", ".join(what)}
            yield LogLine("warning", "Lost the newest values of", fields)


def _by_group(keys: tuple[bytes, ...]) -> dict[str, list[str]]:
    """What these keys name, by group."""
    found: dict[str, list[str]] = {}
    for key in keys:
        try:
            kind = record_type(key)
            if kind in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT):
                group_id, topic, partition = read_offset_key(key)
                found.setdefault(group_id, []).append(f"{topic}-{partition}")
            else:
                found.setdefault(read_group_key(key), []).append("the group itself")
        except (UnreadableRecord, ValueError, IndexError):
            found.setdefault("?", []).append(key.hex())
    return found
