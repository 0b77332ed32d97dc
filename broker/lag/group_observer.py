"""Group observer: a group as the detectors of verdicts are given it.

Reads the members of a group of any type, some at a time. Assignments and subscriptions of classic
members are bytes, of which small ones are decoded once; a consumer group knows them by topic id.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from broker.lag.reader import CACHED_BYTES_MAX, current_partitions, owned_by
from broker.lag.sampler import YieldIfDue
from coordinator.classic.group_view import SESSION_PAUSED, ClassicGroupView, ClassicMemberView
from coordinator.classic.subscriptions import topics_of_subscription
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberState
from coordinator.group import GroupType
from coordinator.group_types import AnyGroupView, as_classic, as_consumer
from history.lag.model import PartitionKey
from history.lag.store import GroupWindows
from history.lag.window import LagWindow
from history.ownership import SUBSCRIPTION_BYTES_MAX
from history.verdicts.model import CommitRate, ObservedGroup, ObservedMember
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupState, MemberId, TopicName
from seams.group_configs import GroupConfigs
from seams.now import Now
from seams.topics_view import TopicsView

MEMBERS_PER_SLICE: Final = 20
"""Members that are read before the loop may serve others."""


class GroupObserver:
    def __init__(self, topics: TopicsView, configs: GroupConfigs) -> None:
        """`configs` have the session timeout of members of consumer groups."""
        self._topics = topics
        self._configs = configs

    async def observe(
        self,
        group: AnyGroupView,
        windows: GroupWindows | None,
        rates: Sequence[CommitRate],
        now: Now,
        yield_if_due: YieldIfDue,
    ) -> ObservedGroup | None:
        """None: a member has left meanwhile."""
        members: list[ObservedMember] = []
        topics: set[str] = set()
        for number, member_id in enumerate(tuple(group.members), start=1):
            observed = self._member(group, member_id, now)
            if observed is None:
                return None
            members.append(observed)
            topics.update(observed.topics or ())
            if number % MEMBERS_PER_SLICE == 0:
                await yield_if_due()
        counts = {topic: self._topics.partition_count(topic) for topic in map(TopicName, topics)}
        known: dict[str, int] = {t: count for t, count in counts.items() if count is not None}
        classic, consumers = as_classic(group), as_consumer(group)
        of_windows: Mapping[PartitionKey, LagWindow] = {} if windows is None else windows.windows
        still_since_ms = 0 if windows is None else windows.still_since_ms
        if classic is not None:
            return ObservedGroup(
                classic.group_id,
                now.wall_ms,
                classic.state.value,
                classic.state_since_ms,
                classic.generation_id,
                classic.protocol_type,
                classic.protocol_name,
                classic.leader_id,
                members,
                tuple(classic.pending_member_ids),
                known,
                of_windows,
                still_since_ms,
                rates,
            )
        assert consumers is not None
        return ObservedGroup(
            consumers.group_id,
            now.wall_ms,
            consumers.state.value,
            consumers.state_since_ms,
            consumers.epoch,
            consumers.protocol_type,
            members=members,
            partition_counts=known,
            windows=of_windows,
            still_since_ms=still_since_ms,
            commit_rates=rates,
            group_type=str(GroupType.CONSUMER),
        )

    def _member(self, group: AnyGroupView, member_id: MemberId, now: Now) -> ObservedMember | None:
        classic, consumers = as_classic(group), as_consumer(group)
        if classic is not None:
            member = classic.members.get(member_id)
            return None if member is None else _classic_member(classic, member, now)
        assert consumers is not None
        consumer = consumers.members.get(member_id)
        return None if consumer is None else self._consumer_member(consumers, consumer, now)

    def _consumer_member(
        self, group: ConsumerGroupView, member: ConsumerMemberView, now: Now
    ) -> ObservedMember:
        metadata, current = member.metadata, member.current
        session_ms = self._configs.session_timeout_ms(group.group_id)
        if metadata.classic is not None:
            session_ms = metadata.classic.session_timeout_ms
        revoking_ms = 0
        if member.rebalance_deadline_ms is not None:
            began_ms = member.rebalance_deadline_ms - metadata.rebalance_timeout_ms
            revoking_ms = max(now.mono_ms - began_ms, 0)
        topics = frozenset(metadata.subscribed_topic_names)
        resolved = group.regexes.get(metadata.subscribed_topic_regex)
        if resolved is not None:
            topics |= resolved.topics
        state = current.state
        return ObservedMember(
            metadata.identity,
            session_ms,
            metadata.rebalance_timeout_ms,
            max(now.mono_ms - (member.session_deadline_ms - session_ms), 0),
            topics=topics,
            assigned=tuple(current_partitions(current, self._topics.topic_name)),
            member_epoch=current.member_epoch,
            is_reconciled=(
                state is ConsumerMemberState.STABLE
                and current.member_epoch == group.assignment_epoch
            ),
            revoking=tuple(
                (name, index)
                for topic_id, indexes in current.pending_revocation.items()
                if (name := self._topics.topic_name(topic_id)) is not None
                for index in indexes
            ),
            revoking_ms=revoking_ms,
            unreleased=tuple(self._unreleased(group, member)),
        )

    def _unreleased(
        self, group: ConsumerGroupView, member: ConsumerMemberView
    ) -> list[PartitionKey]:
        """Partitions of its target that another member still owns."""
        if member.current.state is not ConsumerMemberState.UNRELEASED_PARTITIONS:
            return []
        found: list[PartitionKey] = []
        for topic_id, partitions in group.target_of(member.member_id).items():
            name, owners = self._topics.topic_name(topic_id), group.owners.get(topic_id, {})
            if name is not None:
                found += [
                    (name, index)
                    for index in sorted(partitions)
                    if owners.get(index, member.member_id) != member.member_id
                ]
        return found


def _classic_member(group: ClassicGroupView, member: ClassicMemberView, now: Now) -> ObservedMember:
    topics: frozenset[str] | None = None
    assigned: tuple[PartitionKey, ...] | None = None
    if group.protocol_type == PROTOCOL_TYPE:
        subscription = member.metadata_for(group.protocol_name)
        if not subscription and member.protocols:
            subscription = member.protocols[0][1]
        is_small = len(subscription) <= CACHED_BYTES_MAX
        if len(subscription) <= SUBSCRIPTION_BYTES_MAX:
            topics = (_cached_topics_of if is_small else _topics_of)(subscription)
        if group.state is GroupState.STABLE:
            assigned = owned_by(member.assignment)
    silent_ms = 0
    if member.session_deadline_ms != SESSION_PAUSED:
        heard_ms = member.session_deadline_ms - member.session_timeout_ms
        silent_ms = max(now.mono_ms - heard_ms, 0)
    return ObservedMember(
        member.caller,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        silent_ms,
        has_rejoined=member.awaiting_join is not None,
        waits_for_sync=member.awaiting_sync is not None,
        is_to_sync=member.member_id in group.pending_sync_ids,
        protocols=tuple(name for name, _ in member.protocols),
        topics=topics,
        assigned=assigned,
    )


def _topics_of(subscription: bytes) -> frozenset[str] | None:
    topics = topics_of_subscription(subscription)
    return None if topics is None else frozenset(topics)


_cached_topics_of = lru_cache(maxsize=4_096)(_topics_of)
