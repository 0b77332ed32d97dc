"""Partitions came or went: who has to share out its topics again?

The rule of rollcall.rebalance.on.partition.change. Kafka differs: it leaves this to the leader's
metadata refresh, up to five minutes later. The protocol's original design has the coordinator track
the topics that its groups read. Changes are gathered for rollcall.partition.change.delay.ms, and
wait while a rebalance runs already.
"""

from collections.abc import Set as AbstractSet

from coordinator.classic import events
from coordinator.classic.commands import BeginRebalance, EndPartitionDelay, RebalanceCause
from coordinator.classic.delayed import DelayedPartitionChange, HeldPartitionChange
from coordinator.classic.group_view import ClassicGroupView
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from protocol.names import GroupState, TopicName
from seams.now import Now

HELD_AT_LEAST_MS = 60_000
"""A held change looks again after the rebalance timeout, or after this if that is shorter."""


def decide_partitions_changed(
    group: ClassicGroupView, topics: AbstractSet[TopicName], now: Now, settings: GroupSettings
) -> Outcome:
    """Note the change; the first one also starts the time of gathering."""
    subscribed = frozenset(topics & (group.subscribed_topics or frozenset()))
    if not settings.rebalance_on_partition_change or not subscribed or not group.members:
        return Outcome()
    changed = events.TopicsChanged(group.group_id, now.wall_ms, subscribed)
    if group.changed_topics:
        return Outcome(events=(changed,))
    op = DelayedPartitionChange(group.group_id, now.mono_ms + settings.partition_change_delay_ms)
    return Outcome(events=(changed,), ops=(op,))


def decide_end_partition_delay(
    group: ClassicGroupView | None, _: EndPartitionDelay, now: Now
) -> Outcome:
    """Begin the rebalance that the changes ask for, or hold them until one that runs is over."""
    if group is None or not group.changed_topics:
        return Outcome()
    match group.state:
        case GroupState.PREPARING_REBALANCE | GroupState.COMPLETING_REBALANCE:
            wait_ms = max(group.rebalance_timeout_ms, HELD_AT_LEAST_MS)
            return Outcome(ops=(HeldPartitionChange(group, now.mono_ms + wait_ms),))
        case GroupState.STABLE:
            topics = ", ".join(sorted(group.changed_topics))
            begin = BeginRebalance(
                group.group_id,
                RebalanceCause.PARTITIONS_CHANGED,
                f"partitions of subscribed topics changed: {topics}",
            )
            return Outcome(then=(begin,))
        case GroupState.EMPTY | GroupState.DEAD:
            return Outcome(events=(events.ChangedTopicsForgotten(group.group_id),))
        case GroupState.ASSIGNING | GroupState.RECONCILING:
            raise AssertionError(f"{group.state} is no state of a classic group")
