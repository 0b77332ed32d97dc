"""Steady heartbeat: does a heartbeat change nothing but the session deadline of its member?

The busiest question about a consumer group, so it takes a short way (steady_session.py). Whatever
it does not recognize goes through heartbeat.py, with the same answer.
"""

from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.subscriptions import subscriptions_of
from coordinator.consumer.decide.update_regex import NO_UPDATE, is_resolution_due
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import ConsumerMemberState
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from seams.now import Now
from seams.reply_token import ReplyToken


def is_steady(
    group: ConsumerGroupView,
    request: ConsumerGroupHeartbeatRequest,
    token: ReplyToken,
    now: Now,
    context: ConsumerContext,
) -> bool:
    """The member is where it is to be, says nothing new, and its group has nothing to do.

    What such a member says it owns changes nothing. Asked before the request is validated: one
    that repeats what its member said is valid.
    """
    member = group.members.get(request.member_id)
    if member is None:
        return False
    current, metadata = member.current, member.metadata
    epoch = current.member_epoch
    return (
        request.member_epoch == epoch == group.assignment_epoch == group.epoch
        and current.state is ConsumerMemberState.STABLE
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and (request.instance_id is None or request.instance_id == metadata.instance_id)
        and (
            request.server_assignor is None
            or request.server_assignor == metadata.server_assignor in context.assignors
        )
        and (request.rack_id is None or request.rack_id == metadata.rack_id)
        and token.client_id == metadata.client_id
        and token.client_host == metadata.client_host
        and metadata.classic is None
        and not group.is_refresh_due
        and not (
            group.subscribed_regexes
            and is_resolution_due(group, subscriptions_of(group), NO_UPDATE, now, context)
        )
    )
