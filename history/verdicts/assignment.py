"""Assignment detectors: two owners, no owner, a skewed assignment, needless moves.

In Kafka the leader of a group computes the assignment, and the coordinator passes it on unread. So
no broker notices the mistake of a custom assignor. Normal intermediate states (the first half of a
cooperative rebalance, new partitions that consumers have not detected yet) get a grace period.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from history.lag.model import PartitionKey
from history.verdicts.model import (
    VERDICT_NAMES_MAX,
    ObservedGroup,
    Verdict,
    VerdictKind,
    VerdictLimits,
    format_partitions,
    member_json,
    member_name,
)
from history.verdicts.recent_activity import GroupAssignment, RecentActivity
from protocol.names import MemberId
from seams.text import duration

KAFKAS_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Of the consumers of Apache Kafka and of librdkafka: they give each partition to one member."""

METADATA_MAX_AGE_MS: Final = 300_000
"""Kafka's default of metadata.max.age.ms: a consumer may not know new partitions for this long."""


def assignment_of(
    group: ObservedGroup, known: GroupAssignment | None = None
) -> GroupAssignment | None:
    """The owners of all partitions; None without an assignment, or if it cannot be read.

    `known` is the last result: it is reused for the same generation and members. A deleted group
    and a new one of the same name can have a generation of the same number.
    """
    if not group.is_stable:
        return None
    names = {member.identity.member_id: member_name(member.identity) for member in group.members}
    if known is not None and known.generation == group.generation and known.members == names.keys():
        return known
    owners: dict[PartitionKey, MemberId] = {}
    twice: dict[PartitionKey, tuple[str, ...]] = {}
    for member in group.members:
        if member.assigned is None:
            return None
        for key in member.assigned:
            other = owners.get(key)
            if other is not None:
                twice[key] = (*twice.get(key, (names[other],)), names[member.identity.member_id])
            else:
                owners[key] = member.identity.member_id
    return GroupAssignment(
        group.generation,
        frozenset(names),
        owners,
        dict(group.partition_counts),
        frozenset(member.topics for member in group.members),
        twice,
    )


