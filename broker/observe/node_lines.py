"""In which words are events of the node told? Topics, connections, elections, the daemon itself.

Kafka's counterpart: the log calls of `SocketServer`, `CoordinatorRuntime`, `LogManager`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from broker.observe import events as shell
from broker.observe.log_lines import Facts, Line, Table, offsets_partition, told
from topics import events as topics

TABLE: Final[Table] = {}

PARTITIONS_NAMED_MAX: Final = 20
"""In one log line; the others are counted."""

# Topics.


@told(TABLE, topics.TopicCreated)
def _(event: topics.TopicCreated) -> Iterable[Line]:
    facts: Facts = {"topic": event.name, "partitions": event.partitions}
    if event.automatic:
        facts["automatic"] = True
    yield Line("info", "Created topic", {**facts, "topic_id": str(event.topic_id)})


@told(TABLE, topics.TopicDeleted)
def _(event: topics.TopicDeleted) -> Iterable[Line]:
    facts: Facts = {"topic": event.name, "partitions": event.partitions}
    yield Line("info", "Deleted topic", facts)


@told(TABLE, topics.PartitionsAdded)
def _(event: topics.PartitionsAdded) -> Iterable[Line]:
    facts: Facts = {"topic": event.name, "partitions": event.partitions}
    yield Line("info", "Added partitions", {**facts, "before": event.partitions_before})


@told(TABLE, topics.TopicAdopted)
def _(event: topics.TopicAdopted) -> Iterable[Line]:
    facts: Facts = {"topic": event.name, "partitions": event.partitions}
    yield Line("warning", "Found logs of a topic that the catalog does not know; kept", facts)


@told(TABLE, topics.PartitionsMissing)
def _(event: topics.PartitionsMissing) -> Iterable[Line]:
    words = (
        "Partitions of a found topic have no readable log: not served, and not made; bring their "
        "folders here, or start once with --repair, which begins them anew"
    )
    facts: Facts = {"topic": event.name, "missing": len(event.partitions)}
    yield Line("warning", words, {**facts, "partitions": _named(event.partitions)})


@told(TABLE, topics.PartitionsBegun)
def _(event: topics.PartitionsBegun) -> Iterable[Line]:
    facts: Facts = {"topic": event.name, "partitions": _named(event.partitions)}
    yield Line("warning", "Began the missing partitions of a topic anew", facts)


@told(TABLE, topics.FolderSetAside)
def _(event: topics.FolderSetAside) -> Iterable[Line]:
    yield Line("warning", "Set aside a folder that no topic owns", {"kept_as": event.path})


@told(TABLE, topics.CatalogRebuilt)
def _(event: topics.CatalogRebuilt) -> Iterable[Line]:
    words = (
        "Rebuilt the damaged topic catalog from the folders: ids and partitions are theirs, "
        "configs of topics are lost and must be set again"
    )
    yield Line("warning", words, {"kept_as": event.kept_as, "topics": len(event.topics)})


@told(TABLE, topics.ConfigsLost)
def _(event: topics.ConfigsLost) -> Iterable[Line]:
    words = "Dropped the configs of a topic: they must be set again"
    yield Line("warning", words, {"topic": event.name, "reason": event.reason})


@told(TABLE, topics.AutoCreationFailed)
def _(event: topics.AutoCreationFailed) -> Iterable[Line]:
    facts: Facts = {"topic": event.name, "reason": event.reason}
    yield Line("warning", "Auto topic creation failed", facts)


@told(TABLE, topics.SegmentsDeleted)
def _(event: topics.SegmentsDeleted) -> Iterable[Line]:
    yield Line(
        "info",
        "Deleted segments due to retention",
        {
            "partition": _partition(event.topic_partition),
            "segments": event.segments,
            "log_start_offset": event.log_start_offset,
        },
    )


@told(TABLE, topics.PartitionFailed)
def _(event: topics.PartitionFailed) -> Iterable[Line]:
    facts: Facts = {"partition": _partition(event.topic_partition), "reason": event.reason}
    yield Line("error", "Error on the log of a partition", {**facts, "offline": event.offline})


@told(TABLE, topics.SaveFailed)
def _(event: topics.SaveFailed) -> Iterable[Line]:
    yield Line("error", "Could not save", {"what": event.what, "reason": event.reason})


# The shell.


@told(TABLE, shell.ConnectionDropped)
def _(event: shell.ConnectionDropped) -> Iterable[Line]:
    facts: Facts = {"peer": event.peer, "cause": event.fault, "detail": event.detail}
    if event.suppressed:
        facts["since_last_line"] = event.suppressed
    level = "info" if event.fault is shell.PeerFault.IDLE else "warning"
    yield Line(level, "Closing connection", facts)


@told(TABLE, shell.RequestFailed)
def _(event: shell.RequestFailed) -> Iterable[Line]:
    facts: Facts = {
        "request": event.api_name,
        "version": event.api_version,
        "peer": event.peer,
        "error": repr(event.error),
        "at": event.place,
    }
    if event.suppressed:
        facts["since_last_line"] = event.suppressed
    yield Line("error", "Unexpected error handling request", facts)


@told(TABLE, shell.PartFailed)
def _(event: shell.PartFailed) -> Iterable[Line]:
    if not event.is_told:
        return
    facts: Facts = {"part": event.part, "error": repr(event.error), "at": event.place}
    if event.suppressed:
        facts["since_last_line"] = event.suppressed
    yield Line("error", "Unexpected error", facts)


@told(TABLE, shell.LoopStalled)
def _(event: shell.LoopStalled) -> Iterable[Line]:
    words = "The daemon was stopped or starved; sessions are extended by as much"
    yield Line("warning", words, {"stalled_ms": event.stalled_ms})


@told(TABLE, shell.HistoryLost)
def _(event: shell.HistoryLost) -> Iterable[Line]:
    words = "The history of groups has a gap: facts could not be kept"
    yield Line("warning", words, {"reason": event.reason})


@told(TABLE, shell.GroupSkipped)
def _(event: shell.GroupSkipped) -> Iterable[Line]:
    facts: Facts = {"group_id": event.group_id, "work": event.work}
    facts |= {"error": repr(event.error), "at": event.place}
    yield Line("error", "A group is passed over", facts)


@told(TABLE, shell.PartitionElected)
def _(event: shell.PartitionElected) -> Iterable[Line]:
    facts: Facts = {"partition": event.partition, "epoch": event.epoch}
    yield Line("debug", "Elected as the group coordinator for partition", facts)


@told(TABLE, shell.PartitionsElected)
def _(event: shell.PartitionsElected) -> Iterable[Line]:
    epochs = {event.epoch_min, event.epoch_max}
    facts: Facts = {"count": event.partitions, "epoch": "-".join(map(str, sorted(epochs)))}
    yield Line("info", "Elected as the group coordinator for partitions", facts)


@told(TABLE, shell.PartitionsLoaded)
def _(event: shell.PartitionsLoaded) -> Iterable[Line]:
    yield Line(
        "info",
        "Finished loading of metadata from __consumer_offsets",
        {
            "partitions": event.partitions,
            "failed": event.failed,
            "records": event.records,
            "load_ms": event.load_ms,
        },
    )


@told(TABLE, shell.PartitionRead)
def _(event: shell.PartitionRead) -> Iterable[Line]:
    yield Line(
        "info" if event.records else "debug",
        "Finished loading of metadata",
        {
            "partition": offsets_partition(event.partition),
            "epoch": event.epoch,
            "load_ms": event.load_ms,
            "queued_ms": event.queued_ms,
            "records": event.records,
            "bytes": event.size_bytes,
        },
    )


@told(TABLE, shell.LoadProgressed)
def _(event: shell.LoadProgressed) -> Iterable[Line]:
    report = event.report
    facts: Facts = {
        "partitions": f"{report.partitions_read}/{report.partitions}",
        "groups": f"{report.groups_ready}/{report.groups_found}",
        "records": report.records,
        "bytes": f"{report.bytes}/{report.bytes_total}",
        "elapsed_ms": report.elapsed_ms,
    }
    if report.left_ms is not None:
        facts["left_ms"] = report.left_ms
    yield Line("info", "Loading metadata from __consumer_offsets", facts)


@told(TABLE, shell.SnapshotIgnored)
def _(event: shell.SnapshotIgnored) -> Iterable[Line]:
    facts: Facts = {"partition": offsets_partition(event.partition), "path": event.path}
    words = "A snapshot cannot be used; more of the log is read instead"
    yield Line("warning", words, {**facts, "reason": event.reason})


@told(TABLE, shell.SnapshotTaken)
def _(event: shell.SnapshotTaken) -> Iterable[Line]:
    yield Line(
        "debug",
        "Took a snapshot",
        {
            "partition": offsets_partition(event.partition),
            "position": event.position,
            "groups": event.groups,
            "records": event.records,
            "bytes": event.size_bytes,
            "took_ms": event.took_ms,
        },
    )


@told(TABLE, shell.SnapshotFailed)
def _(event: shell.SnapshotFailed) -> Iterable[Line]:
    facts: Facts = {"partition": offsets_partition(event.partition), "reason": event.reason}
    yield Line("warning", "Could not take a snapshot; a start would read more of the log", facts)


@told(TABLE, shell.PartitionResigned)
def _(event: shell.PartitionResigned) -> Iterable[Line]:
    facts: Facts = {"partition": event.partition, "epoch": event.epoch}
    yield Line("debug", "Resigned as the group coordinator for partition", facts)


@told(TABLE, shell.PartitionsResigned)
def _(event: shell.PartitionsResigned) -> Iterable[Line]:
    words = "Resigned as the group coordinator for partitions"
    yield Line("info", words, {"count": event.partitions})


@told(TABLE, shell.JournalFailed)
def _(event: shell.JournalFailed) -> Iterable[Line]:
    words = "The journal has failed; nothing is written until a restart"
    if event.is_full:
        lacking = event.reason.partition(":")[0]
        needed = "the disk has room" if lacking == "disk full" else f"it is no more {lacking}"
        words = f"The journal has failed; nothing is written until {needed} again"
    yield Line("error", words, {"reason": event.reason})


@told(TABLE, shell.JournalReopened)
def _(event: shell.JournalReopened) -> Iterable[Line]:  # noqa: ARG001 - as of every event
    yield Line("info", "The disk has room again; the journal is open", {})


@told(TABLE, shell.DaemonStep)
def _(event: shell.DaemonStep) -> Iterable[Line]:
    yield Line("info", event.words, dict(event.facts))


@told(TABLE, shell.Warned)
def _(event: shell.Warned) -> Iterable[Line]:
    yield Line("warning", event.words, dict(event.facts))


@told(TABLE, shell.TroubleFound)
def _(event: shell.TroubleFound) -> Iterable[Line]:
    trouble = event.trouble
    facts: Facts = {"group_id": trouble.group_id, "verdict": trouble.kind.value}
    yield Line("warning", f"Trouble: {trouble.summary}", {**facts, "remedy": trouble.remedy})


@told(TABLE, shell.TroubleCleared)
def _(event: shell.TroubleCleared) -> Iterable[Line]:
    trouble = event.trouble
    facts: Facts = {"group_id": trouble.group_id, "verdict": trouble.kind.value}
    if trouble.subject:
        facts["subject"] = trouble.subject
    yield Line("info", "Trouble is over", {**facts, "lasted_ms": event.lasted_ms})


def _partition(topic_partition: tuple[str, int]) -> str:
    return f"{topic_partition[0]}-{topic_partition[1]}"


def _named(partitions: Sequence[int]) -> str:
    named = ", ".join(map(str, partitions[:PARTITIONS_NAMED_MAX]))
    more = len(partitions) - PARTITIONS_NAMED_MAX
    return f"{named} and {more} more" if more > 0 else named
