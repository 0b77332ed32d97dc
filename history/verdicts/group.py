"""What is wrong with a group as a whole? It rebalances or waits for ever, or does not agree."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from history.causes import Cause
from history.verdicts.model import (
    NAMED_MAX,
    GroupFacts,
    MemberFacts,
    Trouble,
    TroubleKind,
    TroubleLimits,
    name_of,
    seconds,
    who_is,
)
from history.verdicts.past import Past
from protocol.consumer_protocol import PROTOCOL_TYPE

RETRY_MS: Final = 10_000
"""A client that is refused tries again much sooner, if it tries again at all."""

HEARTBEAT_MS: Final = 4_000
"""A little more than heartbeat.interval.ms by default: less silence says nothing."""

CONNECT: Final = "connect"  # the protocol type of Kafka Connect's workers

COOPERATIVE: Final = "cooperative"  # what such an assignor's name begins with

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
_LOOP_REMEDY: Final = (
    "Members join and leave before the group becomes Stable: look for processes that crash, or "
    "that exceed max.poll.interval.ms between two polls. With group.instance.id, a restart causes "
    "no rebalance."
)


def rebalance_loops(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """Rebalance after rebalance, and between them no offset moved though there is work."""
    begun = list(past.without_progress)
    if len(begun) < limits.loop_rebalances or not past.looks_without_progress or not facts.lag:
        return
    causes = Counter(one.cause for one in begun)
    triggers = Counter(name_of(one.trigger) for one in begun if one.trigger is not None)
    cause = causes.most_common(1)[0][0]
    whose = triggers.most_common(1)
    by = f"; {whose[0][1]} of them triggered by {whose[0][0]}" if whose else ""
    yield Trouble(
        facts.group_id,
        TroubleKind.REBALANCE_LOOP,
        "",
        f"{len(begun)} rebalances within {seconds(facts.at_ms - begun[0].at_ms)} and no offset "
        f"advanced, with {facts.lag} records to read; most common cause: {cause.value}{by}",
        _LOOP_REMEDIES.get(cause, _LOOP_REMEDY),
        {
            "rebalances": len(begun),
            "first_at_ms": begun[0].at_ms,
            "last_at_ms": begun[-1].at_ms,
            "causes": {name.value: count for name, count in causes.items()},
            "triggers": dict(triggers.most_common(NAMED_MAX)),
            "lag": facts.lag,
        },
    )


def stuck_groups(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """It has been between two generations for long: for whom, and until when?"""
    if facts.state_ms < limits.stuck_ms or not facts.members:
        return
    if facts.state == "PreparingRebalance":
        waiting = [member for member in facts.members if not member.has_rejoined]
        what, remedy = "to rejoin", _rejoin_remedy(facts, waiting)
    elif facts.state == "CompletingRebalance":
        waiting, what = _awaited_syncs(facts)
        remedy = _sync_remedy(facts, waiting)
    else:
        return
    if not waiting and not facts.pending_member_ids:
        return  # an empty group that waits for more members to come
    until_ms = _until_ms(facts, past)
    names = ", ".join(name_of(member.who) for member in waiting[:NAMED_MAX])
    if not waiting:
        names = f"{len(facts.pending_member_ids)} that were given an id and have not joined"
    elif len(waiting) > NAMED_MAX:
        names += f" and {len(waiting) - NAMED_MAX} more"
    silent_ms = max((member.silent_ms for member in waiting), default=0)
    yield Trouble(
        facts.group_id,
        TroubleKind.STUCK_GROUP,
        "",
        f"{facts.state} for {seconds(facts.state_ms)}: it waits for {names} {what}, for "
        f"{seconds(max(until_ms - facts.at_ms, 0))} more at most; last heard {seconds(silent_ms)} "
        f"ago{_session_ends(waiting)}",
        remedy,
        {
            "state": facts.state,
            "state_since_ms": facts.state_since_ms,
            "waiting_for": [
                {**who_is(member.who), "silent_ms": member.silent_ms,
                 "session_timeout_ms": member.session_timeout_ms}
                for member in waiting[:NAMED_MAX]
            ],
            "waiting_total": len(waiting),
            "pending_members": len(facts.pending_member_ids),
            "until_ms": until_ms,
        },
    )  # fmt: skip


def _is_silent(member: MemberFacts) -> bool:
    """Did it miss more than one heartbeat? Clients send three or more in a session."""
    return member.silent_ms > max(member.session_timeout_ms * 2 // 5, HEARTBEAT_MS)


def _session_ends(waiting: Sequence[MemberFacts]) -> str:
    silent = [member for member in waiting if _is_silent(member)]
    if not silent:
        return ""
    left_ms = max(max(one.session_timeout_ms - one.silent_ms, 0) for one in silent)
    who = "it is" if len(waiting) == 1 else f"{len(silent)} of {len(waiting)} are"
    goes = (
        "it is removed when its session expires"
        if len(silent) == 1
        else "they are removed when their sessions expire"
    )
    return f"; {who} probably dead: {goes}, in {seconds(left_ms)}"


def _rejoin_remedy(facts: GroupFacts, waiting: Sequence[MemberFacts]) -> str:
    """By whether those awaited live: heartbeats come from a thread of their own."""
    dead = [member for member in waiting if _is_silent(member)]
    told = []
    if dead:
        told.append(
            "The group waits for a dead or disconnected member until its session expires: check "
            "its process and its network. A shorter session.timeout.ms ends such a wait sooner. "
            "A member that closes properly sends LeaveGroup, and the group does not wait for it."
        )
    if len(dead) < len(waiting) or not waiting:
        told.append(_living_remedy(facts))
    return " ".join(told)


def _living_remedy(facts: GroupFacts) -> str:
    if facts.protocol_type == PROTOCOL_TYPE:
        return (
            "A consumer rejoins when it polls: if it is just slow, lower max.poll.records or raise "
            "max.poll.interval.ms to what it needs; if it is hung, kill it. The others wait at "
            "most for the largest max.poll.interval.ms of the group."
        )
    if facts.protocol_type == CONNECT:
        return (
            "A Connect worker rejoins when its herder thread is free: look for a connector or a "
            "task that blocks in start() or stop(). The others wait at most for the workers' "
            "rebalance.timeout.ms."
        )
    return (
        f"A member of a group of type {facts.protocol_type or 'unknown'} rejoins in its main "
        "loop: check its log and its threads. The others wait at most for the largest rebalance "
        "timeout of a member."
    )


def _sync_remedy(facts: GroupFacts, waiting: Sequence[MemberFacts]) -> str:
    dead = any(_is_silent(member) for member in waiting)
    limit = "max.poll.interval.ms" if facts.protocol_type == PROTOCOL_TYPE else "its limit"
    first = (
        "The group waits for a dead or disconnected member until its session expires: check its "
        "process and its network. "
        if dead
        else ""
    )
    return (
        f"{first}The generation waits for a SyncGroup: check the log of the member named here, "
        f"and how long its assignor takes. The wait ends at the rebalance timeout ({limit})."
    )


def _awaited_syncs(facts: GroupFacts) -> tuple[list[MemberFacts], str]:
    leader = [member for member in facts.members if member.who.member_id == facts.leader_id]
    if leader and not leader[0].waits_for_sync:
        return leader, "to assign the partitions (it is the leader)"
    return [member for member in facts.members if member.is_to_sync], "to fetch its assignment"


def _until_ms(facts: GroupFacts, past: Past) -> int:
    """When the waiting ends by itself: at the rebalance timeout, or when those awaited expire.

    A member that lives extends its session: only of those that are probably dead that is a limit.
    """
    timeout_ms = max((member.rebalance_timeout_ms for member in facts.members), default=0)
    until_ms = facts.state_since_ms + timeout_ms
    if facts.state == "PreparingRebalance" and past.rebalances:
        until_ms = past.rebalances[-1].deadline_ms
        awaited = [member for member in facts.members if not member.has_rejoined]
        if awaited and all(map(_is_silent, awaited)) and not facts.pending_member_ids:
            left_ms = max(member.session_timeout_ms - member.silent_ms for member in awaited)
            until_ms = min(until_ms, facts.at_ms + max(left_ms, 0))
    return until_ms


def refused_joins(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """A client that cannot get in: it and the members have no assignor in common."""
    for identity, refusal in past.refusals.items():
        if facts.at_ms - refusal.at_ms >= max(limits.settle_ms, RETRY_MS):
            continue  # it has given up, or was let in
        yield Trouble(
            facts.group_id,
            TroubleKind.MIXED_PROTOCOLS,
            identity,
            f"{name_of(refusal.who)} was refused {past.refused[identity]} times: it offers "
            f"{' + '.join(refusal.offered) or 'nothing'}, and all members have "
            f"{' + '.join(refusal.supported) or 'nothing'} in common",
            "Configure an assignor that the members have, in partition.assignment.strategy. "
            "Changing the assignor of a running group takes two rollouts: first with both "
            "assignors, then with the new one only.",
            {
                "client_id": refusal.who.client_id,
                "host": refusal.who.host,
                "refused": past.refused[identity],
                "last_at_ms": refusal.at_ms,
                "offered": list(refusal.offered),
                "supported": list(refusal.supported),
            },
        )


def mixed_members(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """Members that do not subscribe to the same, or do not offer the same assignors."""
    of_topics: dict[frozenset[str], list[MemberFacts]] = {}
    of_protocols: dict[tuple[str, ...], list[MemberFacts]] = {}
    for member in facts.members:
        if member.topics is not None:
            of_topics.setdefault(member.topics, []).append(member)
        of_protocols.setdefault(member.protocols, []).append(member)
    by_topics = {tuple(sorted(topics)): members for topics, members in of_topics.items()}
    by_protocols: dict[tuple[str, ...], list[MemberFacts]] = {}
    for names, members in of_protocols.items():  # their order is each member's own preference
        by_protocols.setdefault(tuple(sorted(names)), []).extend(members)
    since_ms = past.mixed("topics", is_mixed=len(by_topics) > 1, at_ms=facts.at_ms)
    if since_ms is not None and facts.at_ms - since_ms >= limits.settle_ms:
        yield Trouble(
            facts.group_id,
            TroubleKind.MIXED_SUBSCRIPTIONS,
            "",
            f"The members have had different subscriptions for {seconds(facts.at_ms - since_ms)}: "
            f"{_parties(by_topics)}",
            "Members of one group should call subscribe() with the same topics: finish the current "
            "rollout, or give each application its own group.id.",
            {"since_ms": since_ms, "parties": _party_facts(by_topics, "topics")},
        )
    since_ms = past.mixed("protocols", is_mixed=len(by_protocols) > 1, at_ms=facts.at_ms)
    if since_ms is not None and facts.at_ms - since_ms >= limits.settle_ms:
        yield Trouble(
            facts.group_id,
            TroubleKind.MIXED_PROTOCOLS,
            "",
            f"The members have offered different assignors for {seconds(facts.at_ms - since_ms)}; "
            f"the group uses {facts.protocol}, which all offer: {_parties(by_protocols)}",
            _protocols_remedy(by_protocols),
            {
                "since_ms": since_ms,
                "protocol": facts.protocol,
                "parties": _party_facts(by_protocols, "protocols"),
            },
        )


def _protocols_remedy(by_protocols: Mapping[tuple[str, ...], list[MemberFacts]]) -> str:
    cooperative = {any(name.startswith(COOPERATIVE) for name in names) for names in by_protocols}
    if len(cooperative) > 1:
        return (
            "Some members support cooperative rebalances and some do not, so all stop at each "
            "rebalance: configure the same partition.assignment.strategy for all. A change from "
            "range to cooperative-sticky takes two rollouts: first with both, then with "
            "cooperative-sticky only."
        )
    return "Configure the same partition.assignment.strategy for all members, in the same order."


def _parties(parties: Mapping[tuple[str, ...], list[MemberFacts]]) -> str:
    told = [
        f"{len(members)} ({name_of(members[0].who)}{', …' if len(members) > 1 else ''}) "
        f"{' + '.join(names) or 'nothing'}"
        for names, members in sorted(parties.items(), key=lambda party: -len(party[1]))
    ]
    return "; ".join(told[:4])


def _party_facts(
    parties: Mapping[tuple[str, ...], list[MemberFacts]], name: str
) -> list[dict[str, object]]:
    return [
        {
            name: list(names),
            "members": [who_is(member.who) for member in members[:NAMED_MAX]],
            "members_total": len(members),
        }
        for names, members in sorted(parties.items())[:NAMED_MAX]
    ]
