"""Did the leader assign well? Two owners, none, too much for one, or moved for nothing.

In Kafka the leader of a group computes the assignment, and the coordinator hands it out unread. So
a custom assignor's mistake is nobody's business, until somebody looks. Ordinary states on the way
(the first half of a cooperative rebalance, partitions that consumers have yet to notice) are given
time before anything is said.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from history.verdicts.model import (
    NAMED_MAX,
    GroupFacts,
    Key,
    Trouble,
    TroubleKind,
    TroubleLimits,
    name_of,
    partitions_named,
    seconds,
    who_is,
)
from history.verdicts.past import Past, Shape

KAFKAS_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Of the consumers of Apache Kafka and of librdkafka: they give each partition to one member."""

METADATA_MAX_AGE_MS: Final = 300_000
"""Kafka's default of metadata.max.age.ms: for this long a consumer may not know new partitions."""


def shape_of(facts: GroupFacts, known: Shape | None = None) -> Shape | None:
    """Who has what; None while there is no assignment, or none that can be read.

    `known` is the one that was made last: of the same generation and members it need not be made
    again. A group that was deleted and its namesake can have a generation of the same number.
    """
    if not facts.is_stable:
        return None
    names = {member.who.member_id: name_of(member.who) for member in facts.members}
    if known is not None and known.generation == facts.generation and known.members == names.keys():
        return known
    owners: dict[Key, str] = {}
    twice: dict[Key, tuple[str, ...]] = {}
    for member in facts.members:
        if member.assigned is None:
            return None
        for key in member.assigned:
            other = owners.get(key)
            if other is not None:
                twice[key] = (*twice.get(key, (names[other],)), names[member.who.member_id])
            else:
                owners[key] = member.who.member_id
    return Shape(
        facts.generation,
        frozenset(names),
        owners,
        dict(facts.partition_counts),
        frozenset(member.topics for member in facts.members),
        twice,
    )


def _counted(facts: GroupFacts, keys: Iterable[Key]) -> list[Key]:
    """Those of the partitions that a member reads.

    An assignor that is not Kafka's own may hand out copies as well (Faust: the standbys of tables):
    with it only what the group commits on counts.
    """
    if facts.protocol in KAFKAS_ASSIGNORS:
        return list(keys)
    return [key for key in keys if key in facts.windows]


def two_owners(facts: GroupFacts, past: Past, _limits: TroubleLimits) -> Iterator[Trouble]:
    """A partition that two members read: each of its records is processed twice."""
    if past.shape is None or past.shape.generation != facts.generation:
        return
    twice = {key: past.shape.twice[key] for key in _counted(facts, past.shape.twice)}
    if twice:
        first, names = min(twice.items())
        yield Trouble(
            facts.group_id,
            TroubleKind.TWO_OWNERS,
            "",
            f"{len(twice)} partitions have more than one owner: {partitions_named(list(twice))}; "
            f"{first[0]}-{first[1]} is assigned to {' and '.join(names[:3])}",
            f"The leader's assignor ({facts.protocol}) is wrong: check "
            "partition.assignment.strategy, and the version of the leader's client library.",
            {
                "partitions": {
                    f"{topic}-{index}": list(twice[topic, index])
                    for topic, index in sorted(twice)[:NAMED_MAX]
                },
                "partitions_total": len(twice),
                **_leader(facts),
            },
        )


