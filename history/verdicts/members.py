"""Which member makes trouble? It comes and goes, is late, commits too often, or gets nowhere."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from history.causes import WaitEnd
from history.verdicts.model import (
    NAMED_MAX,
    CommitRate,
    GroupFacts,
    Key,
    MemberFacts,
    Trouble,
    TroubleKind,
    TroubleLimits,
    name_of,
    partitions_named,
    seconds,
    who_is,
)
from history.verdicts.past import Past, Return

POLL_TIMEOUT: Final = "poll timeout"  # as Java's and librdkafka's consumers say it when they leave
REPLACED: Final = "replaced"


def flapping_members(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """It came back, after a short stay, again and again."""
    for identity, returns in past.returns.items():
        if len(returns) < limits.flapping_returns:
            continue
        last = returns[-1]
        reasons = Counter(one.reason for one in returns)
        hosts = sorted({one.who.host.lstrip("/") for one in returns})
        parties = _parties(returns)
        yield Trouble(
            facts.group_id,
            TroubleKind.FLAPPING_MEMBER,
            identity,
            f"{name_of(last.who)} rejoined {len(returns)} times within "
            f"{seconds(last.at_ms - returns[0].at_ms)}{_between(parties)}; reasons for leaving: "
            f"{', '.join(f'{reason} ({count})' for reason, count in reasons.most_common(3))}",
            _flapping_remedy(reasons, parties),
            {
                "member": who_is(last.who),
                "returns": len(returns),
                "first_at_ms": returns[0].at_ms,
                "last_at_ms": last.at_ms,
                "stayed_ms": _median([one.stayed_ms for one in returns]),
                "away_ms": _median([one.away_ms for one in returns]),
                "reasons": dict(reasons),
                "hosts": hosts,
                "parties": parties,
            },
        )


def _parties(returns: Iterable[Return]) -> list[str]:
    """The processes that fence each other: client and host of those that came and that were
    replaced."""
    whos = [who for one in returns if one.replaced is not None for who in (one.who, one.replaced)]
    return sorted({f"{who.client_id or 'a client'} at {who.host.lstrip('/')}" for who in whos})


def _between(parties: list[str]) -> str:
    if len(parties) < 2:
        return ""
    more = f" and {len(parties) - NAMED_MAX} more" if len(parties) > NAMED_MAX else ""
    return f", alternating with another process ({', '.join(parties[:NAMED_MAX])}{more})"


def _flapping_remedy(reasons: Counter[str], parties: list[str]) -> str:
    reason = reasons.most_common(1)[0][0]
    if reason == REPLACED:
        where = f" ({', '.join(parties[:NAMED_MAX])})" if len(parties) > 1 else ""
        return (
            "Two processes use one group.instance.id and fence each other"
            f"{where}: give each process its own."
        )
    if POLL_TIMEOUT in reason:
        return (
            "The time between two polls is too long: raise max.poll.interval.ms, or lower "
            "max.poll.records so that there is less to process per poll."
        )
    if reason == "session_expired":
        return (
            "Its heartbeats stop: check the process and its network for long pauses, raise "
            "session.timeout.ms, and keep heartbeat.interval.ms at a third of it."
        )
    return (
        "Find out why the process restarts (a crash loop, an autoscaler). If the restarts are "
        "intended, set group.instance.id: a static member that returns within session.timeout.ms "
        "causes no rebalance."
    )


def _median(numbers: list[int]) -> int:
    return sorted(numbers)[len(numbers) // 2]


def slow_joiners(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """In the last rebalance the others waited long for it to rejoin."""
    last = past.last
    if last is None:
        return
    size = max(last.members_before, last.members_after or 0)  # who joined has waited as well
    if size < 2:
        return
    for wait in last.waited_for:
        if wait.end not in (WaitEnd.REJOINED, WaitEnd.DROPPED, WaitEnd.ABSENT):
            continue
        delay_ms = wait.join_delay_ms
        if delay_ms is None:
            delay_ms = last.duration_ms or 0
        if delay_ms < limits.slow_join_ms:
            continue
        member = next((m for m in facts.members if m.who.member_id == wait.who.member_id), None)
        timeout_ms = None if member is None else member.rebalance_timeout_ms
        took = "rejoined" if wait.end is WaitEnd.REJOINED else "had not rejoined"
        of = "" if not timeout_ms else f" (allowed: {seconds(timeout_ms)})"
        yield Trouble(
            facts.group_id,
            TroubleKind.SLOW_JOINER,
            wait.who.member_id,
            f"{name_of(wait.who)} {took} {seconds(delay_ms)} after the rebalance began{of}; "
            f"{size - 1} other {'member' if size == 2 else 'members'} waited for it",
            "A consumer rejoins only at its next poll: lower max.poll.records, or process records "
            "in another thread. With partition.assignment.strategy=cooperative-sticky the other "
            "members continue meanwhile. They wait for at most max.poll.interval.ms.",
            {
                "member": who_is(wait.who),
                "join_delay_ms": delay_ms,
                "ended": wait.end.value,
                "rebalance_timeout_ms": timeout_ms,
                "members": size,
                "began_at_ms": last.began_at_ms,
                "generation": last.generation_after,
            },
        )


def commit_storms(facts: GroupFacts, _past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """One client commits far more often than anything is gained by."""
    for rate in facts.commit_rates:
        if rate.commits_per_second >= limits.commits_per_second:
            yield _storm(facts, rate, limits)


def _storm(facts: GroupFacts, rate: CommitRate, limits: TroubleLimits) -> Trouble:
    name = rate.client_id or rate.client
    if rate.host:
        name = f"{name} at {rate.host.lstrip('/')}"
    return Trouble(
        facts.group_id,
        TroubleKind.COMMIT_STORM,
        rate.client,
        f"{name} commits {rate.commits_per_second:.0f} times per second, {rate.partitions} "
        f"partition{'' if rate.partitions == 1 else 's'} per commit: about "
        f"{rate.bytes_per_second:,.0f} bytes per second in the log",
        "Commit once per poll instead of once per record, or let the client commit: "
        "enable.auto.commit=true with auto.commit.interval.ms=5000.",
        {
            "member_id": rate.client,
            "client_id": rate.client_id,
            "host": rate.host,
            "commits_per_second": round(rate.commits_per_second, 1),
            "partitions": rate.partitions,
            "bytes_per_second": round(rate.bytes_per_second),
            "limit_per_second": limits.commits_per_second,
        },
    )


def members_without_progress(
    facts: GroupFacts, _past: Past, limits: TroubleLimits
) -> Iterator[Trouble]:
    """It is heard, it has records to read, and its commits do not move."""
    if not facts.is_stable or facts.state_ms < limits.no_progress_ms:
        return
    if not facts.still_since_ms or facts.at_ms - facts.still_since_ms < limits.no_progress_ms:
        return
    for member in facts.members:
        if member.silent_ms >= member.session_timeout_ms:
            continue
        stuck = [key for key in member.assigned or () if _stands_still(facts, key, limits)]
        if stuck:
            yield _no_progress(facts, member, stuck)


def _stands_still(facts: GroupFacts, key: Key, limits: TroubleLimits) -> bool:
    window = facts.windows.get(key)
    if window is None or not window.lag:
        return False
    # A consumer that usually commits once an hour is given two.
    patience_ms = max(limits.no_progress_ms, 2 * window.usual_pause_ms)
    since_ms = max(window.moved_at_ms, window.lagging_since_ms)
    return facts.at_ms - since_ms >= patience_ms


def _no_progress(facts: GroupFacts, member: MemberFacts, stuck: list[Key]) -> Trouble:
    windows = [facts.windows[key] for key in stuck]
    moved_at_ms = max(window.moved_at_ms for window in windows)
    still_commits = any(
        commit.committed_at_ms > window.moved_at_ms
        for window in windows
        for commit in window.commits()
    )
    lag = sum(window.lag or 0 for window in windows)
    how = "commits the same offset" if still_commits else "commits nothing"
    remedy = (
        "Check the record at the committed offset: its processing may fail repeatedly. Catch the "
        "error, and skip the record or send it to another topic."
        if still_commits
        else "Heartbeats come from a separate thread. Check the thread that polls (a deadlock, a "
        "call without a timeout, paused partitions), and whether it commits at all "
        "(enable.auto.commit). max.poll.interval.ms removes a member that does not poll."
    )
    return Trouble(
        facts.group_id,
        TroubleKind.NO_PROGRESS,
        member.who.member_id,
        f"{name_of(member.who)} sends heartbeats and {how} on {partitions_named(stuck)} for "
        f"{seconds(facts.at_ms - moved_at_ms)}, with {lag} records to read",
        remedy,
        {
            "member": who_is(member.who),
            "partitions": [f"{topic}-{index}" for topic, index in sorted(stuck)[:NAMED_MAX]],
            "partitions_total": len(stuck),
            "lag": lag,
            "moved_at_ms": moved_at_ms,
            "still_commits": still_commits,
            "silent_ms": member.silent_ms,
        },
    )
