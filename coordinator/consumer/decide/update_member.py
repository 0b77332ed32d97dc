"""Update member: what a member says of itself after a heartbeat. A null field changes nothing.

Kafka's counterpart: the `maybeUpdate*` methods of `ConsumerGroupMember.Builder`.
"""

from msgspec.structs import replace

from coordinator.consumer.member import NO_REBALANCE_TIMEOUT, ConsumerMemberMetadata
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from seams.reply_token import ReplyToken


def updated_metadata(
    before: ConsumerMemberMetadata, request: ConsumerGroupHeartbeatRequest, token: ReplyToken
) -> ConsumerMemberMetadata:
    """A member that sent this request speaks the consumer protocol, whatever it spoke before."""
    timeout_ms, names = request.rebalance_timeout_ms, request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    updated = replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=token.client_id,
        client_host=token.client_host,
        subscribed_topic_names=(
            before.subscribed_topic_names if names is None else tuple(sorted(set(names)))
        ),
        subscribed_topic_regex=before.subscribed_topic_regex if regex is None else regex,
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms
        ),
        server_assignor=request.server_assignor or before.server_assignor,
        classic=None,
    )
    return with_principal(before, updated, token)


def with_principal(
    before: ConsumerMemberMetadata, updated: ConsumerMemberMetadata, token: ReplyToken
) -> ConsumerMemberMetadata:
    """It comes with a change of something else: no record has it, so after a load a member that
    goes on as before must not be written again for it."""
    principal = token.named_principal
    if principal == before.principal or updated == before:
        return updated
    return replace(updated, principal=principal)
