"""Assignment source: what the input of an assignor is made from, in any thread.

Nothing of it changes, so the group may go on meanwhile. To look at each of thousands of members
takes milliseconds, which the turn that asks for an assignment need not spend. Not compiled: a
compiled loop would keep the interpreter's lock from the event loop until its end.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.consumer.assignors.assignor import (
    Assignment,
    AssignorInput,
    AssignorMember,
    AssignorTopic,
)
from coordinator.consumer.decide.subscriptions import topics_of_member
from coordinator.consumer.member import ConsumerMemberMetadata
from coordinator.consumer.resolved import ResolvedRegularExpression
from protocol.names import MemberId, TopicId, TopicName

NOTHING_ASSIGNED: Final[Assignment] = {}


class MembersAfter(NamedTuple):
    """The members of a group after a heartbeat, with their targets before it."""

    metadata: Mapping[MemberId, ConsumerMemberMetadata]
    targets: Mapping[MemberId, Assignment]


class AssignmentSource(NamedTuple):
    """`topic_ids` and `topics` are of the topics that exist, at least of those subscribed to.

    `subscriptions_after` may count one that a member had before it took over a static member.
    """

    members: MembersAfter
    topic_ids: Mapping[TopicName, TopicId]
    topics: Mapping[TopicId, AssignorTopic]
    regexes: Mapping[str, ResolvedRegularExpression]
    is_homogeneous: bool

    @property
    def size(self) -> int:
        """Members times partitions."""
        partitions = sum(topic.partitions for topic in self.topics.values())
        return len(self.members.metadata) * partitions

    def assignor_input(self) -> AssignorInput:
        """Members with the same subscription share one set of topics."""
        metadata, targets = self.members
        ids: dict[tuple[tuple[TopicName, ...], str], frozenset[TopicId]] = {}
        topics: dict[TopicId, AssignorTopic] = {}
        members = {}
        for member_id, member in metadata.items():
            subscription = member.subscribed_topic_names, member.subscribed_topic_regex
            topic_ids = ids.get(subscription)
            if topic_ids is None:
                topic_ids = ids[subscription] = self._ids_of(member)
                topics.update((topic_id, self.topics[topic_id]) for topic_id in topic_ids)
            members[member_id] = AssignorMember(
                member.rack_id,
                member.instance_id,
                topic_ids,
                targets.get(member_id, NOTHING_ASSIGNED),
            )
        return AssignorInput(members, topics, self.is_homogeneous)

    def _ids_of(self, member: ConsumerMemberMetadata) -> frozenset[TopicId]:
        names = topics_of_member(member, self.regexes)
        return frozenset(self.topic_ids[name] for name in names if name in self.topic_ids)
