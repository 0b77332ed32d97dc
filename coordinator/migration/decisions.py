# ruff: noqa: ARG001
"""Migration decisions: commands of one group type at a group of the other.

A consumer group heartbeat at a classic group converts it (upgrade), or is refused. JoinGroup,
SyncGroup, Heartbeat and LeaveGroup at a consumer group serve its members of the classic protocol.
Kafka's counterpart: `GroupMetadataManager.validateOnlineUpgrade`,
`classicGroupJoinToConsumerGroup`.
"""

from coordinator.classic.commands import ClassicCommand
from coordinator.classic.group_view import ClassicGroupView
from coordinator.consumer.commands import ConsumerCommand
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.outcome import Outcome
from seams.now import Now


def decide_at_classic_group(
    group: ClassicGroupView, command: ConsumerCommand, now: Now, context: ConsumerContext
) -> Outcome:
    raise AssertionError(f"{type(command).__name__} is not served at a classic group yet")


def decide_at_consumer_group(
    group: ConsumerGroupView, command: ClassicCommand, now: Now, context: ConsumerContext
) -> Outcome:
    raise AssertionError(f"{type(command).__name__} is not served at a consumer group yet")