def orphan_partitions(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """A partition of a subscribed topic that nobody reads, though there are members."""
    shape = past.shape
    if shape is None or not facts.is_stable or shape.generation != facts.generation:
        return
    if len(shape.owners) >= sum(facts.partition_counts.values()):
        return
    known: list[Key] = []
    fresh: list[Key] = []
    for topic, count in facts.partition_counts.items():
        for index in range(count):
            if (topic, index) not in shape.owners:
                is_fresh = index >= shape.counts.get(topic, 0)
                (fresh if is_fresh else known).append((topic, index))
    if facts.state_ms < limits.settle_ms:
        known = []
    # Twice the age: metadata may have been asked for just before.
    patience_ms = limits.settle_ms + 2 * METADATA_MAX_AGE_MS
    fresh = [
        key
        for key in fresh
        if facts.at_ms - past.grown_at_ms.get(key[0], facts.at_ms) >= patience_ms
    ]
    orphans = sorted([*known, *fresh])
    if orphans:
        lag = sum(facts.windows[key].lag or 0 for key in orphans if key in facts.windows)
        remedy = (
            "The consumers have not detected added partitions yet: metadata.max.age.ms bounds "
            "how long that takes. A restart of one member assigns them."
            if not known
            else f"The leader's assignor ({facts.protocol}) does not assign them: check "
            "partition.assignment.strategy. A restart of one member triggers a new assignment."
        )
        yield Trouble(
            facts.group_id,
            TroubleKind.ORPHAN_PARTITIONS,
            "",
            f"No member has owned {partitions_named(orphans)} for {seconds(facts.state_ms)}",
            remedy,
            {
                "partitions": [f"{topic}-{index}" for topic, index in orphans[:NAMED_MAX]],
                "partitions_total": len(orphans),
                "lag": lag,
                "added_later": len(fresh),
                "stable_since_ms": facts.state_since_ms,
                **_leader(facts),
            },
        )


def skewed_assignments(facts: GroupFacts, past: Past, limits: TroubleLimits) -> Iterator[Trouble]:
    """One member has far more partitions than its share, and the others could take them."""
    shape = past.shape
    if shape is None or shape.generation != facts.generation or len(shape.topics) > 1:
        return
    if facts.state_ms < limits.settle_ms or len(facts.members) < 2:
        return
    total = len(_counted(facts, shape.owners))
    fair = -(-total // len(facts.members))
    counts = {one.who.member_id: len(_counted(facts, one.assigned or ())) for one in facts.members}
    heaviest = max(facts.members, key=lambda member: counts[member.who.member_id])
    lightest = min(facts.members, key=lambda member: counts[member.who.member_id])
    most, least = counts[heaviest.who.member_id], counts[lightest.who.member_id]
    if most * 100 < fair * limits.skew_percent or most < fair + 2:
        return
    yield Trouble(
        facts.group_id,
        TroubleKind.SKEWED_ASSIGNMENT,
        heaviest.who.member_id,
        f"{name_of(heaviest.who)} has {most} of {total} partitions and "
        f"{name_of(lightest.who)} has {least}; an even share is {fair}",
        "range assigns each topic's first partitions to the same members: configure "
        "partition.assignment.strategy=cooperative-sticky or roundrobin."
        if facts.protocol == "range"
        else f"Check how the assignor ({facts.protocol}) balances; cooperative-sticky and "
        "roundrobin distribute partitions evenly (partition.assignment.strategy).",
        {
            "member": who_is(heaviest.who),
            "partitions": most,
            "least": least,
            "fair": fair,
            "members": len(facts.members),
            **_leader(facts),
        },
    )


def needless_moves(facts: GroupFacts, past: Past, _limits: TroubleLimits) -> Iterator[Trouble]:
    """The same members, the same topics, and yet partitions changed hands."""
    before, after = past.shape_before, past.shape
    if before is None or after is None or after.generation != facts.generation:
        return
    is_same = (
        before.members == after.members
        and before.counts == after.counts
        and before.topics == after.topics
    )
    if not is_same or after.largest < before.largest:
        return  # somebody came or went, or the load is spread better now
    moved = [key for key, owner in after.owners.items() if before.owners.get(key, owner) != owner]
    moved = _counted(facts, moved)
    if not moved:
        return
    yield Trouble(
        facts.group_id,
        TroubleKind.NEEDLESS_MOVES,
        "",
        f"{len(moved)} of {len(after.owners)} partitions changed their owner in generation "
        f"{after.generation}, although no member joined or left: {partitions_named(moved)}",
        f"The assignor ({facts.protocol}) is not sticky: configure partition.assignment.strategy="
        "cooperative-sticky, so that members keep their caches and unfinished work.",
        {
            "partitions": [f"{topic}-{index}" for topic, index in sorted(moved)[:NAMED_MAX]],
            "partitions_total": len(moved),
            "generation_before": before.generation,
            "generation_after": after.generation,
            **_leader(facts),
        },
    )


def _leader(facts: GroupFacts) -> dict[str, object]:
    leader = next((m for m in facts.members if m.who.member_id == facts.leader_id), None)
    return {
        "protocol": facts.protocol,
        "leader": None if leader is None else who_is(leader.who),
    }
