"""Refusal: why a consumer group heartbeat is not served, and its answer.

The texts are Kafka's. A decision returns a refusal in the place of its result.
"""

from typing import Final, NamedTuple

from coordinator.consumer.events import ConsumerEvent
from coordinator.outcome import Outcome, Reply
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.names import ErrorCode, GroupId
from protocol.primitives import echoed
from seams.reply_token import ReplyToken

_TEXTS: Final = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "The coordinator is loading and hence can't process requests."
    ),
}
"""Of errors that need no more than their name; Kafka answers the others without a text."""


class Refusal(NamedTuple):
    """`happened`: what the refusal shows of the group, for the log and the history."""

    error_code: ErrorCode
    text: str | None = None
    happened: tuple[ConsumerEvent, ...] = ()


def refuse_heartbeat(
    error_code: ErrorCode, text: str | None = None
) -> ConsumerGroupHeartbeatResponse:
    """Everything but the error is empty, as in Kafka."""
    if text is None:
        return ConsumerGroupHeartbeatResponse(
            error_code=error_code, error_message=_TEXTS.get(error_code)
        )
    return ConsumerGroupHeartbeatResponse(error_code=error_code, error_message=echoed(text))


def refused_outcome(token: ReplyToken, refusal: Refusal) -> Outcome:
    answer = refuse_heartbeat(refusal.error_code, refusal.text)
    return Outcome(replies=(Reply(token, answer),), events=refusal.happened)


def group_not_found(group_id: GroupId, *, joining: bool) -> Refusal:
    kind = "Consumer group" if joining else "Group"
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")
