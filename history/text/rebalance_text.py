"""Rebalance as text: the lines of `rollcall why`.

Pure. The first line has the instant, the generations, the duration and the cause. The others are
written only where there is something to say: the trigger, the members waited for, the cost.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.entries import Rebalance
from history.entry_values import (
    AlsoCaused,
    MemberWait,
    TopicPartitionCounts,
)
from history.text.rebalance_json import replace_epoch_times
from history.waiting import AwaitedMember, GroupWait, WaitReason
from seams.text import duration, first_of, instant

NAMED_MAX: Final = 5
"""Members or topics that a line names; the others are counted."""

MOVES_NAMED_MAX: Final = 10
"""Partitions that a line names with their old and new owners."""

_TRIGGERED: Final[dict[Cause, str]] = {
    Cause.MEMBER_JOINED: "{name} joined the group",
    Cause.MEMBER_LEFT: "{name} left the group",
    Cause.SESSION_EXPIRED: "the session of {name} expired: {heard}",
    Cause.REBALANCE_TIMEOUT: "{name} did not rejoin before the rebalance timeout, and was dropped",
    Cause.SYNC_TIMEOUT: "{name} did not fetch its assignment in time, and was removed",
    Cause.SUBSCRIPTION_CHANGED: "{name} changed what it subscribes to or offers",
    Cause.LEADER_REJOINED: "the leader {name} asked for a new assignment",
    Cause.ASSIGNMENT_NOT_STORED: "the assignment that the leader {name} sent was not stored",
    Cause.PARTITIONS_CHANGED: "{topics}; {name} noticed",
    Cause.STATIC_MEMBER_REPLACED: "another process came as the static member {name}",
    Cause.COORDINATOR_MOVED: "the coordinator restarted or moved; {name} had to join again",
    Cause.OPERATOR: "an operator ({client}) removed {member}",
    Cause.REGULAR_EXPRESSION_CHANGED: "{name} subscribes with a regular expression that matches "
    "other topics now",
    Cause.GROUP_CONVERTED: "the group got another type with {name}",
}
_TRIGGERED_IN_CONSUMER_GROUPS: Final[dict[Cause, str]] = {
    Cause.REBALANCE_TIMEOUT: "{name} did not give its partitions back before its rebalance "
    "timeout, and was removed",
    Cause.PARTITIONS_CHANGED: "{topics}",
}
_UNTRIGGERED: Final[dict[Cause, str]] = {
    Cause.COORDINATOR_MOVED: "this daemon loaded the group: it had started, or reopened its logs",
    Cause.PARTITIONS_CHANGED: "{topics}",
    Cause.REGULAR_EXPRESSION_CHANGED: "a subscribed regular expression matches other topics now",
    Cause.GROUP_CONVERTED: "the group got another type",
}
_RESTARTED: Final[dict[str, str]] = {
    "killed": "the daemon restarted after it was killed or had crashed",
    "stopped": "the daemon restarted after a clean stop",
}
_TOGETHER: Final[dict[Cause, str]] = {
    Cause.SESSION_EXPIRED: "the sessions of {name} expired: {heard}",
    Cause.REBALANCE_TIMEOUT: "{name} did not rejoin before the rebalance timeout, and were dropped",
    Cause.SYNC_TIMEOUT: "{name} did not fetch their assignments in time, and were removed",
}
"""Several members that were removed at once."""

_ENDS: Final[dict[End, str]] = {
    End.RUNNING: "running",
    End.STABLE: "took {took}",
    End.EMPTY: "took {took}; nobody is left",
    End.OVERTAKEN: "overtaken by the next one after {took}",
    End.INTERRUPTED: "cut off after {took}: the coordinator stopped",
    End.KEPT: "nobody had to rejoin",
}
_WAITS: Final[dict[WaitEnd, str]] = {
    WaitEnd.WAITING: "{name} has not rejoined yet",
    WaitEnd.REJOINED: "{name} rejoined after {delay}",
    WaitEnd.LEFT: "{name} left",
    WaitEnd.EXPIRED: "the session of {name} expired",
    WaitEnd.DROPPED: "{name} was dropped at the rebalance timeout",
    WaitEnd.REPLACED: "{name} was replaced by another process after {delay}",
    WaitEnd.ABSENT: "the static member {name} did not come, and stays a member",
    WaitEnd.INTERRUPTED: "{name} had not rejoined when it ended",
    WaitEnd.REVOKED: "{name} gave them back after {delay}",
}
_REVOCATIONS: Final[dict[WaitEnd, str]] = {
    WaitEnd.WAITING: "{name} has not given back {what} yet",
    WaitEnd.REVOKED: "{name} gave back {what} after {delay}",
    WaitEnd.LEFT: "{name} left with {what}",
    WaitEnd.EXPIRED: "the session of {name} expired with {what}",
    WaitEnd.DROPPED: "{name} was removed at its rebalance timeout with {what}",
    WaitEnd.REPLACED: "{name} was replaced with {what}",
    WaitEnd.INTERRUPTED: "{name} had not given back {what} when it ended",
}
"""Members of a consumer group that were to give partitions back."""

_WAITING: Final[dict[WaitReason, str]] = {
    WaitReason.JOINS: "waits for {count} to rejoin",
    WaitReason.MORE_MEMBERS: "waits for more members to come (group.initial.rebalance.delay.ms)",
    WaitReason.ASSIGNMENT: "waits for the assignment of the leader",
    WaitReason.DISK: "waits for the disk to have the assignment",
    WaitReason.SYNCS: "waits for {count} to fetch their assignment",
    WaitReason.TARGET: "waits for a target assignment",
    WaitReason.REVOCATIONS: "waits for {count} to give partitions back",
    WaitReason.RECONCILIATION: "waits for {count} to reach the target assignment",
}
_ENDINGS: Final[dict[WaitReason, str]] = {
    WaitReason.JOINS: "It ends when all of them have rejoined, left or expired. At the "
    "time limit, those that are missing are dropped (static members stay).",
    WaitReason.MORE_MEMBERS: "It ends at this time. A member that joins before extends it.",
    WaitReason.ASSIGNMENT: "It ends when the leader sends its SyncGroup. At the time limit, "
    "members that have not synced are removed, and the others rebalance.",
    WaitReason.DISK: "It ends when the write is durable.",
    WaitReason.SYNCS: "The others go on meanwhile. It ends when they send SyncGroup. At the "
    "time limit they are removed, and the others rebalance.",
    WaitReason.TARGET: "It is computed with the next heartbeat of a member, at the earliest "
    "group.consumer.assignment.interval.ms after the last one.",
    WaitReason.REVOCATIONS: "Each confirms with a heartbeat, after its rebalance listener has "
    "returned; at its rebalance timeout (max.poll.interval.ms) it is removed.",
    WaitReason.RECONCILIATION: "Each member learns of its target with its next heartbeat "
    "(group.consumer.heartbeat.interval.ms); one that stays silent is removed when its session "
    "expires.",
}


def format_rebalance(rebalance: Rebalance) -> list[str]:
    """The lines about one rebalance."""
    lines = [_headline(rebalance), f"  Cause: {rebalance.cause}. {_cause(rebalance)}."]
    if rebalance.client_reason:
        whose = "The operator's reason" if rebalance.cause is Cause.OPERATOR else "Its own reason"
        lines.append(f"  {whose}: {replace_epoch_times(rebalance.client_reason)}")
    if rebalance.note:
        lines.append(f"  Note: {rebalance.note}.")
    lines += _also(rebalance)
    if rebalance.waited_for:
        lines.append(f"  Waited for {_members(len(rebalance.waited_for))}: {_waits(rebalance)}.")
    lines += _reached(rebalance)
    lines += _cost(rebalance)
    lines += _assigned(rebalance)
    return lines


def format_wait(waiting: GroupWait, now_ms: int) -> list[str]:
    """The lines about a group that waits: for which members, until when, and what ends it."""
    count = _members(len(waiting.members))
    what = _WAITING[waiting.waits_for].format(count=count)
    since = duration(max(0, now_ms - waiting.since_ms))
    lines = [f"{waiting.state} for {since}: {what}{_until(waiting, now_ms)}."]
    lines += [f"  - {_awaited(member, now_ms)}" for member in waiting.members[:NAMED_MAX]]
    more = len(waiting.members) - NAMED_MAX
    if more > 0:
        lines.append(f"  - and {more} more")
    if waiting.assigned_ids:
        ids = "one id" if waiting.assigned_ids == 1 else f"{waiting.assigned_ids} ids"
        lines.append(f"  - and for {ids} handed out to new members that have not used them yet")
    lines.append(f"  {_ENDINGS[waiting.waits_for]}")
    return lines


# ---------------------------------------------------------------- the parts


def _headline(rebalance: Rebalance) -> str:
    before, after = rebalance.generation_before, rebalance.generation_after
    number = format_number(rebalance.group_type)
    if after is None:
        change = f"{number} {before} -> ?"
    elif after == before:
        change = f"{number} {after} stays"
    else:
        change = f"{number} {before} -> {after}"
    took = duration(rebalance.duration_ms or 0)
    end = End.STABLE if _only_syncs_are_missing(rebalance) else rebalance.end
    members = f"members {rebalance.members_before}"
    if rebalance.members_after is not None and rebalance.members_after != rebalance.members_before:
        members += f" -> {rebalance.members_after}"
    ended = _ENDS[end].format(took=took)
    return f"{instant(rebalance.began_at_ms)}  {change}, {members}, {ended}"


def format_number(group_type: str) -> str:
    """What counts the rebalances of a group of this type."""
    return "epoch" if group_type else "generation"


def _only_syncs_are_missing(rebalance: Rebalance) -> bool:
    return rebalance.end is End.RUNNING and rebalance.duration_ms is not None


def _cause(rebalance: Rebalance) -> str:
    trigger, cause = rebalance.trigger, rebalance.cause
    if cause is Cause.COORDINATOR_MOVED and trigger is None and rebalance.stopped:
        return _capital(f"{_RESTARTED[rebalance.stopped]}{_away(rebalance)}")
    if cause is Cause.STATIC_MEMBER_REPLACED and trigger is not None and rebalance.replaced:
        heard = ""
        if rebalance.silent_ms is not None:
            heard = f", which was last heard {duration(rebalance.silent_ms)} before"
        return (
            f"{format_member(trigger)} took the place of {format_member(rebalance.replaced)}{heard}"
        )
    if rebalance.with_trigger and trigger is not None and cause in _TOGETHER:
        names = _names([trigger, *rebalance.with_trigger])
        return _capital(_TOGETHER[cause].format(name=names, heard=_heard(rebalance)), names)
    text = _sentence(
        cause,
        trigger,
        _heard(rebalance),
        _topics(rebalance.topics),
        of_consumers=bool(rebalance.group_type),
    )
    if rebalance.with_trigger:
        text += f"; together with {_names(rebalance.with_trigger)}"
    return text


def _away(rebalance: Rebalance) -> str:
    if rebalance.away_ms is None:
        return ""
    most = "at most " if rebalance.stopped == "killed" else ""
    return f"; it was away for {most}{duration(rebalance.away_ms)}"


def _heard(rebalance: Rebalance) -> str:
    if rebalance.silent_ms is None:
        return "no heartbeat came in time"
    timeout = ""
    if rebalance.session_timeout_ms is not None:
        timeout = f", session.timeout.ms is {duration(rebalance.session_timeout_ms)}"
    return f"last heard {duration(rebalance.silent_ms)} before{timeout}"


def _topics(changes: Sequence[TopicPartitionCounts]) -> str:
    if not changes:
        return "the partitions of a subscribed topic changed"
    shown = "; ".join(format_topic_change(change) for change in changes[:NAMED_MAX])
    more = f"; and {len(changes) - NAMED_MAX} more" if len(changes) > NAMED_MAX else ""
    return f"the partitions of subscribed topics changed ({shown}{more})"


def format_topic_change(change: TopicPartitionCounts) -> str:
    """`t: 2 -> 8 partitions`."""
    topic, before, now = change
    if now is None:
        return topic
    if now == 0:
        return f"{topic}: deleted, it had {before}"
    if not before:
        return f"{topic}: created with {now}"
    return f"{topic}: {before} -> {now}"


def _names(members: Sequence[MemberIdentity]) -> str:
    shown = [format_member(member) for member in members[:NAMED_MAX]]
    if len(members) > NAMED_MAX:
        shown.append(f"{len(members) - NAMED_MAX} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _sentence(
    cause: Cause,
    trigger: MemberIdentity | None,
    heard: str = "no heartbeat came in time",
    topics: str = "",
    *,
    of_consumers: bool = False,
) -> str:
    topics = topics or _topics(())
    if trigger is None:
        text = _UNTRIGGERED.get(cause) or _TRIGGERED[cause]
        client = "unknown"
        text = text.format(
            name="a member", client=client, member="a member", heard=heard, topics=topics
        )
        return _capital(text)
    host = trigger.client_host.lstrip("/") or "unknown"
    principal = as_principal(trigger.principal)
    client = f"client {trigger.client_id or 'unknown'}{principal} at {host}"
    name, member = format_member(trigger), trigger.group_instance_id or trigger.member_id
    template = _TRIGGERED_IN_CONSUMER_GROUPS.get(cause) if of_consumers else None
    text = (template or _TRIGGERED[cause]).format(
        name=name, client=client, member=member, heard=heard, topics=topics
    )
    return _capital(text, name)


def _capital(text: str, name: str = "") -> str:
    """Capitalized, unless it begins with `name`."""
    return text if name and text.startswith(name) else text[0].upper() + text[1:]


def _also(rebalance: Rebalance) -> Iterable[str]:
    first: Sequence[AlsoCaused] = rebalance.also
    if rebalance.began_by is not None and rebalance.began_by is not rebalance.cause:
        if first and first[0].at_ms == rebalance.began_at_ms:
            yield f"  It began because: {_sentence(first[0].cause, first[0].member)}."
            first = first[1:]
        else:
            yield f"  It began as {rebalance.began_by}."
    if first:
        shown = "; ".join(_sentence(other.cause, other.member) for other in first[:NAMED_MAX])
        more = len(first) - NAMED_MAX
        yield f"  Meanwhile: {shown}{f'; and {more} more' if more > 0 else ''}."


def _waits(rebalance: Rebalance) -> str:
    """Those that delayed the rebalance come first."""
    order: Sequence[MemberWait] = rebalance.waited_for
    if not rebalance.group_type:
        order = sorted(order, key=_delay_order)
    shown = "; ".join(_wait(wait) for wait in order[:NAMED_MAX])
    more = len(order) - NAMED_MAX + rebalance.waited_for_left_out
    return f"{shown}; and {more} more" if more > 0 else shown


def _delay_order(wait: MemberWait) -> tuple[bool, int]:
    return wait.end is WaitEnd.REJOINED, -(wait.join_delay_ms or 0)


def _wait(wait: MemberWait) -> str:
    if wait.partitions is not None:
        partitions = "1 partition" if wait.partitions == 1 else f"{wait.partitions} partitions"
        waited = "an unknown time" if wait.waited_ms is None else duration(wait.waited_ms)
        text = _REVOCATIONS.get(wait.end, _WAITS[wait.end])
        if wait.end is WaitEnd.WAITING and wait.waited_ms is not None:
            text += ", after {delay}"
        return text.format(name=format_member(wait.member), what=partitions, delay=waited)
    delay = "an unknown time" if wait.join_delay_ms is None else duration(wait.join_delay_ms)
    return _WAITS[wait.end].format(name=format_member(wait.member), delay=delay)


def _reached(rebalance: Rebalance) -> Iterable[str]:
    """Which members of a consumer group reached the target assignment last."""
    if not rebalance.group_type or not rebalance.joined:
        return
    slowest = [
        f"{format_member(joined.member)} after {duration(joined.join_delay_ms)}"
        for joined in rebalance.joined[:NAMED_MAX]
    ]
    total = len(rebalance.joined) + rebalance.joined_left_out
    by = f" (assignor {rebalance.assignor})" if rebalance.assignor else ""
    yield f"  Reached the target assignment{by}: {first_of(slowest, NAMED_MAX, total)}."


def _cost(rebalance: Rebalance) -> Iterable[str]:
    moved, unowned = rebalance.partitions_moved, rebalance.unowned_partition_seconds
    if moved is None and unowned is None:
        return
    if rebalance.end is End.KEPT and not unowned:
        return
    parts = []
    if moved is not None and rebalance.end is not End.KEPT:
        parts.append(f"{moved} partition{'' if moved == 1 else 's'} moved")
    if unowned is not None:
        parts.append(f"{unowned:g} partition-seconds without an owner")
    so_far = " so far" if rebalance.end is End.RUNNING else ""
    yield f"  Cost{so_far}: {'; '.join(parts)}."


def _assigned(rebalance: Rebalance) -> Iterable[str]:
    """Which partitions moved between which members, and what else was assigned."""
    if rebalance.moves:
        names = _owner_names(rebalance)
        moves: dict[tuple[str, str], list[str]] = {}
        for move in rebalance.moves[:MOVES_NAMED_MAX]:
            owners = (move.from_member, move.to_member)
            moves.setdefault(owners, []).append(f"{move.topic}-{move.partition}")
        shown = "; ".join(
            f"{', '.join(partitions)} from {names.get(old) or shorten_id(old)} "
            f"to {names.get(new) or shorten_id(new)}"
            for (old, new), partitions in moves.items()
        )
        more = (rebalance.partitions_moved or 0) - min(len(rebalance.moves), MOVES_NAMED_MAX)
        yield f"  Moved: {shown}{f'; and {more} more' if more > 0 else ''}."
    if rebalance.held:
        tasks = [
            f"{format_member(held.member, is_short=True)} {held.standby}" for held in rebalance.held
        ]
        shown = first_of(tasks, NAMED_MAX)
        yield f"  Standby tasks of Kafka Streams (standbys and warm-ups): {shown}."
    if rebalance.described:
        yield f"  Assigned: {rebalance.described}."


def _owner_names(rebalance: Rebalance) -> dict[str, str]:
    """By instance id or member id, of all that the rebalance names."""
    members = [joined.member for joined in rebalance.joined]
    members += [wait.member for wait in rebalance.waited_for]
    members += [other.member for other in rebalance.also if other.member is not None]
    members += [*rebalance.with_trigger]
    if rebalance.trigger is not None and rebalance.cause is not Cause.OPERATOR:
        members.append(rebalance.trigger)
    return {
        member.group_instance_id or member.member_id: format_member(member, is_short=True)
        for member in members
    }


_UUID: Final = re.compile(
    r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


def shorten_id(member_id: str) -> str:
    """A member id, its UUID cut to the first eight digits."""
    return _UUID.sub(r"\1...", member_id)


def format_member(member: MemberIdentity, *, is_short: bool = False) -> str:
    """A member by client id, instance or member id, and host."""
    name = member.client_id or "a client"
    known = member.group_instance_id or (
        shorten_id(member.member_id) if is_short else member.member_id
    )
    place = f" at {member.client_host.lstrip('/')}" if member.client_host else ""
    known = f" ({known})" if known else ""
    return f"{name}{known}{as_principal(member.principal)}{place}"


def as_principal(principal: str | None) -> str:
    """Nothing of a client without authentication."""
    return f" as {principal}" if principal else ""


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"


def _until(waiting: GroupWait, now_ms: int) -> str:
    if waiting.until_ms is None:
        return ""
    left = duration(max(0, waiting.until_ms - now_ms))
    return f", until {instant(waiting.until_ms)} at the latest (in {left})"


def _awaited(awaited: AwaitedMember, now_ms: int) -> str:
    if awaited.session_ends_at_ms is None:
        return format_member(awaited.member)
    left = duration(max(0, awaited.session_ends_at_ms - now_ms))
    return f"{format_member(awaited.member)}; gone in {left} if it stays silent"
