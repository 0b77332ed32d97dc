"""Group detectors: rebalance loops, stuck groups, refused joins, mixed subscriptions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from history.causes import Cause
from history.verdicts.model import (
    VERDICT_NAMES_MAX,
    ObservedGroup,
    ObservedMember,
    Verdict,
    VerdictKind,
    VerdictLimits,
    VerdictSteps,
    member_json,
    member_name,
)
from history.verdicts.recent_activity import RecentActivity
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.member_metadata import CONNECT
from seams.text import duration, first_of

RETRY_MS: Final = 10_000
"""A client that was refused retries much sooner than this, or has given up."""

HEARTBEAT_MS: Final = 4_000
"""A little more than heartbeat.interval.ms by default: a shorter silence means nothing."""

COOPERATIVE: Final = "cooperative"
"""The name of a cooperative assignor begins with this."""

_LOOP_REMEDIES: Final[Mapping[Cause, str]] = {
    Cause.SESSION_EXPIRED: "The sessions of members expire: raise session.timeout.ms, and "
    "check the processes for long pauses.",
    Cause.REBALANCE_TIMEOUT: "A member does not poll again in time: raise max.poll.interval.ms, "
    "or lower max.poll.records.",
    Cause.SYNC_TIMEOUT: "A member joins but sends no SyncGroup: check its log, and how long its "
    "assignor takes.",
    Cause.SUBSCRIPTION_CHANGED: "A member changes its subscription repeatedly: look for a "
    "subscribe() in its poll loop, and for patterns that match topics created and deleted often.",
    Cause.STATIC_MEMBER_REPLACED: "Two processes use one group.instance.id: give each process "
    "its own.",
}
_CONSUMER_LOOP_REMEDIES: Final[Mapping[Cause, str]] = {
    Cause.SESSION_EXPIRED: "The sessions of members expire: check the processes for long pauses, "
    "and raise group.consumer.session.timeout.ms, or consumer.session.timeout.ms of this group.",
    Cause.REBALANCE_TIMEOUT: "A member does not give its partitions back in time: look for a "
    "call that blocks in onPartitionsRevoked, raise max.poll.interval.ms, or lower "
    "max.poll.records.",
    Cause.PARTITIONS_CHANGED: "Subscribed topics are created, deleted or get partitions again and "
    "again: look for the program that does that.",
    Cause.REGULAR_EXPRESSION_CHANGED: "A subscribed regular expression matches topics that are "
    "created and deleted often: make it narrower.",
}
_LOOP_REMEDY: Final = (
    "Members join and leave before the group becomes Stable: look for processes that crash, or "
    "that exceed max.poll.interval.ms between two polls. With group.instance.id, a restart causes "
    "no rebalance."
)


def rebalance_loops(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """Rebalance after rebalance, and no offset advanced between them although there is lag."""
    begun = list(activity.without_progress)
    if len(begun) < limits.loop_rebalances or not activity.rounds_without_progress or not group.lag:
        return
    causes = Counter(rebalance.cause for rebalance in begun)
    triggers = Counter(
        member_name(rebalance.trigger) for rebalance in begun if rebalance.trigger is not None
    )
    cause = causes.most_common(1)[0][0]
    whose = triggers.most_common(1)
    what = "group epochs" if group.group_type else "rebalances"
    remedies = _CONSUMER_LOOP_REMEDIES if group.group_type else _LOOP_REMEDIES
    by = f"; {whose[0][1]} of them triggered by {whose[0][0]}" if whose else ""
    yield Verdict(
        group.group_id,
        VerdictKind.REBALANCE_LOOP,
        "",
        f"{len(begun)} {what} within {duration(group.at_ms - begun[0].at_ms)} and no offset "
        f"advanced, with {group.lag} records to read; most common cause: {cause.value}{by}",
        remedies.get(cause) or _LOOP_REMEDIES.get(cause, _LOOP_REMEDY),
        {
            "rebalances": len(begun),
            "first_at_ms": begun[0].at_ms,
            "last_at_ms": begun[-1].at_ms,
            "causes": {name.value: count for name, count in causes.items()},
            "triggers": dict(triggers.most_common(VERDICT_NAMES_MAX)),
            "lag": group.lag,
        },
    )


def stuck_groups(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """The group has been between two generations for long: whom it waits for, and until when."""
    if group.state_ms < limits.stuck_ms or not group.members:
        return
    if group.state == "PreparingRebalance":
        waiting, what = [m for m in group.members if not m.has_rejoined], "to rejoin"
    elif group.state == "CompletingRebalance":
        waiting, what = _awaited_syncs(group)
    else:
        return
    if not waiting and not group.pending_member_ids:
        return  # an empty group that waits for more members to come
    yield None
    silent = [member for member in waiting if _is_silent(member)]
    yield None
    if group.state == "PreparingRebalance":
        remedy = _rejoin_remedy(group, waiting, silent)
    else:
        remedy = _sync_remedy(group, silent)
    until_ms = _until_ms(group, activity, waiting, silent)
    yield None
    if waiting:
        shown = [member_name(member.identity) for member in waiting[:VERDICT_NAMES_MAX]]
        names = first_of(shown, VERDICT_NAMES_MAX, len(waiting))
    else:
        names = f"{len(group.pending_member_ids)} that were given an id and have not joined"
    silent_ms = max((member.silent_ms for member in waiting), default=0)
    yield Verdict(
        group.group_id,
        VerdictKind.STUCK_GROUP,
        "",
        f"{group.state} for {duration(group.state_ms)}: it waits for {names} {what}, for "
        f"{duration(max(until_ms - group.at_ms, 0))} more at most; "
        f"last heard {duration(silent_ms)} ago{_session_ends(silent, len(waiting))}",
        remedy,
        {
            "state": group.state,
            "state_since_ms": group.state_since_ms,
            "waiting_for": [
                {**member_json(member.identity), "silent_ms": member.silent_ms,
                 "session_timeout_ms": member.session_timeout_ms}
                for member in waiting[:VERDICT_NAMES_MAX]
            ],
            "waiting_total": len(waiting),
            "pending_members": len(group.pending_member_ids),
            "until_ms": until_ms,
        },
    )  # fmt: skip


def _is_silent(member: ObservedMember) -> bool:
    """Whether it missed more than one heartbeat. Clients send three or more per session."""
    return member.silent_ms > max(member.session_timeout_ms * 2 // 5, HEARTBEAT_MS)


def _session_ends(silent: Sequence[ObservedMember], waiting: int) -> str:
    if not silent:
        return ""
    left_ms = max(max(member.session_timeout_ms - member.silent_ms, 0) for member in silent)
    subject = "it is" if waiting == 1 else f"{len(silent)} of {waiting} are"
    goes = (
        "it is removed when its session expires"
        if len(silent) == 1
        else "they are removed when their sessions expire"
    )
    return f"; {subject} probably dead: {goes}, in {duration(left_ms)}"


def _rejoin_remedy(
    group: ObservedGroup, waiting: Sequence[ObservedMember], silent: Sequence[ObservedMember]
) -> str:
    """Depends on whether the awaited members are alive: heartbeats come from a separate thread."""
    remedies = []
    if silent:
        remedies.append(
            "The group waits for a dead or disconnected member until its session expires: check "
            "its process and its network. A shorter session.timeout.ms ends such a wait sooner. "
            "A member that closes properly sends LeaveGroup, and the group does not wait for it."
        )
    if len(silent) < len(waiting) or not waiting:
        remedies.append(_living_remedy(group))
    return " ".join(remedies)


def _living_remedy(group: ObservedGroup) -> str:
    if group.protocol_type == PROTOCOL_TYPE:
        return (
            "A consumer rejoins when it polls: if it is just slow, lower max.poll.records or raise "
            "max.poll.interval.ms to what it needs; if it is hung, kill it. The others wait at "
            "most for the largest max.poll.interval.ms of the group."
        )
    if group.protocol_type == CONNECT:
        return (
            "A Connect worker rejoins when its herder thread is free: look for a connector or a "
            "task that blocks in start() or stop(). The others wait at most for the workers' "
            "rebalance.timeout.ms."
        )
    return (
        f"A member of a group of type {group.protocol_type or 'unknown'} rejoins in its main "
        "loop: check its log and its threads. The others wait at most for the largest rebalance "
        "timeout of a member."
    )


def _sync_remedy(group: ObservedGroup, silent: Sequence[ObservedMember]) -> str:
    limit = "max.poll.interval.ms" if group.protocol_type == PROTOCOL_TYPE else "its limit"
    first = (
        "The group waits for a dead or disconnected member until its session expires: check its "
        "process and its network. "
        if silent
        else ""
    )
    return (
        f"{first}The generation waits for a SyncGroup: check the log of the member named here, "
        f"and how long its assignor takes. The wait ends at the rebalance timeout ({limit})."
    )


def _awaited_syncs(group: ObservedGroup) -> tuple[list[ObservedMember], str]:
    leader = [member for member in group.members if member.identity.member_id == group.leader_id]
    if leader and not leader[0].waits_for_sync:
        return leader, "to assign the partitions (it is the leader)"
    return [member for member in group.members if member.is_to_sync], "to fetch its assignment"


def _until_ms(
    group: ObservedGroup,
    activity: RecentActivity,
    waiting: Sequence[ObservedMember],
    silent: Sequence[ObservedMember],
) -> int:
    """When the wait ends by itself: at the rebalance timeout, or when the awaited members expire.

    A live member extends its session, so expiry is a limit only if all of them are probably dead.
    """
    timeout_ms = max((member.rebalance_timeout_ms for member in group.members), default=0)
    until_ms = group.state_since_ms + timeout_ms
    if group.state == "PreparingRebalance" and activity.rebalances:
        until_ms = activity.rebalances[-1].deadline_ms
        if waiting and len(silent) == len(waiting) and not group.pending_member_ids:
            left_ms = max(member.session_timeout_ms - member.silent_ms for member in waiting)
            until_ms = min(until_ms, group.at_ms + max(left_ms, 0))
    return until_ms


def refused_joins(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """A client that cannot join: it has no assignor in common with the members."""
    for identity, refusal in activity.refusals.items():
        if group.at_ms - refusal.at_ms >= max(limits.grace_ms, RETRY_MS):
            continue  # it has given up, or has joined
        yield Verdict(
            group.group_id,
            VerdictKind.MIXED_PROTOCOLS,
            identity,
            f"{member_name(refusal.member)} was refused {activity.refused[identity]} times: "
            f"it offers {' + '.join(refusal.offered) or 'nothing'}, and all members have "
            f"{' + '.join(refusal.supported) or 'nothing'} in common",
            "Configure an assignor that the members have, in partition.assignment.strategy. "
            "Changing the assignor of a running group takes two rollouts: first with both "
            "assignors, then with the new one only.",
            {
                "client_id": refusal.member.client_id,
                "host": refusal.member.client_host,
                "refused": activity.refused[identity],
                "last_at_ms": refusal.at_ms,
                "offered": list(refusal.offered),
                "supported": list(refusal.supported),
            },
        )


def mixed_members(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """Members with different subscriptions, or that offer different assignors."""
    of_topics: dict[frozenset[str], list[ObservedMember]] = {}
    of_protocols: dict[tuple[str, ...], list[ObservedMember]] = {}
    for part in group.members_in_parts():
        for member in part:
            if member.topics is not None:
                of_topics.setdefault(member.topics, []).append(member)
            of_protocols.setdefault(member.protocols, []).append(member)
        yield None
    by_topics = {tuple(sorted(topics)): members for topics, members in of_topics.items()}
    by_protocols: dict[tuple[str, ...], list[ObservedMember]] = {}
    for names, members in of_protocols.items():  # the order is a preference of each member
        by_protocols.setdefault(tuple(sorted(names)), []).extend(members)
    since_ms = activity.mixed("topics", is_mixed=len(by_topics) > 1, at_ms=group.at_ms)
    if since_ms is not None and group.at_ms - since_ms >= limits.grace_ms:
        yield Verdict(
            group.group_id,
            VerdictKind.MIXED_SUBSCRIPTIONS,
            "",
            f"The members have had different subscriptions for {duration(group.at_ms - since_ms)}: "
            f"{_format_factions(by_topics)}",
            "Members of one group should call subscribe() with the same topics: finish the current "
            "rollout, or give each application its own group.id.",
            {"since_ms": since_ms, "parties": _factions_json(by_topics, "topics")},
        )
    since_ms = activity.mixed("protocols", is_mixed=len(by_protocols) > 1, at_ms=group.at_ms)
    if since_ms is not None and group.at_ms - since_ms >= limits.grace_ms:
        yield Verdict(
            group.group_id,
            VerdictKind.MIXED_PROTOCOLS,
            "",
            f"The members have offered different assignors for {duration(group.at_ms - since_ms)}; "
            f"the group uses {group.protocol}, which all offer: {_format_factions(by_protocols)}",
            _protocols_remedy(by_protocols),
            {
                "since_ms": since_ms,
                "protocol": group.protocol,
                "parties": _factions_json(by_protocols, "protocols"),
            },
        )


def _protocols_remedy(by_protocols: Mapping[tuple[str, ...], list[ObservedMember]]) -> str:
    cooperative = {any(name.startswith(COOPERATIVE) for name in names) for names in by_protocols}
    if len(cooperative) > 1:
        return (
            "Some members support cooperative rebalances and some do not, so all stop at each "
            "rebalance: configure the same partition.assignment.strategy for all. A change from "
            "range to cooperative-sticky takes two rollouts: first with both, then with "
            "cooperative-sticky only."
        )
    return "Configure the same partition.assignment.strategy for all members, in the same order."


def _format_factions(factions: Mapping[tuple[str, ...], list[ObservedMember]]) -> str:
    texts = [
        f"{len(members)} ({member_name(members[0].identity)}{', …' if len(members) > 1 else ''}) "
        f"{' + '.join(names) or 'nothing'}"
        for names, members in sorted(factions.items(), key=lambda faction: -len(faction[1]))
    ]
    return "; ".join(texts[:4])


def _factions_json(
    factions: Mapping[tuple[str, ...], list[ObservedMember]], name: str
) -> list[dict[str, object]]:
    return [
        {
            name: list(names),
            "members": [member_json(member.identity) for member in members[:VERDICT_NAMES_MAX]],
            "members_total": len(members),
        }
        for names, members in sorted(factions.items())[:VERDICT_NAMES_MAX]
    ]
