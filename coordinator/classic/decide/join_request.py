"""JoinGroup request: what it offers, the same for all versions."""

from coordinator.classic.decide.join_answers import refuse_join
from coordinator.classic.events import Protocols
from coordinator.classic.group_view import ClassicMemberView
from coordinator.outcome import Reply
from protocol.messages.join_group import JoinGroupRequest
from protocol.names import ErrorCode
from seams.reply_token import ReplyToken


def offered_protocols(request: JoinGroupRequest, kept: Protocols = ()) -> Protocols:
    """If it offers the same as `kept`, it is that object: a large group keeps few of them."""
    offered = tuple([(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols])
    return kept if offered == kept else offered


def rebalance_timeout_ms(request: JoinGroupRequest, token: ReplyToken) -> int:
    """Version 0 has no rebalance timeout: its session timeout serves for both."""
    return request.session_timeout_ms if token.api_version < 1 else request.rebalance_timeout_ms


def join_reason(request: JoinGroupRequest) -> str:
    """The client's own words, as Kafka logs them."""
    return request.reason or "not provided"


def supersede_join(member: ClassicMemberView) -> tuple[Reply, ...]:
    """Answer the join that a newer one of the same member takes the place of, if there is one.

    Kafka differs: it forgets the older request. Its client has most often gone away; if it has not,
    it is to join again rather than wait forever on a connection that serves nothing else.
    """
    if member.awaiting_join is None:
        return ()
    return (refuse_join(member.awaiting_join, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id),)
