"""Fetch session client: one client of the data plane that fetches in a session, for tests."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicId, TopicName
from seams.reply_token import ReplyToken
from tests.topics.batches import offsets_of
from tests.topics.plane import MEBIBYTE, Plane

Key = tuple[str | TopicId, int]
"""A partition, by the topic's name or its id."""


class Answered(NamedTuple):
    """One partition of an answer, in the terms of a test."""

    key: Key
    error_code: ErrorCode
    high_watermark: int
    offsets: tuple[int, ...]


def topics_of(asked: Mapping[Key, FetchPartition]) -> list[FetchTopic]:
    return [FetchTopic(*_named(topic), [partition]) for (topic, _), partition in asked.items()]


def _named(topic: str | TopicId) -> tuple[TopicName, TopicId]:
    if isinstance(topic, str):
        return TopicName(topic), ZERO_TOPIC_ID
    return TopicName(""), topic


def at(index: int, offset: int = 0, max_bytes: int = MEBIBYTE) -> FetchPartition:
    return FetchPartition(index, fetch_offset=offset, partition_max_bytes=max_bytes)


def send(
    plane: Plane,
    session_id: int,
    epoch: int,
    asked: Mapping[Key, FetchPartition] | None = None,
    forgotten: Sequence[Key] = (),
    *,
    version: int = 12,
    max_wait_ms: int = 0,
    max_bytes: int = 50 * MEBIBYTE,
    isolation_level: int = 0,
) -> ReplyToken:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics_of(asked or {}),
        forgotten_topics_data=[
            ForgottenTopic(*_named(topic), [index]) for topic, index in forgotten
        ],
    )
    return plane.send(request, version)


def answer_to(plane: Plane, token: ReplyToken) -> FetchResponse:
    response = plane.answers[token]
    assert isinstance(response, FetchResponse)
    return response


def ask(plane: Plane, *args: object, **options: object) -> FetchResponse:
    """`send`, answered at once."""
    return answer_to(plane, send(plane, *args, **options))  # type: ignore[arg-type]


def data_of(response: FetchResponse) -> list[tuple[Key, PartitionData]]:
    return [
        ((topic.topic or topic.topic_id, data.partition_index), data)
        for topic in response.responses
        for data in topic.partitions
    ]


def answered(response: FetchResponse) -> list[Answered]:
    return [
        Answered(key, data.error_code, data.high_watermark, tuple(offsets_of(data.records or b"")))
        for key, data in data_of(response)
    ]
