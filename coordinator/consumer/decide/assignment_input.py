"""Assignment input: what an assignor is given, and which assignor it is.

Kafka's counterpart: `TargetAssignmentBuilder`, `ConsumerGroup.computePreferredServerAssignor`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    AssignorInput,
    AssignorMember,
)
from coordinator.consumer.assignors.java_order import assignor_order
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.subscriptions import (
    Subscriptions,
    is_homogeneous,
    topics_of_member,
)
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import ConsumerMemberMetadata
from coordinator.consumer.topic_cache import TopicCache
from protocol.names import MemberId, TopicId, TopicName

NOTHING_ASSIGNED: Final[Assignment] = {}


class MembersAfter(NamedTuple):
    """The members of a group after a heartbeat, with their targets before it."""

    metadata: Mapping[MemberId, ConsumerMemberMetadata]
    targets: Mapping[MemberId, Assignment]


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


def assignment_input(
    members: MembersAfter,
    subscriptions: Subscriptions,
    group: ConsumerGroupView,
    topics: TopicCache,
) -> AssignorInput:
    """Members with the same subscription share one set of topics."""
    ids: dict[tuple[tuple[TopicName, ...], str], frozenset[TopicId]] = {}
    all_topics: dict[TopicId, TopicName] = {}
    specs = {}
    for member_id, metadata in members.metadata.items():
        subscription = metadata.subscribed_topic_names, metadata.subscribed_topic_regex
        topic_ids = ids.get(subscription)
        if topic_ids is None:
            found = topics.ids_of(topics_of_member(metadata, group.regexes))
            all_topics.update(found)
            topic_ids = ids[subscription] = frozenset(found)
        specs[member_id] = AssignorMember(
            metadata.rack_id,
            metadata.instance_id,
            topic_ids,
            members.targets.get(member_id, NOTHING_ASSIGNED),
        )
    described = {topic_id: topics.assignor_topic(name) for topic_id, name in all_topics.items()}
    return AssignorInput(specs, described, is_homogeneous(subscriptions))


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
