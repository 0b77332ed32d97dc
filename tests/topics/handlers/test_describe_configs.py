"""DescribeConfigs of very many resources: looked at once where they agree, and within a size."""

import pytest

from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.names import ErrorCode
from tests.topics.plane import Plane
from topics.configs import TopicConfigs
from topics.handlers.describe_configs import ConfigResourceType


def describe(plane: Plane, *names: str) -> DescribeConfigsResponse:
    resources = [DescribeConfigsResource(ConfigResourceType.TOPIC, name) for name in names]
    request = DescribeConfigsRequest(resources, include_synonyms=True, include_documentation=True)
    return plane.ask(request, 4, DescribeConfigsResponse)


def test_topics_with_the_same_configs_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand topics each took half a millisecond, and longer for others to be heard."""
    plane = Plane()
    names = [plane.given(f"t{n}") for n in range(20)]
    own = plane.given("own", retention_ms="77")
    calls: list[object] = []
    entries = TopicConfigs.entries
    monkeypatch.setattr(
        TopicConfigs,
        "entries",
        lambda self, overrides: calls.append(overrides) or entries(self, overrides),
    )
    results = describe(plane, *names, own, *names).results
    assert len(calls) == 2
    assert [result.resource_name for result in results] == [*names, own, *names]
    values = [{config.name: config.value for config in result.configs} for result in results]
    assert values[0] == values[-1]
    assert values[0] | {"retention.ms": "77"} == values[20]


def test_an_answer_has_an_end_however_often_a_topic_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("protocol.answer_budget.ANSWER_BYTES_MAX", 100_000)
    plane = Plane()
    name = plane.given("t")
    errors = [result.error_code for result in describe(plane, *[name] * 1_000).results]
    refused_from = errors.index(ErrorCode.INVALID_REQUEST)
    assert 5 < refused_from < 50
    assert set(errors[refused_from:]) == {ErrorCode.INVALID_REQUEST}
