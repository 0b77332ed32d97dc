"""Answers about many groups: they have an end, however often a request names one."""

import pytest

from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.names import ErrorCode, GroupId, TopicName
from tests.world import World

G = GroupId("g")


def test_a_large_group_that_is_named_over_and_over_is_described_as_long_as_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of 40 KB was an answer of two gigabytes."""
    monkeypatch.setattr("protocol.answer_budget.ANSWER_BYTES_MAX", 1_000_000)
    world.given_stable_group(members=10, protocols=(("range", b"s" * 10_000),))
    answer = world.ask(DescribeGroupsRequest([G] * 20_000), version=6).response
    assert isinstance(answer, DescribeGroupsResponse)
    errors = [group.error_code for group in answer.groups]
    assert errors == [ErrorCode.NONE] * 9 + [ErrorCode.INVALID_REQUEST] * 19_991


def test_offsets_are_returned_as_long_as_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protocol.answer_budget.ANSWER_BYTES_MAX", 100_000)
    world.commit("g", offsets=dict.fromkeys(range(100), 1))
    everything = OffsetFetchRequestGroup(G, topics=None)
    answer = world.ask(OffsetFetchRequest(groups=[everything] * 1_000), version=9).response
    assert isinstance(answer, OffsetFetchResponse)
    errors = [group.error_code for group in answer.groups]
    refused_from = errors.index(ErrorCode.INVALID_REQUEST)
    assert 20 < refused_from < 100
    assert set(errors[refused_from:]) == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize(
    ("times", "expected"), [(900, ErrorCode.NONE), (10_000, ErrorCode.INVALID_REQUEST)]
)
def test_a_partition_that_is_named_over_and_over_needs_room_too(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int, expected: ErrorCode
) -> None:
    monkeypatch.setattr("protocol.answer_budget.ANSWER_BYTES_MAX", 100_000)
    world.commit("g")
    topic = OffsetFetchRequestTopics(TopicName("t"), partition_indexes=[0] * times)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, topics=[topic])])
    answer = world.ask(request, version=9).response
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.groups[0].error_code is expected
