"""Steady session: the fast path of a consumer group heartbeat that changes nothing.

Moves one number, the session deadline of the member, and builds the answer. It makes no event and
no record. Called by `Shard.consumer_group_heartbeat`.
"""

from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.steady_heartbeat import is_steady
from coordinator.consumer.group import ConsumerGroup
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from seams.now import Now
from seams.reply_token import ReplyToken


def answer_steady(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    token: ReplyToken,
    now: Now,
    context: ConsumerContext,
) -> ConsumerGroupHeartbeatResponse | None:
    """None: the heartbeat needs a turn, also to end the session earlier than was said before."""
    if not is_steady(group, request, token, now, context):
        return None
    member = group.members[request.member_id]
    configs = context.configs
    deadline_ms = now.mono_ms + configs.session_timeout_ms(group.group_id)
    if deadline_ms < member.session_deadline_ms:
        return None
    member.session_deadline_ms = deadline_ms
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        heartbeat_interval_ms=configs.heartbeat_interval_ms(group.group_id),
    )
