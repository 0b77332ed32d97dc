"""Fetch sessions: what an incremental request reads, and which partitions its answer has."""

import pytest

from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.fetch import FetchPartition, PartitionData
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicName
from tests.topics.batches import offsets_of
from tests.topics.plane import Plane
from tests.topics.session_client import (
    Answered,
    Key,
    answer_to,
    answered,
    ask,
    at,
    data_of,
    send,
)
from tests.topics.transactions import Transactions
from topics.fetch_session import CachedPartition, RequestedPartition
from topics.settings import TopicSettings

NONE = ErrorCode.NONE


@pytest.fixture
def plane() -> Plane:
    """A topic of two partitions; the first has two records."""
    plane = Plane()
    plane.given("a", 2)
    plane.given_records("a", 2)
    return plane


def opened(plane: Plane, *keys: Key, offset: int = 2, version: int = 12) -> int:
    """The id of a session that has read the first partition."""
    keys = keys or (("a", 0), ("a", 1))
    asked = {key: at(key[1], offset if key[1] == 0 else 0) for key in keys}
    answer = ask(plane, 0, 0, asked, version=version)
    assert answer.session_id > 0
    return answer.session_id


def delete(plane: Plane, name: str) -> None:
    request = DeleteTopicsRequest((DeleteTopicState(TopicName(name)),))
    plane.ask(request, 6, DeleteTopicsResponse)


