"""Row decoding: the rare record types, one by one (group metadata, history, samples).

A log holds a hundred commits for each of these, so the daemon's own readers decode them record by
record, and the values are returned as columns. Nothing raises: a refused record is returned with
the reason, and the caller keeps it aside.
"""

import json
from collections.abc import Callable, Mapping
from struct import error as struct_error
from typing import Final, NamedTuple, cast

from coordinator.record_schemas import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from coordinator.records import UnreadableRecord, decode_record
from history.encoding import UnreadableEntry, as_plain, decode
from history.entries import ENTRY_NAMES, HistoryEntry
from history.lag.records import COMMIT_NUMBER_MAX, UnreadableSample, decode_sample
from logtools.group_records import RECORD_TYPES, decode_group_record
from protocol.compiler import reader
from protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.primitives import Malformed
from protocol.schema import Message

GROUP_METADATA_TYPE: Final = 2
_EPOCH_TYPES: Final = {3: "consumer", 11: "share", 17: "streams"}

Row = Mapping[str, object]


class Rows(NamedTuple):
    """What one record comes to; `problem` says why it is not all that it should be."""

    rows: tuple[Row, ...] = ()
    problem: str | None = None


Decode = Callable[[bytes | None, bytes | None], Rows]


def offset_commit(key: bytes | None, value: bytes | None) -> Rows:
    """A commit that is not as all others are, or of which something is wrong."""
    try:
        decoded = decode_record(key, value)
    except (UnreadableRecord, struct_error) as fault:
        return Rows(problem=str(fault))
    assert decoded is not None, "it has the type of an offset commit"
    place = cast("OffsetCommitKey", decoded.key)
    row: dict[str, object] = {
        "group": place.group,
        "topic": place.topic,
        "partition": place.partition,
        "tombstone": value is None,
    }
    if value is None:
        return Rows((row,))
    said = cast("OffsetCommitValue", decoded.value)
    row["committed_offset"] = said.offset
    row["metadata"] = said.metadata
    row["commit_timestamp_ms"] = said.commit_timestamp
    row["value_version"] = decoded.value_version
    if isinstance(said, OffsetCommitValue):
        row["leader_epoch"] = None if said.leader_epoch < 0 else said.leader_epoch
        row["expire_timestamp_ms"] = None if said.expire_timestamp < 0 else said.expire_timestamp
        row["topic_id"] = said.topic_id.bytes if said.topic_id.int else None
    return Rows((row,))


def group_metadata(key: bytes | None, value: bytes | None) -> Rows:
    """A classic group with its members, or the epoch of a newer one. Other types: nothing."""
    kind = _type(key)
    if kind != GROUP_METADATA_TYPE and kind not in _EPOCH_TYPES:
        return Rows()
    shown = decode_group_record(key, value)
    if shown.problem is not None:
        return Rows(problem=shown.problem)
    row: dict[str, object] = {
        "group": shown.group,
        "group_type": _EPOCH_TYPES.get(kind, "classic"),
        "tombstone": value is None,
    }
    if value is None:
        return Rows((row,))
    row["value_version"] = version = int.from_bytes(value[:2], signed=True)
    if kind == GROUP_METADATA_TYPE:
        row.update(_classic(reader(GroupMetadataValue, version)(value, 2, len(value))))
    else:
        data = cast("dict[str, dict[str, object]]", shown.value)["data"]
        row["generation"] = data["epoch"]
    return Rows((row,))


def _classic(group: GroupMetadataValue) -> Row:
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "session_timeout_ms": member.session_timeout,
            "rebalance_timeout_ms": member.rebalance_timeout,
            "subscribed_topics": _subscribed(group.protocol_type, member.subscription),
            "assigned": _assigned(group.protocol_type, member.assignment),
        }
        for member in group.members
    ]
    since_ms = group.current_state_timestamp
    return {
        "protocol_type": group.protocol_type or None,
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "state_timestamp_ms": None if since_ms < 0 else since_ms,
        "members": members,
        "member_count": len(members),
    }


def _subscribed(protocol_type: str, raw: bytes) -> list[str] | None:
    """Null unless they are a consumer's."""
    message = _embedded(ConsumerProtocolSubscription, protocol_type, raw)
    return list(message.topics) if isinstance(message, ConsumerProtocolSubscription) else None


def _assigned(protocol_type: str, raw: bytes) -> list[Row] | None:
    if protocol_type == PROTOCOL_TYPE and not raw:
        return []  # the leader assigned nothing to it
    message = _embedded(ConsumerProtocolAssignment, protocol_type, raw)
    if not isinstance(message, ConsumerProtocolAssignment):
        return None
    return [
        {"topic": owned.topic, "partitions": list(owned.partitions)}
        for owned in message.assigned_partitions
    ]


