"""How is a rebalance told to a person? In a few plain lines; those of `rollcall why`.

Pure text from facts. The first line says when, from which generation to which, how long and why;
what follows tells only what is worth a line: who began it, who was waited for, what it cost.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.entries import AlsoCaused, MemberWait, Rebalance, TopicPartitionCounts
from history.text.rebalance_json import duration, instant, with_times
from history.waiting import Awaited, For, Waiting

NAMED_MAX: Final = 5
"""Members, or topics, that a line names; the others are counted."""

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
    Cause.COORDINATOR_MOVED: "the coordinator restarted or moved; {name} had to join anew",
    Cause.OPERATOR: "an operator ({client}) removed {member}",
}
_UNTRIGGERED: Final[dict[Cause, str]] = {
    Cause.COORDINATOR_MOVED: "this daemon loaded the group: it had started, or reopened its logs",
    Cause.PARTITIONS_CHANGED: "{topics}",
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
"""Where several members went in one instant."""

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
}
_WAITING: Final[dict[For, str]] = {
    For.JOINS: "waits for {count} to rejoin",
    For.MORE_MEMBERS: "waits for more members to come (group.initial.rebalance.delay.ms)",
    For.ASSIGNMENT: "waits for the assignment of the leader",
    For.DISK: "waits for the disk to have the assignment",
    For.SYNCS: "waits for {count} to fetch their assignment",
}
_ENDINGS: Final[dict[For, str]] = {
    For.JOINS: "It ends when all of them have rejoined, left or expired; then, at the latest, "
    "whoever is missing is dropped (a static member stays).",
    For.MORE_MEMBERS: "It ends then, or is put off once more if somebody else comes meanwhile.",
    For.ASSIGNMENT: "It ends when the leader sends its SyncGroup; then, at the latest, whoever has "
    "not synced is removed and the others rebalance.",
    For.DISK: "It ends when the write is durable.",
    For.SYNCS: "The others go on meanwhile. It ends when they send SyncGroup; then, at the latest, "
    "they are removed and the others rebalance.",
}


def tell(rebalance: Rebalance) -> list[str]:
    """The story of one rebalance."""
    lines = [_headline(rebalance), f"  Cause: {rebalance.cause}. {_cause(rebalance)}."]
    if rebalance.client_reason:
        whose = "The operator's reason" if rebalance.cause is Cause.OPERATOR else "Its own reason"
        lines.append(f"  {whose}: {with_times(rebalance.client_reason)}")
    if rebalance.note:
        lines.append(f"  Note: {rebalance.note}.")
    lines += _also(rebalance)
    if rebalance.waited_for:
        lines.append(f"  Waited for {_members(len(rebalance.waited_for))}: {_waits(rebalance)}.")
    lines += _cost(rebalance)
    lines += _assigned(rebalance)
    return lines


def tell_waiting(waiting: Waiting, now_ms: int) -> list[str]:
    """Of a group that waits: for whom, until when, and what would end it."""
    count = _members(len(waiting.members))
    what = _WAITING[waiting.waits_for].format(count=count)
    since = duration(max(0, now_ms - waiting.since_ms))
    lines = [f"{waiting.state} for {since}: {what}{_until(waiting, now_ms)}."]
    lines += [f"  - {_awaited(one, now_ms)}" for one in waiting.members[:NAMED_MAX]]
    more = len(waiting.members) - NAMED_MAX
    if more > 0:
        lines.append(f"  - and {more} more")
    if waiting.handed_out:
        ids = "one id" if waiting.handed_out == 1 else f"{waiting.handed_out} ids"
        lines.append(f"  - and for {ids} handed out to new members that have not used them yet")
    lines.append(f"  {_ENDINGS[waiting.waits_for]}")
    return lines


# ---------------------------------------------------------------- the parts


def _headline(rebalance: Rebalance) -> str:
    before, after = rebalance.generation_before, rebalance.generation_after
    if after is None:
        change = f"generation {before} -> ?"
    elif after == before:
        change = f"generation {after} stays"
    else:
        change = f"generation {before} -> {after}"
    took = duration(rebalance.duration_ms or 0)
    end = End.STABLE if _only_syncs_are_missing(rebalance) else rebalance.end
    members = f"members {rebalance.members_before}"
    if rebalance.members_after is not None and rebalance.members_after != rebalance.members_before:
        members += f" -> {rebalance.members_after}"
    ended = _ENDS[end].format(took=took)
    return f"{instant(rebalance.began_at_ms)}  {change}, {members}, {ended}"


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
        return f"{name_of(trigger)} took the place of {name_of(rebalance.replaced)}{heard}"
    if rebalance.with_trigger and trigger is not None and cause in _TOGETHER:
        names = _names([trigger, *rebalance.with_trigger])
        return _capital(_TOGETHER[cause].format(name=names, heard=_heard(rebalance)), names)
    text = _sentence(cause, trigger, _heard(rebalance), _topics(rebalance.topics))
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
    shown = "; ".join(topic_change(one) for one in changes[:NAMED_MAX])
    more = f"; and {len(changes) - NAMED_MAX} more" if len(changes) > NAMED_MAX else ""
    return f"the partitions of subscribed topics changed ({shown}{more})"


def topic_change(change: TopicPartitionCounts) -> str:
    """`t: 2 -> 8 partitions`."""
    topic, before, now = change
    if now is None:
        return topic
    if now == 0:
        return f"{topic}: deleted, it had {before}"
    if not before:
        return f"{topic}: created with {now}"
    return f"{topic}: {before} -> {now}"


def _names(whos: Sequence[MemberIdentity]) -> str:
    shown = [name_of(who) for who in whos[:NAMED_MAX]]
    if len(whos) > NAMED_MAX:
        shown.append(f"{len(whos) - NAMED_MAX} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _sentence(
    cause: Cause,
    trigger: MemberIdentity | None,
    heard: str = "no heartbeat came in time",
    topics: str = "",
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
    client = f"client {trigger.client_id or 'unknown'} at {host}"
    name, member = name_of(trigger), trigger.group_instance_id or trigger.member_id
    text = _TRIGGERED[cause].format(
        name=name, client=client, member=member, heard=heard, topics=topics
    )
    return _capital(text, name)


def _capital(text: str, name: str = "") -> str:
    """A sentence; one that begins with a name leaves it as it is."""
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
        shown = "; ".join(_sentence(one.cause, one.member) for one in first[:NAMED_MAX])
        more = len(first) - NAMED_MAX
        yield f"  Meanwhile: {shown}{f'; and {more} more' if more > 0 else ''}."


def _waits(rebalance: Rebalance) -> str:
    """The ones worth reading first: those that made it last."""
    order = sorted(rebalance.waited_for, key=_worth)
    shown = "; ".join(_wait(wait) for wait in order[:NAMED_MAX])
    more = len(order) - NAMED_MAX + rebalance.waited_for_left_out
    return f"{shown}; and {more} more" if more > 0 else shown


def _worth(wait: MemberWait) -> tuple[bool, int]:
    return wait.end is WaitEnd.REJOINED, -(wait.join_delay_ms or 0)


def _wait(wait: MemberWait) -> str:
    delay = "an unknown time" if wait.join_delay_ms is None else duration(wait.join_delay_ms)
    return _WAITS[wait.end].format(name=name_of(wait.member), delay=delay)


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
    """Which partitions went from whom to whom, and what else the members hold."""
    if rebalance.moves:
        names = _owner_names(rebalance)
        ways: dict[tuple[str, str], list[str]] = {}
        for move in rebalance.moves[:MOVES_NAMED_MAX]:
            way = (move.from_member, move.to_member)
            ways.setdefault(way, []).append(f"{move.topic}-{move.partition}")
        shown = "; ".join(
            f"{', '.join(partitions)} from {names.get(old) or short(old)} "
            f"to {names.get(new) or short(new)}"
            for (old, new), partitions in ways.items()
        )
        more = (rebalance.partitions_moved or 0) - min(len(rebalance.moves), MOVES_NAMED_MAX)
        yield f"  Moved: {shown}{f'; and {more} more' if more > 0 else ''}."
    if rebalance.held:
        shown = ", ".join(
            f"{name_of(one.member, is_short=True)} {one.standby}"
            for one in rebalance.held[:NAMED_MAX]
        )
        more = len(rebalance.held) - NAMED_MAX
        last = f" and {more} more" if more > 0 else ""
        yield f"  Standby tasks of Kafka Streams (standbys and warm-ups): {shown}{last}."
    if rebalance.described:
        yield f"  Assigned: {rebalance.described}."


def _owner_names(rebalance: Rebalance) -> dict[str, str]:
    """By instance id or member id, of all that the rebalance names."""
    whos = [one.member for one in rebalance.joined]
    whos += [one.member for one in rebalance.waited_for]
    whos += [one.member for one in rebalance.also if one.member is not None]
    whos += [*rebalance.with_trigger]
    if rebalance.trigger is not None and rebalance.cause is not Cause.OPERATOR:
        whos.append(rebalance.trigger)
    return {who.group_instance_id or who.member_id: name_of(who, is_short=True) for who in whos}


_UUID: Final = re.compile(
    r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


def short(member_id: str) -> str:
    """A member id, its UUID cut to the first eight digits."""
    return _UUID.sub(r"\1...", member_id)


def name_of(who: MemberIdentity, *, is_short: bool = False) -> str:
    """A member as its people know it: by client id, and where it is."""
    name = who.client_id or "a client"
    known = who.group_instance_id or (short(who.member_id) if is_short else who.member_id)
    place = f" at {who.client_host.lstrip('/')}" if who.client_host else ""
    return f"{name} ({known}){place}" if known else f"{name}{place}"


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"


def _until(waiting: Waiting, now_ms: int) -> str:
    if waiting.until_ms is None:
        return ""
    left = duration(max(0, waiting.until_ms - now_ms))
    return f", until {instant(waiting.until_ms)} at the latest (in {left})"


def _awaited(one: Awaited, now_ms: int) -> str:
    if one.session_ends_at_ms is None:
        return name_of(one.member)
    left = duration(max(0, one.session_ends_at_ms - now_ms))
    return f"{name_of(one.member)}; gone in {left} if it stays silent"
