"""Log lines of the node: topics, connections, elections, the daemon itself.

Kafka's counterpart: the log calls of `SocketServer`, `CoordinatorRuntime`, `LogManager`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from broker.observe import events as shell
from broker.observe.log_lines import (
    LineTable,
    LogFields,
    LogLine,
    coordinator_of,
    first_names,
    log_lines_for,
    log_sentence,
    offsets_partition,
    principal_field,
)
from history.verdicts.model import Verdict
from protocol.names import OFFSETS_TOPIC
from seams.text import first_of
from topics import events as topics

NODE_LINES: Final[LineTable] = {}

PARTITIONS_SHOWN_MAX: Final = 20
"""In one log line; the others are counted."""

ACLS_SHOWN_MAX: Final = 5
"""In one log line, beside their number."""

ACL_LENGTH_MAX: Final = 400
"""Characters of one in a log line: its names may have thousands."""

# Topics.


@log_lines_for(NODE_LINES, topics.TopicCreated)
def _(event: topics.TopicCreated) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "partitions": event.partitions}
    if event.automatic:
        fields["automatic"] = True
    yield LogLine("info", "Created topic", {**fields, "topic_id": str(event.topic_id)})


@log_lines_for(NODE_LINES, topics.TopicDeleted)
def _(event: topics.TopicDeleted) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "partitions": event.partitions}
    yield LogLine("info", "Deleted topic", {**fields, **principal_field(event.principal)})


@log_lines_for(NODE_LINES, topics.PartitionsAdded)
def _(event: topics.PartitionsAdded) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "partitions": event.partitions}
    yield LogLine("info", "Added partitions", {**fields, "before": event.partitions_before})


@log_lines_for(NODE_LINES, topics.TopicRecovered)
def _(event: topics.TopicRecovered) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "partitions": event.partitions}
    yield LogLine("warning", "Found logs of a topic that the catalog does not know; kept", fields)


@log_lines_for(NODE_LINES, topics.PartitionsFoundMissing)
def _(event: topics.PartitionsFoundMissing) -> Iterable[LogLine]:
    message = (
        "Partitions of a found topic have no readable log: not served, and not made; bring their "
        "folders here, or start once with --repair, which creates them empty"
    )
    fields: LogFields = {"topic": event.name, "missing": len(event.partitions)}
    yield LogLine("warning", message, {**fields, "partitions": _named(event.partitions)})


@log_lines_for(NODE_LINES, topics.PartitionsRecreated)
def _(event: topics.PartitionsRecreated) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "partitions": _named(event.partitions)}
    yield LogLine("warning", "Created the missing partitions of a topic, empty", fields)


@log_lines_for(NODE_LINES, topics.StrayFolderRenamed)
def _(event: topics.StrayFolderRenamed) -> Iterable[LogLine]:
    yield LogLine("warning", "Set aside a folder that no topic owns", {"kept_as": event.path})


@log_lines_for(NODE_LINES, topics.CatalogRebuilt)
def _(event: topics.CatalogRebuilt) -> Iterable[LogLine]:
    message = (
        "Rebuilt the damaged topic catalog from the folders: ids and partitions are theirs, "
        "configs of topics are lost and must be set again"
    )
    yield LogLine("warning", message, {"kept_as": event.kept_as, "topics": len(event.topics)})


@log_lines_for(NODE_LINES, topics.ConfigsLost)
def _(event: topics.ConfigsLost) -> Iterable[LogLine]:
    message = "Dropped the configs of a topic: they must be set again"
    yield LogLine("warning", message, {"topic": event.name, "reason": event.reason})


@log_lines_for(NODE_LINES, topics.TopicConfigsChanged)
def _(event: topics.TopicConfigsChanged) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "configs": _configs(event.configs)}
    yield LogLine("info", "Changed the configs of a topic", fields)


@log_lines_for(NODE_LINES, topics.GroupConfigsChanged)
def _(event: topics.GroupConfigsChanged) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "configs": _configs(event.configs)}
    yield LogLine("info", "Changed the configs of a group", fields)


@log_lines_for(NODE_LINES, topics.GroupConfigsLost)
def _(event: topics.GroupConfigsLost) -> Iterable[LogLine]:
    message = "Dropped the damaged configs of groups: they must be set again"
    yield LogLine("warning", message, {"kept_as": event.kept_as})


@log_lines_for(NODE_LINES, topics.GroupConfigCapped)
def _(event: topics.GroupConfigCapped) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "name": event.name, "value": event.value}
    message = "A config of a group is outside of the broker's limits; the limit counts"
    yield LogLine("warning", message, {**fields, "in_effect": event.in_effect})


@log_lines_for(NODE_LINES, topics.BrokerConfigsChanged)
def _(event: topics.BrokerConfigsChanged) -> Iterable[LogLine]:
    served = {name: text for name, text in event.configs.items() if name not in event.unused}
    fields: LogFields = {"of": "broker" if event.per_broker else "cluster"}
    yield LogLine("info", "Changed dynamic configs", {**fields, "configs": _configs(served)})
    if event.unused:  # without their values: one that is not known may be a secret
        message = "Dynamic configs accepted, but Rollcall has no use for them"
        yield LogLine("warning", message, {**fields, "configs": first_names(event.unused)})


@log_lines_for(NODE_LINES, topics.BrokerConfigIgnored)
def _(event: topics.BrokerConfigIgnored) -> Iterable[LogLine]:
    message = "Ignored a dynamic config that is not valid any more; the static one applies"
    yield LogLine("warning", message, {"name": event.name, "reason": event.reason})


@log_lines_for(NODE_LINES, topics.BrokerConfigsLost)
def _(event: topics.BrokerConfigsLost) -> Iterable[LogLine]:
    message = "Dropped the damaged dynamic configs of the broker: they must be set again"
    yield LogLine("warning", message, {"kept_as": event.kept_as})


@log_lines_for(NODE_LINES, topics.ScramCredentialsChanged)
def _(event: topics.ScramCredentialsChanged) -> Iterable[LogLine]:
    fields: LogFields = {"user": event.user, "mechanism": event.mechanism}
    if event.iterations is None:
        yield LogLine("info", "Deleted a SCRAM credential", fields)
    else:
        changed = {**fields, "iterations": event.iterations}
        yield LogLine("info", "Changed a SCRAM credential", changed)


@log_lines_for(NODE_LINES, topics.ScramCredentialsLost)
def _(event: topics.ScramCredentialsLost) -> Iterable[LogLine]:
    message = "Dropped the damaged SCRAM credentials: the users must be added again"
    yield LogLine("warning", message, {"kept_as": event.kept_as})


@log_lines_for(NODE_LINES, topics.ClientQuotasChanged)
def _(event: topics.ClientQuotasChanged) -> Iterable[LogLine]:
    fields: LogFields = {
        "of": ", ".join(f"{kind} {name or '<default>'}" for kind, name in event.entity),
        "quotas": _configs({key: f"{bound:g}" for key, bound in event.quotas.items()}),
    }
    yield LogLine("info", "Changed client quotas", fields)


@log_lines_for(NODE_LINES, topics.ClientQuotasLost)
def _(event: topics.ClientQuotasLost) -> Iterable[LogLine]:
    message = "Dropped the damaged quotas of clients: they must be set again"
    yield LogLine("warning", message, {"kept_as": event.kept_as})


@log_lines_for(NODE_LINES, topics.ClientMetricsChanged)
def _(event: topics.ClientMetricsChanged) -> Iterable[LogLine]:
    fields: LogFields = {"subscription": event.name, "configs": _configs(event.configs)}
    yield LogLine("info", "Changed a subscription of client metrics", fields)


@log_lines_for(NODE_LINES, topics.AclsChanged)
def _(event: topics.AclsChanged) -> Iterable[LogLine]:
    fields: LogFields = {
        "principal": str(event.principal),
        "client_id": event.client_id,
        "client_host": event.client_host,
    }
    for what, acls in (("Added ACLs", event.added), ("Removed ACLs", event.removed)):
        if acls:
            shown = [str(acl)[:ACL_LENGTH_MAX] for acl in acls[:ACLS_SHOWN_MAX]]
            yield LogLine("info", what, {**fields, "count": len(acls), "acls": shown})


@log_lines_for(NODE_LINES, topics.AclsLost)
def _(event: topics.AclsLost) -> Iterable[LogLine]:
    message = "Dropped the damaged ACLs: they must be set again"
    yield LogLine("warning", message, {"kept_as": event.kept_as})


@log_lines_for(NODE_LINES, topics.AutoCreationFailed)
def _(event: topics.AutoCreationFailed) -> Iterable[LogLine]:
    fields: LogFields = {"topic": event.name, "reason": event.reason}
    yield LogLine("warning", "Auto topic creation failed", fields)


@log_lines_for(NODE_LINES, topics.RecordsDeleted)
def _(event: topics.RecordsDeleted) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Incremented the log start offset due to a client's DeleteRecords",
        {
            "partition": _partition(event.topic_partition),
            "log_start_offset": event.log_start_offset,
        },
    )


@log_lines_for(NODE_LINES, topics.MarkerNotAppended)
def _(event: topics.MarkerNotAppended) -> Iterable[LogLine]:
    yield LogLine(
        "warning",
        "Refused a transaction marker: its coordinator or producer has a newer epoch there",
        {
            "partition": _partition(event.topic_partition),
            "error": event.error_code.name,
            "reason": event.reason,
        },
    )


@log_lines_for(NODE_LINES, topics.SegmentsDeleted)
def _(event: topics.SegmentsDeleted) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Deleted segments due to retention",
        {
            "partition": _partition(event.topic_partition),
            "segments": event.segments,
            "log_start_offset": event.log_start_offset,
        },
    )


@log_lines_for(NODE_LINES, topics.PartitionFailed)
def _(event: topics.PartitionFailed) -> Iterable[LogLine]:
    fields: LogFields = {"partition": _partition(event.topic_partition), "reason": event.reason}
    yield LogLine("error", "Error on the log of a partition", {**fields, "offline": event.offline})


@log_lines_for(NODE_LINES, topics.SaveFailed)
def _(event: topics.SaveFailed) -> Iterable[LogLine]:
    yield LogLine("error", "Could not save", {"what": event.what, "reason": event.reason})


# The shell.


@log_lines_for(NODE_LINES, shell.ConnectionDropped)
def _(event: shell.ConnectionDropped) -> Iterable[LogLine]:
    fields: LogFields = {"peer": event.peer, "cause": event.fault, "detail": event.detail}
    if event.suppressed:
        fields["since_last_line"] = event.suppressed
    level = "info" if event.fault is shell.PeerFault.IDLE else "warning"
    yield LogLine(level, "Closing connection", fields)


@log_lines_for(NODE_LINES, shell.RequestFailed)
def _(event: shell.RequestFailed) -> Iterable[LogLine]:
    fields: LogFields = {
        "request": event.api_name,
        "version": event.api_version,
        "peer": event.peer,
        "error": repr(event.error),
        "at": event.place,
    }
    if event.suppressed:
        fields["since_last_line"] = event.suppressed
    yield LogLine("error", "Unexpected error handling request", fields)


@log_lines_for(NODE_LINES, shell.PartFailed)
def _(event: shell.PartFailed) -> Iterable[LogLine]:
    if not event.is_logged:
        return
    fields: LogFields = {"part": event.part, "error": repr(event.error), "at": event.place}
    if event.suppressed:
        fields["since_last_line"] = event.suppressed
    yield LogLine("error", "Unexpected error", fields)


@log_lines_for(NODE_LINES, shell.CertificateReloaded)
def _(event: shell.CertificateReloaded) -> Iterable[LogLine]:
    facts: dict[str, object] = {"listener": event.listener}
    yield LogLine("info", "Reloaded the certificate of a listener", facts)


@log_lines_for(NODE_LINES, shell.CertificateRefused)
def _(event: shell.CertificateRefused) -> Iterable[LogLine]:
    facts: dict[str, object] = {"listener": event.listener, "reason": event.reason}
    words = "Cannot use the changed certificate of a listener; the one before it stays"
    yield LogLine("error", words, facts)


@log_lines_for(NODE_LINES, shell.LoopStalled)
def _(event: shell.LoopStalled) -> Iterable[LogLine]:
    message = "The daemon was stopped or starved; sessions are extended by as much"
    yield LogLine("warning", message, {"stalled_ms": event.stalled_ms})


@log_lines_for(NODE_LINES, shell.HistoryLost)
def _(event: shell.HistoryLost) -> Iterable[LogLine]:
    message = "The history of groups has a gap: facts could not be kept"
    yield LogLine("warning", message, {"reason": event.reason})


@log_lines_for(NODE_LINES, shell.GroupSkipped)
def _(event: shell.GroupSkipped) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "work": event.work}
    fields |= {"error": repr(event.error), "at": event.place}
    yield LogLine("error", "A group is passed over", fields)


@log_lines_for(NODE_LINES, shell.PartitionElected)
def _(event: shell.PartitionElected) -> Iterable[LogLine]:
    fields: LogFields = {"partition": event.partition, "epoch": event.epoch}
    template = "Scheduling loading of metadata from {}-{} with epoch {}"
    message = log_sentence(template, event.topic, event.partition, event.epoch)
    yield LogLine("debug", message, fields)


@log_lines_for(NODE_LINES, shell.PartitionsElected)
def _(event: shell.PartitionsElected) -> Iterable[LogLine]:
    epochs = "-".join(map(str, sorted({event.epoch_min, event.epoch_max})))
    fields: LogFields = {"count": event.partitions, "epoch": epochs}
    message = log_sentence(
        "Elected as the {} for {} partitions in epoch {}",
        coordinator_of(event.topic),
        event.partitions,
        epochs,
    )
    yield LogLine("info", message, fields)


@log_lines_for(NODE_LINES, shell.PartitionsLoaded)
def _(event: shell.PartitionsLoaded) -> Iterable[LogLine]:
    template = (
        "Finished loading of metadata from {} in {}ms (every group was served after {}ms): "
        "{} partitions, {} failed, {} records"
    )
    yield LogLine(
        "info",
        log_sentence(
            template,
            event.topic,
            event.load_ms,
            event.served_ms,
            event.partitions,
            event.failed,
            event.records,
        ),
        {
            "partitions": event.partitions,
            "failed": event.failed,
            "records": event.records,
            "load_ms": event.load_ms,
            "served_ms": event.served_ms,
        },
    )


@log_lines_for(NODE_LINES, shell.PartitionRead)
def _(event: shell.PartitionRead) -> Iterable[LogLine]:
    partition = f"{event.topic}-{event.partition}"
    yield LogLine(
        "info" if event.records else "debug",
        log_sentence(
            "Finished loading of metadata from {} with epoch {} in {}ms where {}ms was spent in "
            "the scheduler. Loaded {} records which total to {} bytes.",
            partition,
            event.epoch,
            event.load_ms + event.queued_ms,
            event.queued_ms,
            event.records,
            event.size_bytes,
        ),
        {
            "partition": partition,
            "epoch": event.epoch,
            "load_ms": event.load_ms,
            "queued_ms": event.queued_ms,
            "records": event.records,
            "bytes": event.size_bytes,
        },
    )


@log_lines_for(NODE_LINES, shell.PartitionNotLoaded)
def _(event: shell.PartitionNotLoaded) -> Iterable[LogLine]:
    partition = f"{event.topic}-{event.partition}"
    fields: LogFields = {"partition": partition, "epoch": event.epoch, "reason": event.reason}
    template = "Failed to load metadata from {} with epoch {} due to {}."
    message = log_sentence(template, partition, event.epoch, event.reason)
    yield LogLine("error", message, fields)


@log_lines_for(NODE_LINES, shell.LoadProgressed)
def _(event: shell.LoadProgressed) -> Iterable[LogLine]:
    report = event.report
    groups = {"groups": f"{report.groups_ready}/{report.groups_found}"}
    if event.topic != OFFSETS_TOPIC:
        groups = {}
    fields: LogFields = {
        "partitions": f"{report.partitions_read}/{report.partitions}",
        **groups,
        "records": report.records,
        "bytes": f"{report.bytes}/{report.bytes_total}",
        "elapsed_ms": report.elapsed_ms,
    }
    if report.left_ms is not None:
        fields["left_ms"] = report.left_ms
    yield LogLine("info", f"Loading metadata from {event.topic}", fields)


@log_lines_for(NODE_LINES, shell.SnapshotIgnored)
def _(event: shell.SnapshotIgnored) -> Iterable[LogLine]:
    fields: LogFields = {"partition": offsets_partition(event.partition), "path": event.path}
    message = "A snapshot cannot be used; more of the log is read instead"
    yield LogLine("warning", message, {**fields, "reason": event.reason})


@log_lines_for(NODE_LINES, shell.SnapshotTaken)
def _(event: shell.SnapshotTaken) -> Iterable[LogLine]:
    yield LogLine(
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


@log_lines_for(NODE_LINES, shell.SnapshotFailed)
def _(event: shell.SnapshotFailed) -> Iterable[LogLine]:
    fields: LogFields = {"partition": offsets_partition(event.partition), "reason": event.reason}
    yield LogLine(
        "warning", "Could not take a snapshot; a start would read more of the log", fields
    )


@log_lines_for(NODE_LINES, shell.PartitionResigned)
def _(event: shell.PartitionResigned) -> Iterable[LogLine]:
    fields: LogFields = {"partition": event.partition, "epoch": event.epoch}
    template = "Finished unloading metadata for {}-{} with epoch {}."
    message = log_sentence(template, event.topic, event.partition, event.epoch)
    yield LogLine("debug", message, fields)


@log_lines_for(NODE_LINES, shell.PartitionsResigned)
def _(event: shell.PartitionsResigned) -> Iterable[LogLine]:
    template = "Resigned as the {} for {} partitions"
    message = log_sentence(template, coordinator_of(event.topic), event.partitions)
    yield LogLine("info", message, {"count": event.partitions})


@log_lines_for(NODE_LINES, shell.JournalFailed)
def _(event: shell.JournalFailed) -> Iterable[LogLine]:
    message = "The journal has failed; nothing is written until a restart"
    if event.is_full:
        lacking = event.reason.partition(":")[0]
        needed = "the disk has room" if lacking == "disk full" else f"it is no more {lacking}"
        message = f"The journal has failed; nothing is written until {needed} again"
    yield LogLine("error", message, {"reason": event.reason})


@log_lines_for(NODE_LINES, shell.JournalReopened)
def _(event: shell.JournalReopened) -> Iterable[LogLine]:  # noqa: ARG001 - as of every event
    yield LogLine("info", "The disk has room again; the journal is open", {})


@log_lines_for(NODE_LINES, shell.DaemonStep)
def _(event: shell.DaemonStep) -> Iterable[LogLine]:
    yield LogLine("info", event.message, dict(event.fields))


@log_lines_for(NODE_LINES, shell.Warned)
def _(event: shell.Warned) -> Iterable[LogLine]:
    yield LogLine("warning", event.message, dict(event.fields))


@log_lines_for(NODE_LINES, shell.VerdictFound)
def _(event: shell.VerdictFound) -> Iterable[LogLine]:
    verdict = event.verdict
    fields: LogFields = {**_of_group(verdict), "verdict": verdict.kind.value}
    yield LogLine("warning", f"Trouble: {verdict.summary}", {**fields, "remedy": verdict.remedy})


@log_lines_for(NODE_LINES, shell.VerdictCleared)
def _(event: shell.VerdictCleared) -> Iterable[LogLine]:
    verdict = event.verdict
    fields: LogFields = {**_of_group(verdict), "verdict": verdict.kind.value}
    if verdict.subject:
        fields["subject"] = verdict.subject
    yield LogLine("info", "Trouble is over", {**fields, "lasted_ms": event.lasted_ms})


def _of_group(verdict: Verdict) -> LogFields:
    """Nothing for a verdict on a producer."""
    return {"group_id": verdict.group_id} if verdict.group_id else {}


def _partition(topic_partition: tuple[str, int]) -> str:
    return f"{topic_partition[0]}-{topic_partition[1]}"


def _configs(configs: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(configs.items()))


def _named(partitions: Sequence[int]) -> str:
    return first_of([*map(str, partitions)], PARTITIONS_SHOWN_MAX)
