"""DeleteTopics (api key 20): remove these topics, named by name or, since v6, by id.

Version notes: v4 flexible; v5 error_message; v6 `topics` (name or id) replaces `topic_names`.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ZERO_TOPIC_ID, ApiKey, ErrorCode, TopicId, TopicName
from protocol.schema import (
    ERROR_CODE,
    INT32,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
    until,
)


class DeleteTopicState(Struct):
    name: Annotated[TopicName | None, nullable(STRING)] = None
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID


class DeleteTopicsRequest(Message):
    API_KEY: ClassVar = ApiKey.DELETE_TOPICS
    VERSIONS: ClassVar = range(1, 7)
    FLEXIBLE_SINCE: ClassVar = 4

    topics: Annotated[Sequence[DeleteTopicState], since(array(DeleteTopicState), 6)] = ()
    topic_names: Annotated[Sequence[TopicName], until(array(STRING), 5, ignorable=True)] = ()
    timeout_ms: Annotated[int, INT32] = 0


class DeletableTopicResult(Struct):
    name: Annotated[TopicName | None, nullable(STRING, since=6)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 6, ignorable=True)] = ZERO_TOPIC_ID
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, since(STRING, 5, nullable=True, ignorable=True)] = None


class DeleteTopicsResponse(Message):
    API_KEY: ClassVar = ApiKey.DELETE_TOPICS
    VERSIONS: ClassVar = range(1, 7)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: Annotated[int, INT32] = 0
    responses: Annotated[Sequence[DeletableTopicResult], array(DeletableTopicResult)] = ()