def _embedded(cls: type[Message], protocol_type: str, raw: bytes) -> Message | None:
    if protocol_type != PROTOCOL_TYPE or len(raw) < 2:
        return None
    version = min(int.from_bytes(raw[:2], signed=True), cls.VERSIONS.stop - 1)
    if version < 0:
        return None
    try:
        return reader(cls, version)(raw, 2, len(raw))
    except Malformed:
        return None


def group_records(key: bytes | None, value: bytes | None) -> Rows:
    """Any other type by name, as JSON."""
    kind = _type(key)
    shown = decode_group_record(key, value)
    if kind not in RECORD_TYPES:
        return Rows(problem=shown.problem or f"unknown record type {kind}")
    if shown.problem is not None:
        return Rows(problem=shown.problem)
    version, shown_value = None, None
    if isinstance(shown.value, dict):
        version, shown_value = shown.value["version"], json.dumps(shown.value["data"])
    assert isinstance(shown.key, dict)
    row = {
        "record_type": kind,
        "name": shown.kind,
        "group": shown.group,
        "key": json.dumps(shown.key["data"]),
        "value": shown_value,
        "value_version": version,
    }
    return Rows((row,))


def group_events(_key: bytes | None, value: bytes | None) -> Rows:
    """One event of the history."""
    try:
        event = decode(value)
    except UnreadableEntry as fault:
        return Rows(problem=str(fault))
    if event is None:
        return Rows(problem="an event of a newer version")
    return Rows((_event_row(event),))


def _event_row(event: HistoryEntry) -> Row:
    plain = as_plain(event)
    assert isinstance(plain, dict)
    row: dict[str, object] = {
        "group": event.group_id,
        "at_ms": event.at_ms,
        "type": ENTRY_NAMES[type(event)],
        "event": json.dumps(plain),
    }
    whole = plain.get("rebalance") or {}
    facts = {**plain, **whole}
    causes = facts.get("causes") or [None]  # of a group epoch
    row["cause"] = facts.get("cause", facts.get("by", causes[0]))
    row["generation"] = next((facts[name] for name in _GENERATIONS if name in facts), None)
    gone = (facts.get("members") or [{}]) if isinstance(facts.get("members"), list) else [{}]
    triggers = facts.get("triggers") or [None]
    member = facts.get("who") or facts.get("trigger") or facts.get("new") or gone[0].get("who")
    member = member or triggers[0]
    request_client = facts.get("asker") or {}
    member = member or {}
    row["member_id"] = member.get("member_id") or facts.get("member_id") or None
    row["group_instance_id"] = member.get("group_instance_id") or facts.get("group_instance_id")
    row["client_id"] = member.get("client_id") or request_client.get("client_id")
    row["host"] = member.get("host") or request_client.get("host")
    row["principal"] = member.get("principal") or request_client.get("principal")
    if whole:
        row.update({name: whole[name] for name in _OF_A_REBALANCE})
        row["began_at_ms"] = whole["began_at_ms"]
    if "changes" in facts:
        row["changes"] = facts["changes"]
    return row


_GENERATIONS: Final = ("generation", "generation_after", "epoch", "target_epoch", "member_epoch")
"""Fields that name the generation or epoch, the first of them that an event has."""

_OF_A_REBALANCE: Final = (
    "duration_ms",
    "generation_before",
    "generation_after",
    "members_before",
    "members_after",
    "partitions_moved",
    "unowned_partition_seconds",
)


def lag_samples(key: bytes | None, value: bytes | None) -> Rows:
    """Each commit in a sample."""
    try:
        sample = decode_sample(key, value)
    except UnreadableSample as fault:
        return Rows(problem=str(fault))
    return Rows(
        tuple(
            {
                "group": sample.group_id,
                "topic": sample.topic,
                "partition": partition,
                "at_ms": commit.committed_at_ms,
                "committed_offset": commit.committed_offset,
                "lag": commit.lag,
                "sampled_at_ms": sample.at_ms,
                "whole": sample.whole,
                "log_end_offset": sample.ends.get(
                    partition, min(commit.committed_offset + commit.lag, COMMIT_NUMBER_MAX)
                ),
            }
            for partition, commits in sample.partitions.items()
            for commit in commits
        )
    )


def _type(key: bytes | None) -> int:
    return -1 if key is None or len(key) < 2 else int.from_bytes(key[:2], signed=True)
