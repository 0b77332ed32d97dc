"""Group rights: which requests are refused before the coordinator looks at them.

Of a request about one group the right on the group is asked for first, whether the group is there,
loading, or coordinated elsewhere; of a transactional commit the right on the transactional id even
before that. Rights on topics, and those of requests about many groups, are asked for where their
answers are made. Without ACLs the handlers are left alone. Kafka's counterpart: the handlers of
`KafkaApis`.
"""

from collections.abc import Mapping
from typing import Final, cast

from coordinator.offsets.offset_commit import forbid_offset_commit
from coordinator.offsets.txn_offset_commit import forbid_txn_offset_commit
from coordinator.pending_answers import Send
from coordinator.refusals import GroupRequest, refuse
from protocol.messages import Request, Response
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.sync_group import SyncGroupRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from protocol.names import ApiKey, ErrorCode, TransactionalId
from seams.authorizer import Authorizer
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView

PROTOCOL_NEEDED_SINCE: Final = 5
"""KIP-559: from this version on a SyncGroup has to say which protocol it is about."""

_READ: Final = (
    ApiKey.HEARTBEAT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.TXN_OFFSET_COMMIT,
)
"""ConsumerGroupHeartbeat is not here: it is refused first where its protocol is turned off."""


def with_rights(
    handlers: Mapping[ApiKey, Handler], authorizer: Authorizer, topics: TopicsView, reply: Send
) -> Mapping[ApiKey, Handler]:
    """The handlers, each behind the question whether the client may ask."""
    if not authorizer.is_enabled:
        return handlers
    may = {**dict.fromkeys(_READ, authorizer.may_read_group)}
    may[ApiKey.OFFSET_DELETE] = authorizer.may_delete_group

    def checked(api_key: ApiKey, handler: Handler) -> Handler:
        may_ask = may.get(api_key)
        if may_ask is None:
            return handler

        def check(request: Request, token: ReplyToken, now: Now) -> None:
            asked = cast("GroupRequest", request)
            refusal = _forbidden_id(asked, token, authorizer)
            if refusal is None and lacks_protocol(asked, token):
                refusal = refuse(
                    asked, token, topics, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, authorizer
                )
            if refusal is None and not may_ask(token, asked.group_id):
                refusal = _forbidden_group(asked, token, topics, authorizer)
            if refusal is None:
                handler(request, token, now)
            else:
                reply(token, refusal)

        return check

    return {api_key: checked(api_key, handler) for api_key, handler in handlers.items()}


def lacks_protocol(request: GroupRequest, token: ReplyToken) -> bool:
    """A SyncGroup that does not say what it must: refused even before authorization."""
    return (
        isinstance(request, SyncGroupRequest)
        and token.api_version >= PROTOCOL_NEEDED_SINCE
        and (request.protocol_type is None or request.protocol_name is None)
    )


def _forbidden_id(
    request: GroupRequest, token: ReplyToken, authorizer: Authorizer
) -> Response | None:
    if not isinstance(request, TxnOffsetCommitRequest):
        return None
    if authorizer.may_write_transactional_id(token, TransactionalId(request.transactional_id)):
        return None
    return forbid_txn_offset_commit(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _forbidden_group(
    request: GroupRequest, token: ReplyToken, topics: TopicsView, authorizer: Authorizer
) -> Response:
    """A commit is refused as a whole: what does not exist is not named as such."""
    error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    match request:
        case OffsetCommitRequest():
            return forbid_offset_commit(request, error_code)
        case TxnOffsetCommitRequest():
            return forbid_txn_offset_commit(request, error_code)
        case _:
            return refuse(request, token, topics, error_code, authorizer)
