"""Log lines of an opened data directory: torn tails, damage, repairs, and what they lost."""

from collections.abc import Iterable
from typing import Final

from broker.observe.log_lines import Facts, Line, Table, told
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

TABLE: Final[Table] = {}

GROUPS_NAMED_MAX: Final = 1_000
"""Groups of which a report says what they lost; the copy has the others too."""


@told(TABLE, opening.RepairResumed)
def _(_: opening.RepairResumed) -> Iterable[Line]:
    yield Line("warning", "A repair was interrupted: it goes on now", {})


@told(TABLE, opening.ImportUndone)
def _(_: opening.ImportUndone) -> Iterable[Line]:
    yield Line("warning", "An import was interrupted: nothing of it is left", {})


@told(TABLE, opening.ImportKept)
def _(_: opening.ImportKept) -> Iterable[Line]:
    words = "An import was interrupted and others used the directory since: what it wrote stays"
    yield Line("warning", words, {})


@told(TABLE, opening.PartitionSetAside)
def _(event: opening.PartitionSetAside) -> Iterable[Line]:
    yield Line("warning", "A partition is damaged and not served", {"reason": event.reason})


@told(TABLE, opening.FolderIgnored)
def _(event: opening.FolderIgnored) -> Iterable[Line]:
    facts: Facts = {"path": event.path, "greatest": PARTITION_NUMBER_MAX}
    yield Line("warning", "Left a folder alone: no partition has such a number", facts)


@told(TABLE, opening.TransactionsRead)
def _(event: opening.TransactionsRead) -> Iterable[Line]:
    facts: Facts = {"path": event.path, "aborted": event.aborted, "open": event.open}
    if event.open:
        words = "Transactions of a moved log were open: they count as aborted"
        yield Line("warning", words, facts)
    else:
        yield Line("info", "Read the transactions of a log that came from a Kafka", facts)


@told(TABLE, opening.JournalRecovered)
def _(event: opening.JournalRecovered) -> Iterable[Line]:
    yield Line("info", "Recovered the journal", event.recovered._asdict())


@told(TABLE, opening.PartitionLeftOut)
def _(event: opening.PartitionLeftOut) -> Iterable[Line]:
    kept_as = ", ".join(event.journal_kept_as) or "no room for a copy"
    facts: Facts = {"reason": event.reason, "journal_kept_as": kept_as}
    yield Line("warning", "Left out a damaged partition and the journal of it", facts)


@told(TABLE, opening.TailTruncated)
def _(event: opening.TailTruncated) -> Iterable[Line]:
    facts: Facts = event.cut._asdict()
    facts["restored_by_the_journal"] = event.restored_by_the_journal
    yield Line("warning", "Cut a torn tail", facts)


@told(TABLE, opening.IndexesRebuilt)
def _(event: opening.IndexesRebuilt) -> Iterable[Line]:
    # A kill may leave them behind their segment.
    level = "warning" if event.was_clean else "info"
    yield Line(level, "Rebuilt the indexes of a segment", event.rebuilt._asdict())


@told(TABLE, opening.DamageRepaired)
def _(event: opening.DamageRepaired) -> Iterable[Line]:
    repaired = event.repaired
    facts: Facts = repaired._asdict()
    del facts["lost"]
    words = "Cut what was damaged" if repaired.bytes_cut else "Put aside what was damaged"
    yield Line("warning", words, {**facts, "kept_as": ", ".join(repaired.kept_as)})


@told(TABLE, opening.RecordsRestored)
def _(event: opening.RecordsRestored) -> Iterable[Line]:
    topic, partition = event.topic_partition
    facts: Facts = {"partition": f"{topic}-{partition}"}
    yield Line("warning", "The journal had all that was cut", facts)


@told(TABLE, opening.RecordsLost)
def _(event: opening.RecordsLost) -> Iterable[Line]:
    lost = event.lost
    topic, partition = lost.topic_partition
    yield Line(
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
            facts: Facts = {"group_id": group, "of": ", ".join(what)}
            yield Line("warning", "Lost the newest values of", facts)


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
