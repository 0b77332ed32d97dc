"""Assignment input: what an assignor is given, and which assignor it is.

Kafka's counterpart: `TargetAssignmentBuilder`, `ConsumerGroup.computePreferredServerAssignor`.
"""

from coordinator.consumer.assignment_source import AssignmentSource, MembersAfter
from coordinator.consumer.assignors.assignor import Assignment, Assignor
from coordinator.consumer.assignors.java_order import assignor_order
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.subscriptions import (
    Subscriptions,
    is_homogeneous,
    topics_subscribed_to,
)
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import ConsumerMemberMetadata
from coordinator.consumer.topic_cache import TopicCache
from protocol.names import MemberId


def members_after(
    group: ConsumerGroupView,
    updated: ConsumerMemberMetadata,
    target: Assignment,
    replaces: MemberId | None,
) -> MembersAfter:
    """With the updated member in the place of itself, or of the one that it replaces."""
    metadata = {member_id: member.metadata for member_id, member in group.members.items()}
    targets = dict(group.targets)
    if replaces is not None:
        del metadata[replaces]
        targets.pop(replaces, None)
    metadata[updated.member_id] = updated
    targets[updated.member_id] = target
    return MembersAfter(metadata, targets)


def assignment_source(
    members: MembersAfter,
    subscriptions: Subscriptions,
    group: ConsumerGroupView,
    topics: TopicCache,
) -> AssignmentSource:
    found = topics.ids_of(topics_subscribed_to(subscriptions, group.regexes))
    return AssignmentSource(
        members,
        {name: topic_id for topic_id, name in found.items()},
        {topic_id: topics.assignor_topic(name) for topic_id, name in found.items()},
        dict(group.regexes),
        is_homogeneous(subscriptions),
    )


def choose_assignor(
    group: ConsumerGroupView,
    before: ConsumerMemberMetadata,
    after: ConsumerMemberMetadata,
    context: ConsumerContext,
) -> Assignor:
    """The one that most members want; of several the first in the order of Kafka's map.

    `before` and `after`: the member whose heartbeat this is. Kafka takes its vote out of a copied
    map and puts it in again.
    """
    votes: dict[str, int] = {}
    for member in group.members.values():
        name = member.metadata.server_assignor
        if name is not None:
            votes[name] = votes.get(name, 0) + 1
    names = assignor_order(votes, before.server_assignor, after.server_assignor)
    if before.server_assignor is not None:
        votes[before.server_assignor] -= 1
    if after.server_assignor is not None:
        votes[after.server_assignor] = votes.get(after.server_assignor, 0) + 1
    # A group from before a change of the configuration may want one that is not there any more.
    offered = [name for name in names if name in context.assignors]
    wanted = max(offered or context.assignors, key=lambda name: votes.get(name, 0))
    return context.assignors[wanted]
