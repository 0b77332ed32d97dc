"""Consumer group decisions: the table from consumer group commands to the functions of decide/."""

from typing import assert_never

from msgspec.structs import replace

from coordinator.consumer import commands
from coordinator.consumer.assignors.assignor import AssignorFailed
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.expire_member import (
    decide_expire_consumer_session,
    decide_expire_rebalance,
    decide_expire_rejoin,
    decide_expire_sync,
)
from coordinator.consumer.decide.heartbeat import decide_heartbeat
from coordinator.consumer.decide.refusal import group_not_found, refused_outcome
from coordinator.consumer.decide.resolve_regex import decide_resolve_regular_expressions
from coordinator.consumer.decide.target_computed import (
    decide_target_computed,
    decide_target_failed,
)
from coordinator.consumer.events import TargetAssignmentRefused
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.events import GroupCreated
from coordinator.group import GroupType
from coordinator.outcome import Outcome
from protocol.messages.consumer_group_heartbeat import JOIN_EPOCH
from seams.now import Now


def decide_consumer(
    group: ConsumerGroupView | None,
    command: commands.ConsumerCommand,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    match command:
        case commands.ConsumerHeartbeat():
            if group is None:
                return _first_heartbeat(command, now, context)
            return decide_heartbeat(group, command, now, context)
        case commands.ExpireConsumerSession():
            return decide_expire_consumer_session(group, command, now, context)
        case commands.ExpireRebalanceTimeout():
            return decide_expire_rebalance(group, command, now, context)
        case commands.ResolveRegularExpressions():
            return decide_resolve_regular_expressions(group, command, now, context)
        case commands.TargetAssignmentComputed():
            return decide_target_computed(group, command, now)
        case commands.TargetAssignmentFailed():
            return decide_target_failed(group, command, now)
        case commands.ExpireClassicRejoin():
            return decide_expire_rejoin(group, command, now, context)
        case commands.ExpireClassicSync():
            return decide_expire_sync(group, command, now, context)
        case _:
            assert_never(command)


def _first_heartbeat(
    command: commands.ConsumerHeartbeat, now: Now, context: ConsumerContext
) -> Outcome:
    """There is no group: a member that joins creates it. A refused join leaves none behind."""
    epoch = command.request.member_epoch
    if epoch != JOIN_EPOCH:
        missing = group_not_found(command.group_id, joining=epoch > JOIN_EPOCH)
        return refused_outcome(command.token, missing)
    group = ConsumerGroup(command.group_id, now.wall_ms)
    outcome = decide_heartbeat(group, command, now, context)
    for event in outcome.events:
        if isinstance(event, TargetAssignmentRefused):  # No group could keep it.
            raise AssignorFailed(event.reason)
    if not outcome.records:
        return replace(outcome, events=())
    created = GroupCreated(
        command.group_id, now.wall_ms, simple=False, group_type=GroupType.CONSUMER
    )
    return replace(outcome, events=(created, *outcome.events))
