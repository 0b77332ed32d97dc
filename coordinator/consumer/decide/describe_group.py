"""ConsumerGroupDescribe: in which epochs is this group, who is in it, and who owns what?

Answers one group at a time; many_groups.py collects the answers of a request. Changes nothing.
Kafka's counterpart: `ConsumerGroup.asDescribedGroup`,
`ConsumerGroupMember.asConsumerGroupDescribeMember`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from protocol.messages.consumer_group_describe import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedTopicPartitions,
)
from protocol.names import ErrorCode, GroupId, TopicId, TopicName
from protocol.primitives import echoed
from seams.topics_view import TopicsView

DESCRIBED_BYTES: Final = 100
"""A group without its members, and a member without its topics."""

_TOPIC_BYTES: Final = 50
_PARTITION_BYTES: Final = 4


def describe_consumer_group(
    group: ConsumerGroupView, topics: TopicsView, assignors: Sequence[str], operations: int
) -> DescribedConsumerGroup:
    """The group as it is now. Topics that are gone are left out: nobody could name them."""
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group, assignors),
        members=[_describe_member(group, member, topics) for member in group.members.values()],
        authorized_operations=operations,
    )


def refuse_describe_consumer_group(
    group_id: GroupId, error_code: ErrorCode, reason: str | None = None
) -> DescribedConsumerGroup:
    """The answer about a group that is not there, or that the coordinator cannot look at."""
    message = None if reason is None else echoed(reason)
    return DescribedConsumerGroup(error_code, message, echoed(group_id))


def preferred_assignor(group: ConsumerGroupView, assignors: Sequence[str]) -> str:
    """The one that most members named; of several, or of none, the first that is configured."""
    votes = Counter(member.metadata.server_assignor for member in group.members.values())
    del votes[None]
    named = [name for name in votes if name is not None and name not in assignors]
    return max((*assignors, *named), key=lambda name: votes[name])


def described_consumer_bytes(described: DescribedConsumerGroup) -> int:
    """About what it takes in an answer."""
    return DESCRIBED_BYTES + sum(
        DESCRIBED_BYTES
        + sum(map(len, member.subscribed_topic_names))
        + _assignment_bytes(member.assignment)
        + _assignment_bytes(member.target_assignment)
        for member in described.members
    )


def assigned_topics(described: DescribedConsumerGroup) -> Iterator[TopicName]:
    """Those that a member owns or shall own; one may come several times."""
    for member in described.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name


def _assignment_bytes(assignment: DescribedAssignment) -> int:
    return sum(
        _TOPIC_BYTES + _PARTITION_BYTES * len(topic.partitions)
        for topic in assignment.topic_partitions
    )


def _describe_member(
    group: ConsumerGroupView, member: ConsumerMemberView, topics: TopicsView
) -> DescribedConsumerMember:
    metadata, current = member.metadata, member.current
    owned: dict[TopicId, list[int]] = {}
    for part in (current.assigned, current.pending_revocation):
        for topic_id, partitions in part.items():
            owned.setdefault(topic_id, []).extend(partitions)
    return DescribedConsumerMember(
        metadata.member_id,
        metadata.instance_id,
        metadata.rack_id,
        current.member_epoch,
        metadata.client_id,
        metadata.client_host,
        metadata.subscribed_topic_names,
        metadata.subscribed_topic_regex,
        _assignment(owned, topics),
        _assignment(group.target_of(member.member_id), topics),
        CONSUMER_MEMBER if metadata.classic is None else CLASSIC_MEMBER,
    )


def _assignment(
    partitions: Mapping[TopicId, Iterable[int]], topics: TopicsView
) -> DescribedAssignment:
    described = []
    for topic_id, indexes in partitions.items():
        name = topics.topic_name(topic_id)
        if name is not None:
            described.append(DescribedTopicPartitions(topic_id, name, sorted(indexes)))
    return DescribedAssignment(described)
