"""Error codes: they are counted wherever they are in an answer."""

from typing import Any

from broker.net.error_codes import errors_in
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.fetch import FetchResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.messages.offset_fetch import (
    CommittedPartitions,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.names import ErrorCode


def test_at_the_top() -> None:
    assert errors_in(HeartbeatResponse()) == []
    assert errors_in(HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)) == [82]


def test_in_partitions() -> None:
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                partitions=[
                    OffsetCommitResponsePartition(0, ErrorCode.NONE),
                    OffsetCommitResponsePartition(1, ErrorCode.ILLEGAL_GENERATION),
                ]
            ),
            OffsetCommitResponseTopic(
                partitions=[OffsetCommitResponsePartition(0, ErrorCode.ILLEGAL_GENERATION)]
            ),
        ]
    )
    assert errors_in(response) == [22, 22]


def test_at_several_depths_at_once() -> None:
    response = MetadataResponse(
        error_code=ErrorCode.REBOOTSTRAP_REQUIRED,
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                partitions=[MetadataResponsePartition(error_code=ErrorCode.LEADER_NOT_AVAILABLE)],
            )
        ],
    )
    assert sorted(errors_in(response)) == [5, 100, 129]


def test_the_codes_of_every_response_can_be_collected() -> None:
    assert errors_in(ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION)) == [35]
    assert errors_in(FetchResponse()) == []


def test_partitions_that_were_committed_have_none_and_others_of_the_answer_count() -> None:
    refused = OffsetFetchResponsePartitions(0, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
    committed: Any = CommittedPartitions((0,), [None])
    topics = [
        OffsetFetchResponseTopics(partitions=committed),
        OffsetFetchResponseTopics(partitions=[refused]),
    ]
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(topics=topics)])
    assert errors_in(response) == [100]
