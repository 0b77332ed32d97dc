"""Member detectors: flapping members, slow joiners, commit storms, members without progress."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from history.causes import WaitEnd
from history.entries import Rebalance
from history.entry_values import MemberWait
from history.lag.model import PartitionKey
from history.verdicts.model import (
    VERDICT_NAMES_MAX,
    CommitRate,
    ObservedGroup,
    ObservedMember,
    Verdict,
    VerdictKind,
    VerdictLimits,
    VerdictSteps,
    format_partitions,
    member_json,
    member_name,
)
from history.verdicts.recent_activity import MemberReturn, RecentActivity
from seams.text import duration, first_of

POLL_TIMEOUT: Final = "poll timeout"  # in the leave reason of Java's and librdkafka's consumers
REPLACED: Final = "replaced"


def flapping_members(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """A member that rejoined repeatedly, each time after a short membership."""
    for identity, returns in activity.returns.items():
        if len(returns) < limits.flapping_returns:
            continue
        last = returns[-1]
        reasons = Counter(entry.reason for entry in returns)
        hosts = sorted({entry.member.client_host.lstrip("/") for entry in returns})
        processes = _processes(returns)
        yield Verdict(
            group.group_id,
            VerdictKind.FLAPPING_MEMBER,
            identity,
            f"{member_name(last.member)} rejoined {len(returns)} times within "
            f"{duration(last.at_ms - returns[0].at_ms)}{_between(processes)}; reasons for leaving: "
            f"{', '.join(f'{reason} ({count})' for reason, count in reasons.most_common(3))}",
            _flapping_remedy(reasons, processes),
            {
                "member": member_json(last.member),
                "returns": len(returns),
                "first_at_ms": returns[0].at_ms,
                "last_at_ms": last.at_ms,
                "stayed_ms": _median([entry.stayed_ms for entry in returns]),
                "away_ms": _median([entry.away_ms for entry in returns]),
                "reasons": dict(reasons),
                "hosts": hosts,
                "parties": processes,
            },
        )


def _processes(returns: Iterable[MemberReturn]) -> list[str]:
    """The processes that fence each other: client and host of the new and the replaced ones."""
    members = [
        member
        for entry in returns
        if entry.replaced is not None
        for member in (entry.member, entry.replaced)
    ]
    return sorted(
        {
            f"{member.client_id or 'a client'} at {member.client_host.lstrip('/')}"
            for member in members
        }
    )


def _between(processes: list[str]) -> str:
    if len(processes) < 2:
        return ""
    return f", alternating with another process ({first_of(processes, VERDICT_NAMES_MAX)})"


def _flapping_remedy(reasons: Counter[str], processes: list[str]) -> str:
    reason = reasons.most_common(1)[0][0]
    if reason == REPLACED:
        where = ""
        if len(processes) > 1:
            where = f" ({', '.join(processes[:VERDICT_NAMES_MAX])})"
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


def slow_joiners(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """A member for which the others waited long in the last rebalance."""
    last = activity.last
    if last is None:
        return
    size = max(last.members_before, last.members_after or 0)  # new members have waited as well
    if size < 2:
        return
    slow: list[tuple[MemberWait, int]] = []  # with the delay in ms
    for wait in last.waited_for:
        if last.group_type:
            if (wait.waited_ms or 0) >= limits.slow_join_ms and wait.end in _REVOKED:
                yield _slow_to_revoke(group, last, wait)
            continue
        if wait.end not in (WaitEnd.REJOINED, WaitEnd.DROPPED, WaitEnd.ABSENT):
            continue
        delay_ms = wait.join_delay_ms
        if delay_ms is None:
            delay_ms = last.duration_ms or 0
        if delay_ms >= limits.slow_join_ms:
            slow.append((wait, delay_ms))
    timeouts_ms: dict[str, int] = {}
    for part in group.members_in_parts() if slow else ():
        timeouts_ms.update((m.identity.member_id, m.rebalance_timeout_ms) for m in part)
        yield None
    for wait, delay_ms in slow:
        timeout_ms = timeouts_ms.get(wait.member.member_id)
        took = "rejoined" if wait.end is WaitEnd.REJOINED else "had not rejoined"
        of = "" if not timeout_ms else f" (allowed: {duration(timeout_ms)})"
        yield Verdict(
            group.group_id,
            VerdictKind.SLOW_JOINER,
            wait.member.member_id,
            f"{member_name(wait.member)} {took} {duration(delay_ms)} after the rebalance "
            f"began{of}; {size - 1} other {'member' if size == 2 else 'members'} waited for it",
            "A consumer rejoins only at its next poll: lower max.poll.records, or process records "
            "in another thread. With partition.assignment.strategy=cooperative-sticky the other "
            "members continue meanwhile. They wait for at most max.poll.interval.ms.",
            {
                "member": member_json(wait.member),
                "join_delay_ms": delay_ms,
                "ended": wait.end.value,
                "rebalance_timeout_ms": timeout_ms,
                "members": size,
                "began_at_ms": last.began_at_ms,
                "generation": last.generation_after,
            },
        )


_REVOKED: Final = (WaitEnd.REVOKED, WaitEnd.DROPPED)


def _slow_to_revoke(group: ObservedGroup, last: Rebalance, wait: MemberWait) -> Verdict:
    how = "gave back" if wait.end is WaitEnd.REVOKED else "had not given back"
    count = wait.partitions or 0
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    return Verdict(
        group.group_id,
        VerdictKind.SLOW_JOINER,
        wait.member.member_id,
        f"{member_name(wait.member)} {how} {partitions} {duration(wait.waited_ms or 0)} after it "
        "was told to; their new owners waited for it",
        "A consumer gives partitions back in poll(), after onPartitionsRevoked has returned: "
        "lower max.poll.records, or process records in another thread. The others wait for at "
        "most max.poll.interval.ms.",
        {
            "member": member_json(wait.member),
            "join_delay_ms": wait.join_delay_ms,
            "waited_ms": wait.waited_ms,
            "ended": wait.end.value,
            "partitions": count,
            "began_at_ms": last.began_at_ms,
            "generation": last.generation_after,
        },
    )


def commit_storms(
    group: ObservedGroup, _past: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """A client that commits far more often than is useful."""
    for rate in group.commit_rates:
        if rate.commits_per_second >= limits.commits_per_second:
            yield _storm(group, rate, limits)


def _storm(group: ObservedGroup, rate: CommitRate, limits: VerdictLimits) -> Verdict:
    name = rate.client_id or rate.client
    if rate.client_host:
        name = f"{name} at {rate.client_host.lstrip('/')}"
    return Verdict(
        group.group_id,
        VerdictKind.COMMIT_STORM,
        rate.client,
        f"{name} commits {rate.commits_per_second:.0f} times per second, {rate.partitions} "
        f"partition{'' if rate.partitions == 1 else 's'} per commit: about "
        f"{rate.bytes_per_second:,.0f} bytes per second in the log",
        "Commit once per poll instead of once per record, or let the client commit: "
        "enable.auto.commit=true with auto.commit.interval.ms=5000.",
        {
            "member_id": rate.client,
            "client_id": rate.client_id,
            "host": rate.client_host,
            "commits_per_second": round(rate.commits_per_second, 1),
            "partitions": rate.partitions,
            "bytes_per_second": round(rate.bytes_per_second),
            "limit_per_second": limits.commits_per_second,
        },
    )


def members_without_progress(
    group: ObservedGroup, _past: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """A member that sends heartbeats and has lag, but whose committed offsets do not advance."""
    if not group.is_stable or group.state_ms < limits.no_progress_ms:
        return
    if not group.still_since_ms or group.at_ms - group.still_since_ms < limits.no_progress_ms:
        return
    for part in group.members_in_parts():
        for member in part:
            if member.silent_ms >= member.session_timeout_ms:
                continue
            stuck = [key for key in member.assigned or () if _stands_still(group, key, limits)]
            if stuck:
                yield _no_progress(group, member, stuck)
        yield None


def _stands_still(group: ObservedGroup, key: PartitionKey, limits: VerdictLimits) -> bool:
    window = group.windows.get(key)
    if window is None or not window.lag:
        return False
    # A consumer that usually commits once an hour gets two hours.
    limit_ms = max(limits.no_progress_ms, 2 * window.usual_pause_ms)
    since_ms = max(window.moved_at_ms, window.lagging_since_ms)
    return group.at_ms - since_ms >= limit_ms


def _no_progress(
    group: ObservedGroup, member: ObservedMember, stuck: list[PartitionKey]
) -> Verdict:
    windows = [group.windows[key] for key in stuck]
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
    return Verdict(
        group.group_id,
        VerdictKind.NO_PROGRESS,
        member.identity.member_id,
        f"{member_name(member.identity)} sends heartbeats and {how} on {format_partitions(stuck)} "
        f"for {duration(group.at_ms - moved_at_ms)}, with {lag} records to read",
        remedy,
        {
            "member": member_json(member.identity),
            "partitions": [
                f"{topic}-{index}" for topic, index in sorted(stuck)[:VERDICT_NAMES_MAX]
            ],
            "partitions_total": len(stuck),
            "lag": lag,
            "moved_at_ms": moved_at_ms,
            "still_commits": still_commits,
            "silent_ms": member.silent_ms,
        },
    )
