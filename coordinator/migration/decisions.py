"""Migration decisions: commands of one group type at a group of the other.

A consumer group heartbeat at a classic group converts it (upgrade), or is refused. JoinGroup,
SyncGroup, Heartbeat and LeaveGroup at a consumer group serve its members of the classic protocol.
A timer or a stored record of a group that was converted meanwhile means nothing any more.
Kafka's counterpart: the methods `classicGroup*ToConsumerGroup` of `GroupMetadataManager`.
"""

from coordinator.classic import commands as classic
from coordinator.classic.commands import ClassicCommand
from coordinator.classic.group_view import ClassicGroupView
from coordinator.consumer.commands import ConsumerCommand, ConsumerHeartbeat
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.migration.heartbeat import decide_heartbeat_of_classic_member
from coordinator.migration.join_group import decide_join_of_classic_member
from coordinator.migration.leave_group import decide_leave_of_classic_members
from coordinator.migration.sync_group import decide_sync_of_classic_member
from coordinator.migration.upgrade import decide_upgrade
from coordinator.outcome import Outcome
from seams.now import Now


def decide_at_classic_group(
    group: ClassicGroupView, command: ConsumerCommand, now: Now, context: ConsumerContext
) -> Outcome:
    if isinstance(command, ConsumerHeartbeat):
        return decide_upgrade(group, command, now, context)
    return Outcome()


def decide_at_consumer_group(
    group: ConsumerGroupView, command: ClassicCommand, now: Now, context: ConsumerContext
) -> Outcome:
    match command:
        case classic.Join():
            return decide_join_of_classic_member(group, command, now, context)
        case classic.Sync():
            return decide_sync_of_classic_member(group, command, now, context)
        case classic.Beat():
            return decide_heartbeat_of_classic_member(group, command, now, context)
        case classic.Leave():
            return decide_leave_of_classic_members(group, command, now, context)
        case _:
            return Outcome()
