"""Reconciliation detectors: a member that keeps partitions, and a reconciliation that never ends.

Of consumer groups. The coordinator has computed who is to own what; members move there one by one,
each with its heartbeats, and one that gets partitions waits for those that are to give them back.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from history.lag.model import PartitionKey
from history.verdicts.model import (
    VERDICT_NAMES_MAX,
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
from history.verdicts.recent_activity import RecentActivity
from seams.text import duration, first_of

ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"

VERDICTS_PER_STEP: Final = 20
"""Verdicts on members that are put into words between two pauses: about half a millisecond."""


def unrevoked_partitions(
    group: ObservedGroup, _activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """A member that was told to give partitions back, and has not confirmed that for long."""
    stuck: list[ObservedMember] = []
    awaited: dict[PartitionKey, list[ObservedMember]] = {}
    for part in group.members_in_parts():
        stuck += [m for m in part if m.revoking and m.revoking_ms >= limits.stuck_ms]
        for member in part:
            for key in member.unreleased:
                awaited.setdefault(key, []).append(member)
        yield None
    for number, member in enumerate(stuck, start=1):
        yield _unrevoked(group, member, awaited)
        if number % VERDICTS_PER_STEP == 0:
            yield None


def _unrevoked(
    group: ObservedGroup,
    member: ObservedMember,
    awaited: Mapping[PartitionKey, Sequence[ObservedMember]],
) -> Verdict:
    by_id = {m.identity.member_id: m for key in member.revoking for m in awaited.get(key, ())}
    waiting = list(by_id.values())
    names = first_of([member_name(other.identity) for other in waiting], VERDICT_NAMES_MAX)
    waits = f"; {names} {'waits' if len(waiting) == 1 else 'wait'} for them" if waiting else ""
    left_ms = max(member.rebalance_timeout_ms - member.revoking_ms, 0)
    return Verdict(
        group.group_id,
        VerdictKind.UNREVOKED_PARTITIONS,
        member.identity.member_id,
        f"{member_name(member.identity)} has not given back {format_partitions(member.revoking)} "
        f"for {duration(member.revoking_ms)}{waits}; last heard {duration(member.silent_ms)} ago, "
        f"removed in {duration(left_ms)} unless it does",
        "A consumer gives partitions back in poll(), after onPartitionsRevoked and the commit of "
        "its offsets have returned: look for a call that blocks there, and lower "
        "max.poll.records if it processes for long between two polls. After "
        "max.poll.interval.ms, which it sends as its rebalance timeout, the member is removed.",
        {
            "member": member_json(member.identity),
            "member_epoch": member.member_epoch,
            "partitions": [
                f"{topic}-{index}" for topic, index in sorted(member.revoking)[:VERDICT_NAMES_MAX]
            ],
            "partitions_total": len(member.revoking),
            "revoking_ms": member.revoking_ms,
            "rebalance_timeout_ms": member.rebalance_timeout_ms,
            "silent_ms": member.silent_ms,
            "waiting": [member_json(other.identity) for other in waiting[:VERDICT_NAMES_MAX]],
            "waiting_total": len(waiting),
            "group_epoch": group.generation,
        },
    )


def stuck_reconciliations(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> VerdictSteps:
    """The group is Assigning or Reconciling for long, and no member is about to revoke."""
    if group.state not in (ASSIGNING, RECONCILING) or group.state_ms < limits.stuck_ms:
        return
    if any(member.revoking for member in group.members):
        return  # unrevoked_partitions names the member, once it takes long
    if group.state == ASSIGNING:
        yield _without_target(group, activity)
        return
    if group.at_ms - activity.handed_over_at_ms < limits.stuck_ms:
        return  # partitions were given back or taken over a moment ago
    waiting = [member for member in group.members if not member.is_reconciled]
    if waiting:
        yield _unreconciled(group, waiting)


def _without_target(group: ObservedGroup, activity: RecentActivity) -> Verdict:
    failure = activity.assignor_failure
    why = ""
    remedy = (
        "A target assignment is computed with a heartbeat, at the earliest "
        "group.consumer.assignment.interval.ms after the last one: check that members send "
        "heartbeats, and whether the subscribed topics exist."
    )
    if failure is not None:
        why = f": the assignor {failure.assignor} failed ({failure.reason})"
        remedy = (
            "The members keep their old assignment until an assignor succeeds: fix the assignor, "
            "or remove it from group.consumer.assignors and from group.remote.assignor of the "
            "consumers."
        )
    return Verdict(
        group.group_id,
        VerdictKind.STUCK_GROUP,
        "",
        f"{group.state} for {duration(group.state_ms)}: there is no target assignment for group "
        f"epoch {group.generation}{why}",
        remedy,
        {
            "state": group.state,
            "state_since_ms": group.state_since_ms,
            "group_epoch": group.generation,
            "assignor": None if failure is None else failure.assignor,
            "reason": None if failure is None else failure.reason,
            "waiting_for": [],
            "waiting_total": 0,
        },
    )


def _unreconciled(group: ObservedGroup, waiting: Sequence[ObservedMember]) -> Verdict:
    names = first_of([member_name(member.identity) for member in waiting], VERDICT_NAMES_MAX)
    unreleased = sorted({key for member in waiting for key in member.unreleased})
    count = f"{len(waiting)} of {len(group.members)} members"
    silent_ms = max(member.silent_ms for member in waiting)
    lacks = f"; they wait for {format_partitions(unreleased)}" if unreleased else ""
    return Verdict(
        group.group_id,
        VerdictKind.STUCK_GROUP,
        "",
        f"{group.state} for {duration(group.state_ms)}: {count} have not reached group epoch "
        f"{group.generation}: {names}{lacks}; last heard {duration(silent_ms)} ago",
        "A member learns of its target with its next heartbeat "
        "(group.consumer.heartbeat.interval.ms): check the processes and the network of the "
        "members that are named here. One that stays silent is removed when its session "
        "(group.consumer.session.timeout.ms) expires; a static member that left keeps its "
        "partitions until then.",
        {
            "state": group.state,
            "state_since_ms": group.state_since_ms,
            "group_epoch": group.generation,
            "waiting_for": [
                {
                    **member_json(member.identity),
                    "member_epoch": member.member_epoch,
                    "silent_ms": member.silent_ms,
                    "session_timeout_ms": member.session_timeout_ms,
                }
                for member in waiting[:VERDICT_NAMES_MAX]
            ],
            "waiting_total": len(waiting),
            "partitions": [f"{topic}-{index}" for topic, index in unreleased[:VERDICT_NAMES_MAX]],
            "partitions_total": len(unreleased),
        },
    )