def _counted(group: ObservedGroup, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    """The partitions that members read.

    An assignor that is not Kafka's may assign copies as well (Faust: the standbys of tables). With
    such an assignor, only the partitions on which the group commits count.
    """
    if group.protocol in KAFKAS_ASSIGNORS or group.group_type:
        return list(keys)
    return [key for key in keys if key in group.windows]


def two_owners(
    group: ObservedGroup, activity: RecentActivity, _limits: VerdictLimits
) -> Iterator[Verdict]:
    """A partition that two members read: each of its records is processed twice."""
    assignment = activity.assignment
    if assignment is None or assignment.generation != group.generation:
        return
    twice = {key: assignment.twice[key] for key in _counted(group, assignment.twice)}
    if twice:
        first, names = min(twice.items())
        yield Verdict(
            group.group_id,
            VerdictKind.TWO_OWNERS,
            "",
            f"{len(twice)} partitions have more than one owner: {format_partitions(list(twice))}; "
            f"{first[0]}-{first[1]} is assigned to {' and '.join(names[:3])}",
            f"The leader's assignor ({group.protocol}) is wrong: check "
            "partition.assignment.strategy, and the version of the leader's client library.",
            {
                "partitions": {
                    f"{topic}-{index}": list(twice[topic, index])
                    for topic, index in sorted(twice)[:VERDICT_NAMES_MAX]
                },
                "partitions_total": len(twice),
                **_leader(group),
            },
        )


def orphan_partitions(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> Iterator[Verdict]:
    """A partition of a subscribed topic without an owner, although the group has members."""
    assignment = activity.assignment
    if assignment is None or not group.is_stable or assignment.generation != group.generation:
        return
    if len(assignment.owners) >= sum(group.partition_counts.values()):
        return
    known: list[PartitionKey] = []
    added: list[PartitionKey] = []
    for topic, count in group.partition_counts.items():
        for index in range(count):
            if (topic, index) not in assignment.owners:
                is_added = index >= assignment.counts.get(topic, 0)
                (added if is_added else known).append((topic, index))
    if group.state_ms < limits.grace_ms:
        known = []
    # Twice the age: a consumer may have fetched its metadata just before the change. The members
    # of a consumer group need not detect it.
    added_grace_ms = limits.grace_ms + (0 if group.group_type else 2 * METADATA_MAX_AGE_MS)
    added = [
        key
        for key in added
        if group.at_ms - activity.grown_at_ms.get(key[0], group.at_ms) >= added_grace_ms
    ]
    orphans = sorted([*known, *added])
    if orphans:
        lag = sum(group.windows[key].lag or 0 for key in orphans if key in group.windows)
        remedy = (
            "The consumers have not detected added partitions yet: metadata.max.age.ms bounds "
            "how long that takes. A restart of one member assigns them."
            if not known
            else f"The leader's assignor ({group.protocol}) does not assign them: check "
            "partition.assignment.strategy. A restart of one member triggers a new assignment."
        )
        if group.group_type:
            remedy = (
                "The server-side assignor does not assign them: check group.remote.assignor of "
                "the consumers and group.consumer.assignors. A restart of one member triggers a "
                "new target assignment."
            )
        yield Verdict(
            group.group_id,
            VerdictKind.ORPHAN_PARTITIONS,
            "",
            f"No member has owned {format_partitions(orphans)} for {duration(group.state_ms)}",
            remedy,
            {
                "partitions": [f"{topic}-{index}" for topic, index in orphans[:VERDICT_NAMES_MAX]],
                "partitions_total": len(orphans),
                "lag": lag,
                "added_later": len(added),
                "stable_since_ms": group.state_since_ms,
                **_leader(group),
            },
        )


def skewed_assignments(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> Iterator[Verdict]:
    """One member has far more partitions than an even share, and others could take them."""
    assignment = activity.assignment
    if assignment is None or assignment.generation != group.generation:
        return
    if len(assignment.topics) > 1:
        return  # the members do not all subscribe to the same topics
    if group.state_ms < limits.grace_ms or len(group.members) < 2:
        return
    total = len(_counted(group, assignment.owners))
    fair = -(-total // len(group.members))
    counts = {
        member.identity.member_id: len(_counted(group, member.assigned or ()))
        for member in group.members
    }
    heaviest = max(group.members, key=lambda member: counts[member.identity.member_id])
    lightest = min(group.members, key=lambda member: counts[member.identity.member_id])
    most, least = counts[heaviest.identity.member_id], counts[lightest.identity.member_id]
    if most * 100 < fair * limits.skew_percent or most < fair + 2:
        return
    yield Verdict(
        group.group_id,
        VerdictKind.SKEWED_ASSIGNMENT,
        heaviest.identity.member_id,
        f"{member_name(heaviest.identity)} has {most} of {total} partitions and "
        f"{member_name(lightest.identity)} has {least}; an even share is {fair}",
        _skew_remedy(group),
        {
            "member": member_json(heaviest.identity),
            "partitions": most,
            "least": least,
            "fair": fair,
            "members": len(group.members),
            **_leader(group),
        },
    )


def _skew_remedy(group: ObservedGroup) -> str:
    if group.group_type:
        return (
            "The server-side assignor uniform distributes partitions evenly; range assigns each "
            "topic's first partitions to the same members: check group.remote.assignor of the "
            "consumers."
        )
    return (
        "range assigns each topic's first partitions to the same members: configure "
        "partition.assignment.strategy=cooperative-sticky or roundrobin."
        if group.protocol == "range"
        else f"Check how the assignor ({group.protocol}) balances; cooperative-sticky and "
        "roundrobin distribute partitions evenly (partition.assignment.strategy)."
    )


def needless_moves(
    group: ObservedGroup, activity: RecentActivity, _limits: VerdictLimits
) -> Iterator[Verdict]:
    """Partitions that changed their owner although members and topics stayed the same."""
    before, after = activity.previous_assignment, activity.assignment
    if before is None or after is None or after.generation != group.generation:
        return
    is_same = (
        before.members == after.members
        and before.counts == after.counts
        and before.topics == after.topics
    )
    if not is_same or after.largest < before.largest:
        return  # members or topics changed, or the load is spread better now
    moved = [key for key, owner in after.owners.items() if before.owners.get(key, owner) != owner]
    moved = _counted(group, moved)
    if not moved:
        return
    number = "group epoch" if group.group_type else "generation"
    yield Verdict(
        group.group_id,
        VerdictKind.NEEDLESS_MOVES,
        "",
        f"{len(moved)} of {len(after.owners)} partitions changed their owner in {number} "
        f"{after.generation}, although no member joined or left: {format_partitions(moved)}",
        "The assignor is not sticky: set group.remote.assignor=uniform for the consumers, so that "
        "members keep their caches and unfinished work."
        if group.group_type
        else f"The assignor ({group.protocol}) is not sticky: configure "
        "partition.assignment.strategy=cooperative-sticky, so that members keep their caches and "
        "unfinished work.",
        {
            "partitions": [
                f"{topic}-{index}" for topic, index in sorted(moved)[:VERDICT_NAMES_MAX]
            ],
            "partitions_total": len(moved),
            "generation_before": before.generation,
            "generation_after": after.generation,
            **_leader(group),
        },
    )


def _leader(group: ObservedGroup) -> dict[str, object]:
    leader = next((m for m in group.members if m.identity.member_id == group.leader_id), None)
    return {
        "protocol": group.protocol,
        "leader": None if leader is None else member_json(leader.identity),
    }