def test_a_full_request_gets_all_partitions_and_a_session(plane: Plane) -> None:
    answer = ask(plane, 0, 0, {("a", 0): at(0), ("a", 1): at(1), ("b", 0): at(0)})
    assert (answer.error_code, answer.session_id > 0) == (NONE, True)
    assert answered(answer) == [
        Answered(("a", 0), NONE, 2, (0, 1)),
        Answered(("a", 1), NONE, 0, ()),
        Answered(("b", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, ()),
    ]
    assert len(plane.data.fetch_sessions) == 1


@pytest.mark.parametrize("session_id", [0, 55, -5])
def test_with_epoch_minus_one_there_is_no_session(plane: Plane, session_id: int) -> None:
    answer = ask(plane, session_id, -1, {("a", 1): at(1)})
    assert (answer.error_code, answer.session_id) == (NONE, 0)
    assert answered(answer) == [Answered(("a", 1), NONE, 0, ())]
    assert len(plane.data.fetch_sessions) == 0


@pytest.mark.parametrize("version", range(4, 7))
def test_versions_without_sessions_open_none(plane: Plane, version: int) -> None:
    assert ask(plane, 0, -1, {("a", 1): at(1)}, version=version).session_id == 0
    assert len(plane.data.fetch_sessions) == 0


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_closes_the_session_that_it_names(plane: Plane, epoch: int) -> None:
    session_id = opened(plane)
    answer = ask(plane, session_id, epoch, {("a", 1): at(1)})
    assert answer.error_code is NONE
    assert (answer.session_id > 0) == (epoch == 0)
    assert answer.session_id != session_id
    assert ask(plane, session_id, 1).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(("session_id", "epoch"), [(55, 1), (0, 1), (55, -5), (-5, 3)])
def test_an_unknown_session_is_refused_at_once(plane: Plane, session_id: int, epoch: int) -> None:
    answer = ask(plane, session_id, epoch, {("a", 0): at(0)}, max_wait_ms=500)
    assert answer.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (answer.session_id, answer.responses) == (0, ())


@pytest.mark.parametrize("epoch", [2, 7, -5, 2_147_483_647])
def test_another_epoch_is_refused_and_the_session_lives_on(plane: Plane, epoch: int) -> None:
    session_id = opened(plane)
    answer = ask(plane, session_id, epoch, {("a", 0): at(0)})
    assert answer.error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (answer.session_id, answer.responses) == (0, ())
    assert ask(plane, session_id, 1).responses == ()  # the refused offset was not stored


def test_an_epoch_is_used_up_by_the_request_that_is_accepted(plane: Plane) -> None:
    session_id = opened(plane)
    for epoch in (1, 2, 3):
        assert ask(plane, session_id, epoch).error_code is NONE
    assert ask(plane, session_id, 3).error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_epoch_after_the_largest_is_one(plane: Plane) -> None:
    session_id = opened(plane)
    plane.data.fetch_sessions._sessions[session_id].epoch = 2_147_483_647
    assert ask(plane, session_id, 2_147_483_647).error_code is NONE
    assert ask(plane, session_id, 1).error_code is NONE


@pytest.mark.parametrize("by_id", [False, True])
def test_names_and_ids_do_not_mix_in_one_session(plane: Plane, *, by_id: bool) -> None:
    key = (plane.topic_id("a") if by_id else "a", 1)
    session_id = opened(plane, key, version=13 if by_id else 12)
    answer = ask(plane, session_id, 1, version=12 if by_id else 13)
    assert answer.error_code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert (answer.session_id, answer.responses) == (0, ())
    assert ask(plane, session_id, 1, version=13 if by_id else 12).error_code is NONE


# What is in an answer


def test_an_unchanged_partition_is_not_in_the_answer(plane: Plane) -> None:
    session_id = opened(plane)
    answer = ask(plane, session_id, 1)
    assert (answer.error_code, answer.session_id, answer.responses) == (NONE, session_id, ())


def test_records_are_sent_again_until_the_client_asks_for_a_later_offset(plane: Plane) -> None:
    session_id = opened(plane, offset=0)
    records = Answered(("a", 0), NONE, 2, (0, 1))
    assert answered(ask(plane, session_id, 1)) == [records]
    assert answered(ask(plane, session_id, 2)) == [records]
    assert answered(ask(plane, session_id, 3, {("a", 0): at(0, 1)})) == [
        Answered(("a", 0), NONE, 2, (1,))
    ]
    assert answered(ask(plane, session_id, 4, {("a", 0): at(0, 2)})) == []


def test_new_records_are_an_answer_of_their_partition_alone(plane: Plane) -> None:
    session_id = opened(plane)
    plane.given_records("a", 1, 1)
    assert answered(ask(plane, session_id, 1)) == [Answered(("a", 1), NONE, 1, (0,))]


def test_a_new_high_watermark_is_sent_once(plane: Plane) -> None:
    session_id = opened(plane)
    plane.given_records("a", 1, 1)
    # The limit is used up by the first partition: of the second only the watermark is new.
    asked = {("a", 0): at(0, 0)}
    assert answered(ask(plane, session_id, 1, asked, max_bytes=1)) == [
        Answered(("a", 0), NONE, 2, (0,)),
        Answered(("a", 1), NONE, 1, ()),
    ]


def test_a_new_log_start_is_sent_once(plane: Plane) -> None:
    session_id = opened(plane)
    plane.log("a").delete_before(1)
    assert answered(ask(plane, session_id, 1)) == [Answered(("a", 0), NONE, 2, ())]
    assert answered(ask(plane, session_id, 2)) == []


def test_an_error_is_sent_every_time_and_the_recovery_once(plane: Plane) -> None:
    session_id = opened(plane, ("a", 1), ("b", 0))
    unknown = Answered(("b", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, ())
    assert answered(ask(plane, session_id, 1)) == [unknown]
    assert answered(ask(plane, session_id, 2)) == [unknown]
    plane.given("b")
    asked = {("b", 0): at(0)}
    assert answered(ask(plane, session_id, 3, asked)) == [Answered(("b", 0), NONE, 0, ())]
    assert answered(ask(plane, session_id, 4)) == []


def test_a_partition_that_recovered_unchanged_is_sent(plane: Plane) -> None:
    session_id = opened(plane)
    asked = {("a", 0): FetchPartition(0, 9, 2)}
    error = Answered(("a", 0), ErrorCode.UNKNOWN_LEADER_EPOCH, -1, ())
    assert answered(ask(plane, session_id, 1, asked)) == [error]
    asked = {("a", 0): FetchPartition(0, 0, 2)}
    assert answered(ask(plane, session_id, 2, asked)) == [Answered(("a", 0), NONE, 2, ())]
    assert answered(ask(plane, session_id, 3)) == []


def test_a_diverging_epoch_is_sent_every_time(plane: Plane) -> None:
    plane.log("a").leader_epoch = 2
    plane.given_records("a", 2)
    session_id = opened(plane, offset=4)
    asked = {("a", 0): FetchPartition(0, fetch_offset=3, last_fetched_epoch=1)}
    for epoch in (1, 2):
        answer = ask(plane, session_id, epoch, asked)
        assert answered(answer) == [Answered(("a", 0), NONE, 4, ())]
        assert answer.responses[0].partitions[0].diverging_epoch is not None
        asked = {}


def test_an_added_partition_is_sent_the_first_time(plane: Plane) -> None:
    session_id = opened(plane, ("a", 0))
    assert answered(ask(plane, session_id, 1, {("a", 1): at(1)})) == [
        Answered(("a", 1), NONE, 0, ())
    ]
    assert answered(ask(plane, session_id, 2)) == []


def test_partitions_with_records_go_to_the_end_of_the_order(plane: Plane) -> None:
    plane.given_records("a", 2, 1)
    session_id = opened(plane, offset=0)
    for epoch, first in ((1, 0), (2, 1), (3, 0)):
        answer = ask(plane, session_id, epoch, max_bytes=1)
        assert [(data.key, data.offsets) for data in answered(answer)] == [(("a", first), (0,))]


# Removing partitions


def test_a_forgotten_partition_is_not_read(plane: Plane) -> None:
    session_id = opened(plane)
    plane.given_records("a", 1, 1)
    assert answered(ask(plane, session_id, 1, forgotten=[("a", 1), ("a", 9), ("z", 0)])) == []
    assert plane.data.fetch_sessions.partitions == 1


def test_a_partition_that_is_both_changed_and_forgotten_is_gone(plane: Plane) -> None:
    session_id = opened(plane)
    asked = {("a", 0): at(0, 0)}
    assert answered(ask(plane, session_id, 1, asked, forgotten=[("a", 0)])) == []


def test_the_last_forgotten_partition_closes_the_session(plane: Plane) -> None:
    session_id = opened(plane)
    answer = ask(plane, session_id, 1, forgotten=[("a", 0), ("a", 1)], max_wait_ms=500)
    assert (answer.error_code, answer.session_id, answer.responses) == (NONE, 0, ())
    assert ask(plane, session_id, 2).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(plane.data.fetch_sessions), plane.data.fetch_sessions.partitions) == (0, 0)


# Deleted and recreated topics: as seen of Kafka 4.3.1


def test_a_session_of_names_reads_the_recreated_topic(plane: Plane) -> None:
    session_id = opened(plane, offset=0)
    delete(plane, "a")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    gone = [Answered(("a", 0), unknown, -1, ()), Answered(("a", 1), unknown, -1, ())]
    assert answered(ask(plane, session_id, 1)) == gone
    plane.given("a", 2)
    new = [Answered(("a", 0), NONE, 0, ()), Answered(("a", 1), NONE, 0, ())]
    assert answered(ask(plane, session_id, 2)) == new
    assert answered(ask(plane, session_id, 3)) == []


def test_a_session_of_ids_does_not_read_the_recreated_topic(plane: Plane) -> None:
    old_id = plane.topic_id("a")
    session_id = opened(plane, (old_id, 0), (old_id, 1), offset=0, version=13)
    plane.fetch("a")
    delete(plane, "a")
    for epoch, error_code in (
        (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, ErrorCode.INCONSISTENT_TOPIC_ID),
    ):
        answer = ask(plane, session_id, epoch, version=13)
        assert {(data.key, data.error_code) for data in answered(answer)} == {
            ((old_id, 0), error_code),
            ((old_id, 1), error_code),
        }
        if epoch == 1:
            plane.given("a", 2)
    new_id = plane.topic_id("a")
    forgotten = [(old_id, 0), (old_id, 1)]
    answer = ask(plane, session_id, 3, {(new_id, 0): at(0)}, forgotten, version=13)
    assert answered(answer) == [Answered((new_id, 0), NONE, 0, ())]


def test_an_unknown_id_is_resolved_once_its_topic_exists(plane: Plane) -> None:
    next_id = plane._next_id()
    plane._ids -= 1
    session_id = opened(plane, (plane.topic_id("a"), 1), (next_id, 0), version=13)
    unknown = Answered((next_id, 0), ErrorCode.UNKNOWN_TOPIC_ID, -1, ())
    assert answered(ask(plane, session_id, 1, version=13)) == [unknown]
    plane.given("b")
    answer = ask(plane, session_id, 2, {(next_id, 0): at(0)}, version=13)
    assert answered(answer) == [Answered((next_id, 0), NONE, 0, ())]


# Waiting, and requests that overlap


def test_an_incremental_fetch_waits_for_partitions_that_it_does_not_name(plane: Plane) -> None:
    session_id = opened(plane)
    token = send(plane, session_id, 1, max_wait_ms=500)
    plane.advance(499)
    assert not plane.answered(token)
    plane.given_records("a", 1, 1)
    assert answered(answer_to(plane, token)) == [Answered(("a", 1), NONE, 1, (0,))]


def test_an_incremental_fetch_whose_time_is_up_has_nothing(plane: Plane) -> None:
    session_id = opened(plane)
    token = send(plane, session_id, 1, max_wait_ms=500)
    plane.advance(500)
    assert answered(answer_to(plane, token)) == []


def test_a_request_that_is_overtaken_while_it_waits_is_refused(plane: Plane) -> None:
    session_id = opened(plane)
    token = send(plane, session_id, 1, max_wait_ms=500)
    assert answered(ask(plane, session_id, 2, {("a", 0): at(0, 1)})) == [
        Answered(("a", 0), NONE, 2, (1,))
    ]
    plane.advance(500)
    answer = answer_to(plane, token)
    assert answer.error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (answer.session_id, answer.responses) == (session_id, ())


def test_a_client_that_left_leaves_its_session_to_another_connection(plane: Plane) -> None:
    session_id = opened(plane)
    token = send(plane, session_id, 1, max_wait_ms=500)
    plane.data.disconnected(token, plane.now)
    assert ask(plane, session_id, 1).error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(plane, session_id, 2).error_code is NONE


def test_sessions_are_lost_by_a_restart(plane: Plane) -> None:
    session_id = opened(plane)
    plane.restart()
    assert ask(plane, session_id, 1).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_slots_every_answer_is_complete() -> None:
    plane = Plane(TopicSettings(max_incremental_fetch_session_cache_slots=0))
    plane.given("a")
    answer = ask(plane, 0, 0, {("a", 0): at(0)})
    assert answer.session_id == 0
    assert answered(answer) == [Answered(("a", 0), NONE, 0, ())]


# Transactions


def test_a_new_last_stable_offset_alone_is_no_reason() -> None:
    requested = RequestedPartition(TopicName("a"), ZERO_TOPIC_ID, at(0))
    cached = CachedPartition(requested, high_watermark=5, log_start_offset=0)
    data = PartitionData(high_watermark=5, last_stable_offset=3, log_start_offset=0, records=b"")
    assert not cached.has_changed(data)
    data.last_stable_offset = 4
    assert not cached.has_changed(data)
    data.high_watermark = 6
    assert cached.has_changed(data)
    cached.answered(data)
    assert not cached.has_changed(data)


def test_a_read_committed_session_gets_a_transaction_once_it_has_ended(plane: Plane) -> None:
    transactions = Transactions(plane)
    session_id = ask(plane, 0, 0, {("a", 0): at(0, 2)}, isolation_level=1).session_id
    transactions.given(b"open")
    transactions.plain(b"behind")
    # The high watermark is new, once; the records are not committed yet.
    for epoch, expected in ((1, [Answered(("a", 0), NONE, 4, ())]), (2, [])):
        assert answered(ask(plane, session_id, epoch, isolation_level=1)) == expected
    token = send(plane, session_id, 3, max_wait_ms=500, isolation_level=1)
    assert not plane.answered(token)
    assert transactions.end(commit=False) is NONE
    ((_, data),) = data_of(answer_to(plane, token))
    assert (data.high_watermark, data.last_stable_offset) == (5, 5)
    assert offsets_of(data.records or b"") == [2, 3, 4]
    assert [each.first_offset for each in data.aborted_transactions or ()] == [2]
