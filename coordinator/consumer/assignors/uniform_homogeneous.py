"""Uniform assignment, homogeneous: all members subscribe to the same topics.

Each member gets as many partitions as the others, or one more. It keeps of its own as many as that
allows; what nobody has then fills the members up in order, so most get consecutive partitions.
The work is proportional to the members and their topics, and to the partitions that change.
Kafka's counterpart: `UniformHomogeneousAssignmentBuilder` of 4.3.1, with the same result.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from coordinator.consumer.assignors.assignor import (
    Assignment,
    AssignorInput,
)
from coordinator.consumer.assignors.java_order import (
    assigned_topic_order,
    member_order,
    partition_order,
    subscribed_topic_order,
)
from coordinator.consumer.assignors.target import (
    assignment_size,
    partition_count,
    subscribed_part,
    unassigned_partitions,
)
from protocol.names import MemberId, TopicId

_Run = tuple[TopicId, list[int]]
"""Partitions of one topic, in the order in which they are handed out."""


class _Kept(Struct):
    """What the members keep."""

    target: dict[MemberId, Assignment]
    wanting: list[tuple[MemberId, int]]
    """The members below their quota, and how many partitions they lack."""
    revoked: list[_Run]


def assign_homogeneous(given: AssignorInput) -> dict[MemberId, Assignment]:
    order = member_order(given.members)
    subscribed = given.members[order[0]].subscribed_topic_ids
    if not subscribed:
        return {}
    counts = {topic_id: partition_count(given, topic_id) for topic_id in subscribed}
    total = sum(counts.values())
    current = {
        member_id: subscribed_part(given.members[member_id].assigned, subscribed)
        for member_id in order
    }
    sizes = [assignment_size(assigned) for assigned in current.values()]
    kept = _keep(given, current, sizes, total)
    runs: list[_Run] = []
    if sum(sizes) != total:
        unassigned = unassigned_partitions(counts, current.values())
        topics = subscribed_topic_order(unassigned, len(subscribed))
        runs = [(topic_id, unassigned[topic_id]) for topic_id in topics]
    _hand_out(kept, runs + kept.revoked)
    return kept.target


def _keep(
    given: AssignorInput, current: dict[MemberId, Assignment], sizes: list[int], total: int
) -> _Kept:
    least, extras = divmod(total, len(current))
    kept = _Kept(target={}, wanting=[], revoked=[])
    for place, ((member_id, assigned), size) in enumerate(zip(current.items(), sizes, strict=True)):
        # A member that does not need an extra partition passes it on while enough others follow.
        may_pass = len(current) - place > extras
        has_extra = extras > 0 and (size > least or not may_pass)
        quota = least + has_extra
        if size > quota:
            # Topics that are not subscribed any more play a part in the order.
            topics = filter(
                assigned.__contains__, assigned_topic_order(given.members[member_id].assigned)
            )
            assigned = _within(assigned, topics, quota, kept.revoked)
        elif size < quota:
            kept.wanting.append((member_id, quota - size))
        extras -= has_extra
        kept.target[member_id] = assigned
    return kept


def _within(
    assigned: Assignment, topics: Iterable[TopicId], quota: int, revoked: list[_Run]
) -> Assignment:
    """As much of the assignment as the quota allows; the rest is added to what is revoked."""
    kept = {}
    for topic_id in topics:
        partitions = assigned[topic_id]
        if len(partitions) <= quota:
            kept[topic_id] = partitions
            quota -= len(partitions)
            continue
        ordered = partition_order(partitions)
        if quota:
            kept[topic_id] = frozenset(ordered[:quota])
        revoked.append((topic_id, ordered[quota:]))
        quota = 0
    return kept


def _hand_out(kept: _Kept, runs: Sequence[_Run]) -> None:
    """There are as many partitions in the runs as the members lack."""
    place = start = 0
    for member_id, lacking in kept.wanting:
        assigned = dict(kept.target[member_id])
        while lacking:
            topic_id, run = runs[place]
            gained = run[start : start + lacking]
            assigned[topic_id] = assigned.get(topic_id, frozenset()).union(gained)
            lacking -= len(gained)
            start += len(gained)
            if start == len(run):
                place, start = place + 1, 0
        kept.target[member_id] = assigned
