"""Authorized records: Produce and Fetch of a client that may use some of the topics only."""

import pytest

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ErrorCode, TopicName
from storage.batch.record_batch import TRANSACTIONAL_FLAG
from tests.topics.batches import batch, damaged
from tests.topics.plane import Plane
from tests.topics.rights import Right, Rights, cluster_right, topic_right
from tests.topics.session_client import Answered, answer_to, answered, ask, at, send

FORBIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NONE = ErrorCode.NONE
READ_A = topic_right(AclOperation.READ, "a")
READ_B = topic_right(AclOperation.READ, "b")
TRANSACTION = Right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "t")
REFUSED_A = Answered(("a", 0), FORBIDDEN, -1, ())


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
def plane(rights: Rights) -> Plane:
    """With two topics, a and b, of one record each."""
    plane = Plane(authorizer=rights)
    rights.grant_all()
    for name in ("a", "b"):
        plane.given(name)
        plane.given_records(name, 1)
    rights.granted = set()
    return plane


def produce(plane: Plane, *names: str, acks: int = -1) -> ProduceRequest:
    data = [
        TopicProduceData(TopicName(name), partition_data=(PartitionProduceData(0, plane.batch()),))
        for name in names
    ]
    return ProduceRequest(None, acks, 1_000, data)


def transactional(plane: Plane) -> bytes:
    sound = batch(timestamp=plane.now.wall_ms, producer_id=7, producer_epoch=0, sequence=0)
    return damaged(sound, attributes=TRANSACTIONAL_FLAG)


# Produce


def test_a_refused_topic_does_not_stop_the_others(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.WRITE, "b")}

    answer = plane.ask(produce(plane, "a", "b"), 9, ProduceResponse)

    codes = [topic.partition_responses[0].error_code for topic in answer.responses]
    assert codes == [FORBIDDEN, NONE]
    assert (plane.log("a").log_end_offset, plane.log("b").log_end_offset) == (1, 2)
    assert answer.responses[0].partition_responses[0].error_message is None
    assert answer.responses[0].partition_responses[0].log_start_offset == -1


def test_a_refused_produce_that_wants_no_answer_closes_the_connection(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.WRITE, "b")}

    refused = plane.send(produce(plane, "a", "b", acks=0), 9)
    allowed = plane.send(produce(plane, "b", acks=0), 9)

    assert plane.closed_connections == [refused]
    assert plane.answers[allowed] is None
    assert (plane.log("a").log_end_offset, plane.log("b").log_end_offset) == (1, 3)


def test_an_unknown_id_names_no_topic_that_could_be_forbidden(plane: Plane) -> None:
    unknown = type(plane.topic_id("a"))(int=999)

    result = plane.produce("", topic_id=unknown, version=13)

    assert result.error_code is ErrorCode.UNKNOWN_TOPIC_ID


def test_bytes_that_are_no_batch_need_no_transactional_id(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.WRITE, "a")}

    for records in (b"", b"\0" * 61, b"no batch"):
        result = plane.produce("a", records, transactional_id="t")
        assert result.error_code is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_the_right_on_a_transactional_id_is_needed_for_transactional_batches_only(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.WRITE, "a")}

    plain = plane.produce("a", transactional_id="t")
    refused = plane.produce("a", transactional(plane), transactional_id="t")
    unnamed = plane.produce("a", transactional(plane))

    assert plain.error_code is NONE
    assert refused.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert unnamed.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert rights.logged == [TRANSACTION]


def test_a_refused_transaction_that_wants_no_answer_closes_the_connection(plane: Plane) -> None:
    token = plane.send_records("a", transactional(plane), acks=0, transactional_id="t")

    assert plane.closed_connections == [token]


# Fetch


def test_a_forbidden_topic_is_not_read(plane: Plane, rights: Rights) -> None:
    rights.granted = {READ_B}

    answer = ask(plane, 0, -1, {("a", 0): at(0), ("b", 0): at(0)})

    assert answered(answer) == [Answered(("b", 0), NONE, 1, (0,)), REFUSED_A]
    assert rights.logged == [READ_A]


def test_a_fetch_of_forbidden_topics_alone_does_not_wait(plane: Plane) -> None:
    token = send(plane, 0, -1, {("a", 0): at(0, 1)}, max_wait_ms=5_000)

    assert answered(answer_to(plane, token)) == [REFUSED_A]


def test_a_session_has_no_data_of_a_forbidden_topic(plane: Plane, rights: Rights) -> None:
    rights.granted = {READ_B}
    first = ask(plane, 0, 0, {("a", 0): at(0), ("b", 0): at(0, 1)})
    assert answered(first) == [Answered(("b", 0), NONE, 1, ()), REFUSED_A]

    # It is refused each time, although the request does not name it.
    assert answered(ask(plane, first.session_id, 1)) == [REFUSED_A]

    rights.granted = {READ_A, READ_B}
    assert answered(ask(plane, first.session_id, 2)) == [Answered(("a", 0), NONE, 1, (0,))]

    rights.granted = {READ_B}
    assert answered(ask(plane, first.session_id, 3)) == [REFUSED_A]


def test_a_right_that_is_taken_away_has_an_effect_on_a_session_by_id(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {READ_A}
    topic_id = plane.topic_id("a")
    first = ask(plane, 0, 0, {(topic_id, 0): at(0)}, version=16)
    assert answered(first) == [Answered((topic_id, 0), NONE, 1, (0,))]

    rights.granted = set()
    refused = answered(ask(plane, first.session_id, 1, version=16))

    assert refused == [Answered((topic_id, 0), FORBIDDEN, -1, ())]


def test_a_fetch_that_waits_is_refused_when_its_right_is_gone(plane: Plane, rights: Rights) -> None:
    rights.granted = {READ_A}
    token = plane.park_fetch("a", 1, max_wait_ms=5_000)
    assert not plane.answered(token)

    rights.granted = {topic_right(AclOperation.WRITE, "a")}
    plane.produce("a")

    assert plane.fetched(token).error_code is FORBIDDEN
    assert not plane.fetched(token).records
    assert rights.logged == [], "the refusal of a request is logged when it arrives"


def test_a_broker_needs_the_right_on_the_cluster(plane: Plane, rights: Rights) -> None:
    codes = []
    for granted in ({READ_A}, {cluster_right(AclOperation.CLUSTER_ACTION)}):
        rights.granted = set(granted)
        asked = FetchTopic(TopicName("a"), partitions=(at(0),))
        answer = plane.ask(FetchRequest(replica_id=2, topics=(asked,)), 12, FetchResponse)
        codes.append(answer.responses[0].partitions[0].error_code)

    # There is one replica, so no broker has anything to fetch.
    assert codes == [FORBIDDEN, ErrorCode.NOT_LEADER_OR_FOLLOWER]
