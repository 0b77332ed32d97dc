"""Assignment detectors: two owners, no owner, a skewed assignment, needless moves.

In Kafka the leader of a group computes the assignment, and the coordinator passes it on unread. So
no broker notices the mistake of a custom assignor. Normal intermediate states (the first half of a
cooperative rebalance, new partitions that consumers have not detected yet) get a grace period.
"""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from history.lag.model import PartitionKey
from history.verdicts.model import (
    PARTITIONS_PER_STEP,
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
from history.verdicts.recent_activity import GroupAssignment, RecentActivity
from protocol.names import MemberId
from seams.text import duration

KAFKAS_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Of the consumers of Apache Kafka and of librdkafka: they give each partition to one member."""

METADATA_MAX_AGE_MS: Final = 300_000
"""Kafka's default of metadata.max.age.ms: a consumer may not know new partitions for this long."""


def assignment_of(
    group: ObservedGroup, member_ids: frozenset[str], known: GroupAssignment | None
) -> Generator[None, None, GroupAssignment | None]:
    """The owners of all partitions; None without an assignment, or if it cannot be read.

    `known` is the last result: it is reused for the same generation and members. A deleted group
    and a new one of the same name can have a generation of the same number.
    """
    if not group.is_stable:
        return None
    if known is not None and (known.generation, known.members) == (group.generation, member_ids):
        return known
    topics: set[frozenset[str] | None] = set()
    owners: dict[PartitionKey, MemberId] = {}
    several: dict[PartitionKey, list[ObservedMember]] = {}
    largest = 0
    for part in group.members_in_parts():
        for member in part:
            if member.assigned is None:
                return None
            already = len(owners)
            for key in member.assigned:
                if key in owners:
                    several.setdefault(key, []).append(member)
                else:
                    owners[key] = member.identity.member_id
            largest = max(largest, len(owners) - already)
            topics.add(member.topics)
        yield None
    return GroupAssignment(
        group.generation,
        member_ids,
        owners,
        dict(group.partition_counts),
        frozenset(topics),
        _names_of_owners(group, owners, several),
        largest,
    )


def _names_of_owners(
    group: ObservedGroup,
    owners: Mapping[PartitionKey, MemberId],
    several: Mapping[PartitionKey, Sequence[ObservedMember]],
) -> dict[PartitionKey, tuple[str, ...]]:
    """Of the partitions that have several."""
    if not several:
        return {}
    members = {member.identity.member_id: member for member in group.members}
    return {
        key: tuple([member_name(m.identity) for m in (members[owners[key]], *others)])
        for key, others in several.items()
    }


def _all_count(group: ObservedGroup) -> bool:
    return group.protocol in KAFKAS_ASSIGNORS or bool(group.group_type)


def _count(group: ObservedGroup, keys: Collection[PartitionKey]) -> int:
    return len(keys) if _all_count(group) else len(_counted(group, keys))


def _counted(group: ObservedGroup, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    """The partitions that members read.

    An assignor that is not Kafka's may assign copies as well (Faust: the standbys of tables). With
    such an assignor, only the partitions on which the group commits count.
    """
    if _all_count(group):
        return list(keys)
    return [key for key in keys if key in group.windows]


def two_owners(
    group: ObservedGroup, activity: RecentActivity, _limits: VerdictLimits
) -> VerdictSteps:
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
) -> VerdictSteps:
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
            if index % PARTITIONS_PER_STEP == 0:
                yield None
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
) -> VerdictSteps:
    """One member has far more partitions than an even share, and others could take them."""
    assignment = activity.assignment
    if assignment is None or assignment.generation != group.generation:
        return
    if len(assignment.topics) > 1:
        return  # the members do not all subscribe to the same topics
    if group.state_ms < limits.grace_ms or len(group.members) < 2:
        return
    total = _count(group, assignment.owners)
    fair = -(-total // len(group.members))
    heaviest = lightest = group.members[0]
    most = least = _count(group, heaviest.assigned or ())
    for part in group.members_in_parts():
        for member in part:
            count = _count(group, member.assigned or ())
            if count > most:
                heaviest, most = member, count
            elif count < least:
                lightest, least = member, count
        yield None
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
) -> VerdictSteps:
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
    owners = iter(after.owners.items())
    moved: list[PartitionKey] = []
    while part := list(islice(owners, PARTITIONS_PER_STEP)):
        moved += [key for key, owner in part if before.owners.get(key, owner) != owner]
        yield None
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
