"""Faults of Kafka: requests that it never answers, and that Rollcall answers.

They cannot be recorded; each was seen on Apache Kafka 4.3.1 and is told in docs/differences.md.
"""

from collections.abc import Iterator

import pytest

from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.sync_group import SyncGroupResponse
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, ProducerId, TopicName
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


def test_a_marker_without_a_partition_holds_up_no_other_one(script: Script) -> None:
    """Kafka counts the markers that it skips wrongly if the last one of a request is skipped."""
    topic = script.topic()
    known = [WritableTxnMarkerTopic(TopicName(topic), [0])]
    nowhere = [WritableTxnMarkerTopic(TopicName(f"{topic}.nowhere"), [0])]
    markers = [
        WritableTxnMarker(ProducerId(5_000_000), 0, True, known),
        WritableTxnMarker(ProducerId(5_000_001), 0, True, nowhere),
    ]
    answer = script.client("a").ask(WriteTxnMarkersRequest(markers), 2)
    assert isinstance(answer, WriteTxnMarkersResponse)
    errors = {
        marker.producer_id - 5_000_000: partition.error_code
        for marker in answer.markers
        for named in marker.topics
        for partition in named.partitions
    }
    assert errors == {0: ErrorCode.NONE, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_no_transactions_get_no_partitions(script: Script) -> None:
    answer = script.client("a").ask(AddPartitionsToTxnRequest(transactions=[]), 5)
    assert isinstance(answer, AddPartitionsToTxnResponse)
    assert answer.error_code is ErrorCode.NONE
    assert not answer.results_by_transaction


def test_a_marker_has_a_producer(script: Script) -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR."""
    topics = [WritableTxnMarkerTopic(script.topic(), [0])]
    markers = [WritableTxnMarker(ProducerId(-1), 0, True, topics)]
    answer = script.client("a").ask(WriteTxnMarkersRequest(markers), 2)
    assert isinstance(answer, WriteTxnMarkersResponse)
    result = answer.markers[0].topics[0].partitions[0]
    assert result.error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_last_session_id_is_unknown_like_others(script: Script) -> None:
    """Kafka looks for it behind the last one of its caches: UNKNOWN_SERVER_ERROR."""
    request = FetchRequest(session_id=2**31 - 1, session_epoch=1)
    answer = script.client("a").ask(request, 12)
    assert isinstance(answer, FetchResponse)
    assert answer.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
