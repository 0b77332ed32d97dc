"""Faults of Kafka: requests that it never answers, and that Rollcall answers.

They cannot be recorded; each was seen on Apache Kafka 4.3.1 and is told in docs/differences.md.
"""

from collections.abc import Iterator

import pytest

from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ZERO_TOPIC_ID, ErrorCode
from tests.compare.client import topics
from tests.compare.script import Script
from tests.compare.servers import rollcall

pytestmark = pytest.mark.xdist_group("compare")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with rollcall("plain", tmp_path_factory.mktemp("faults")) as broker:
        yield broker.port


@pytest.fixture
def script(request: pytest.FixtureRequest, port: int) -> Iterator[Script]:
    script = Script(request.node.name, port)
    yield script
    script.close()


def test_a_subscription_that_cannot_be_read_holds_nobody_up(script: Script) -> None:
    """Kafka's join timer fails on the size of the topics array, and nobody ever asks again."""
    a = script.client("a")
    a.enter(protocols=(("range", b"no subscription at all"),))
    assert isinstance(a.last, JoinGroupResponse)
    assert a.last.error_code is ErrorCode.NONE
    assert a.last.members[0].metadata == b"no subscription at all"
    a.sync({a: b"x"})
    assert isinstance(a.last, SyncGroupResponse)
    assert a.last.assignment == b"x"


def test_a_protocol_offered_twice_counts_once(script: Script) -> None:
    """Kafka counts votes for names but members for support, finds no common name, and hangs."""
    a = script.client("a")
    a.enter(protocols=(("range", topics("one")), ("range", topics("two"))))
    assert isinstance(a.last, JoinGroupResponse)
    assert a.last.error_code is ErrorCode.NONE
    assert a.last.protocol_name == "range"


def test_null_records_are_refused(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    data = PartitionProduceData(0, None)
    request = ProduceRequest(None, -1, 10_000, [TopicProduceData(topic, ZERO_TOPIC_ID, [data])])
    answer = a.ask(request, 9)
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code is not ErrorCode.NONE
