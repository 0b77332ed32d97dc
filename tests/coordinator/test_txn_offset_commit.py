"""TxnOffsetCommit: its checks in their order, and what each version is expected."""

import pytest

from coordinator.group import GroupType
from coordinator.records import offset_commit_key, offset_commit_value
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from protocol.names import (
    OFFSETS_TOPIC,
    ApiKey,
    ErrorCode,
    GroupId,
    GroupState,
    ProducerId,
    TopicName,
)
from storage.api import StoredMarker, TopicPartition, TransactionalRecord
from tests.coordinator.transaction_givens import P1, P2, TransactionWorld, first_error
from tests.world import World, kafka_settings

VERSIONS = range(6)


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


def test_a_broker_without_transactions_does_not_serve_it() -> None:
    assert ApiKey.TXN_OFFSET_COMMIT not in World().coordinator.handlers


# ---------------------------------------------------------------- the transaction coordinator


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_verified_or_added(world: TransactionWorld, version: int) -> None:
    assert world.txn_commit("g", P1, 3, version=version) is ErrorCode.NONE
    (asked,) = world.verifier.asked
    assert asked[:4] == ("tx-101", P1, 3, (TopicPartition(OFFSETS_TOPIC, 0),))
    assert asked.add is (version >= 5)
    assert not asked.wait


def test_an_open_transaction_is_not_verified_again(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, 3)
    world.txn_commit("other", P1, 3)
    assert len(world.verifier.asked) == 1
    world.txn_commit("g", P1, 4)
    assert len(world.verifier.asked) == 2
    world.mark(P1, 4)
    world.txn_commit("g", P1, 4)
    assert len(world.verifier.asked) == 3


NOT_ADDED = [
    (0, ErrorCode.INVALID_TXN_STATE),
    (3, ErrorCode.INVALID_TXN_STATE),
    (4, ErrorCode.TRANSACTION_ABORTABLE),
]


@pytest.mark.parametrize(("version", "expected"), NOT_ADDED)
def test_a_partition_that_is_not_in_the_transaction(
    world: TransactionWorld, version: int, expected: ErrorCode
) -> None:
    world.verifier.error_code = ErrorCode.TRANSACTION_ABORTABLE
    assert world.txn_commit(version=version) is expected
    assert not world.has_group()


SAME_IN_ALL_VERSIONS = [
    (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
    (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("answered", "expected"), SAME_IN_ALL_VERSIONS)
def test_what_the_transaction_coordinator_refuses(
    world: TransactionWorld, version: int, answered: ErrorCode, expected: ErrorCode
) -> None:
    world.verifier.error_code = answered
    assert world.txn_commit(version=version) is expected
    assert world.log.records == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "answered", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NETWORK_EXCEPTION]
)
def test_loading_is_answered_as_the_version_knows_it(
    world: TransactionWorld, version: int, answered: ErrorCode
) -> None:
    world.verifier.error_code = answered
    expected = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if version < 2:
        expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.txn_commit(version=version) is expected


def test_a_stale_epoch_is_refused_without_asking(world: TransactionWorld) -> None:
    world.mark(P1, 3)
    assert world.txn_commit("g", P1, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.verifier.asked == []


def test_the_group_is_asked_after_a_late_answer(world: TransactionWorld) -> None:
    group = world.given_stable_group(members=1)
    (member_id,) = group.members
    world.verifier.is_slow = True
    asked = world.txn_committing(member_id=member_id, generation_id=group.generation_id)
    assert asked.waits
    world.leave("g", member_id)
    world.verifier.answer(world.verifier.asked[0])
    world.step()
    assert first_error(asked) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_late_answer_finds_the_partition_gone(world: TransactionWorld) -> None:
    world.verifier.is_slow = True
    asked = world.txn_committing()
    world.coordinator.resign(0, world.now)
    world.verifier.answer(world.verifier.asked[0])
    assert first_error(asked) is ErrorCode.NOT_COORDINATOR


def test_a_late_answer_finds_a_later_epoch(world: TransactionWorld) -> None:
    world.verifier.is_slow = True
    asked = world.txn_committing("g", P1, 0)
    world.mark(P1, 1, commits=False)
    world.verifier.answer(world.verifier.asked[0])
    assert first_error(asked) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.pending() == set()


# ---------------------------------------------------------------- before it is asked


def test_what_does_not_exist_is_refused_alone(world: TransactionWorld) -> None:
    world.given_topics(t=2)
    request = TxnOffsetCommitRequest(
        "tx",
        GroupId("g"),
        ProducerId(P1),
        topics=[
            TxnOffsetCommitRequestTopic(
                TopicName("t"), [TxnOffsetCommitRequestPartition(n, 5) for n in (0, 7, 1)]
            ),
            TxnOffsetCommitRequestTopic(TopicName("no"), [TxnOffsetCommitRequestPartition(0, 5)]),
        ],
    )
    response = world.ask(request, version=5).response
    assert isinstance(response, TxnOffsetCommitResponse)
    unknown, fine = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE
    assert [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in response.topics
    ] == [("t", [(7, unknown), (0, fine), (1, fine)]), ("no", [(0, unknown)])]


def test_a_request_about_nothing_is_not_verified(world: TransactionWorld) -> None:
    response = world.ask(TxnOffsetCommitRequest("tx", GroupId("")), version=5).response
    assert isinstance(response, TxnOffsetCommitResponse)
    assert response.topics == []
    assert world.txn_commit(topic="no") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.verifier.asked == []


def test_the_empty_group_id_is_refused_before_it_is_verified(world: TransactionWorld) -> None:
    assert world.txn_commit("") is ErrorCode.INVALID_GROUP_ID
    assert world.verifier.asked == []


def test_a_partition_that_is_not_served(world: TransactionWorld) -> None:
    world.coordinator.resign(0, world.now)
    assert world.txn_commit() is ErrorCode.NOT_COORDINATOR
    world.coordinator.begin_load(0, world.log)
    assert world.txn_commit() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.txn_commit(version=1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.verifier.asked == []


def test_a_full_log_refuses_it(world: TransactionWorld) -> None:
    world.log.full = True
    assert world.txn_commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE


# ---------------------------------------------------------------- the group


def test_no_group_and_a_generation(world: TransactionWorld) -> None:
    error_code = world.txn_commit(member_id="m", generation_id=0)
    assert error_code is ErrorCode.ILLEGAL_GENERATION
    assert not world.has_group()


def test_no_group_and_no_generation_makes_a_simple_group(world: TransactionWorld) -> None:
    assert world.txn_commit() is ErrorCode.NONE
    assert world.group().state is GroupState.EMPTY
    assert world.group().offsets == {}


def test_an_empty_group_takes_any_member_without_a_generation(world: TransactionWorld) -> None:
    world.commit("g")
    assert world.txn_commit(member_id="anybody") is ErrorCode.NONE


def test_older_producers_name_no_member_of_a_group_with_members(world: TransactionWorld) -> None:
    world.given_stable_group()
    assert world.txn_commit(version=2) is ErrorCode.NONE
    assert world.commit("g") is ErrorCode.UNKNOWN_MEMBER_ID  # a plain one is refused


def test_the_member_and_its_generation_are_checked(world: TransactionWorld) -> None:
    group = world.given_stable_group(members=1)
    (member_id,) = group.members
    generation_id = group.generation_id
    expected = [
        world.txn_commit(member_id=member, generation_id=generation, instance_id=instance)
        for member, generation, instance in [
            (member_id, generation_id, None),
            ("other", generation_id, None),
            ("", generation_id, None),
            (member_id, generation_id + 1, None),
            (member_id, -1, None),
            (member_id, generation_id, "instance"),
        ]
    ]
    assert expected == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_a_fenced_instance_is_refused(world: TransactionWorld) -> None:
    group = world.given_stable_group(members=1, instances=["i"])
    (member_id,) = group.members
    world.join(instance_id="i")
    error_code = world.txn_commit(
        member_id=member_id, generation_id=group.generation_id, instance_id="i"
    )
    assert error_code is ErrorCode.FENCED_INSTANCE_ID


def test_a_member_may_commit_before_it_has_synced(world: TransactionWorld) -> None:
    (leader, _) = world.given_joined()
    error_code = world.txn_commit(member_id=leader.member_id, generation_id=leader.generation_id)
    assert error_code is ErrorCode.NONE


def test_it_does_not_extend_the_session(world: TransactionWorld) -> None:
    group = world.given_stable_group(members=1)
    (member,) = group.members.values()
    deadline_ms = member.session_deadline_ms
    world.advance(1_000)
    world.txn_commit(member_id=member.member_id, generation_id=group.generation_id)
    assert member.session_deadline_ms == deadline_ms


def test_a_consumer_group_checks_its_members(world: TransactionWorld) -> None:
    joined = world.heartbeat_consumer("g", "m1").beaten
    epoch = joined.member_epoch
    assert world.consumer_group().group_type is GroupType.CONSUMER
    expected = [
        world.txn_commit(member_id=member, generation_id=generation)
        for member, generation in [
            ("m1", epoch),
            ("m1", epoch + 1),
            ("m2", epoch),
            ("", -1),
            ("m2", -1),
        ]
    ]
    assert expected == [
        ErrorCode.NONE,
        ErrorCode.ILLEGAL_GENERATION,  # not STALE_MEMBER_EPOCH, which no producer knows
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_too_much_metadata_refuses_the_partition_alone(world: TransactionWorld) -> None:
    most = world.settings.offset_metadata_max_bytes
    assert world.txn_commit(metadata="x" * most) is ErrorCode.NONE
    expected = world.txn_commit(metadata="x" * (most + 1))
    assert expected is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert world.txn_commit(metadata=None) is ErrorCode.NONE


def test_the_limit_of_groups_holds() -> None:
    world = TransactionWorld(kafka_settings(groups_max=1))
    assert world.txn_commit("a") is ErrorCode.NONE
    assert world.txn_commit("b") is ErrorCode.POLICY_VIOLATION
    assert world.txn_commit("a") is ErrorCode.NONE


def test_more_than_one_batch_is_refused() -> None:
    world = TransactionWorld(kafka_settings(max_batch_bytes=1_000))
    many = dict.fromkeys(range(100), 1)
    assert world.txn_commit(offsets=many) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.log.records == []


# ---------------------------------------------------------------- what is written


def test_the_records_are_kafkas(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, 3, offsets={0: 5, 1: 6})
    world.mark(P1, 3, coordinator_epoch=9)
    first, second, marker = world.log.records
    assert isinstance(first, TransactionalRecord)
    assert isinstance(second, TransactionalRecord)
    assert isinstance(marker, StoredMarker)
    assert first[4:] == (P1, 3, 0)
    assert second[4:] == (P1, 3, 1)
    committed = world.group().offsets[TopicName("t")]
    assert first.key == offset_commit_key(GroupId("g"), TopicName("t"), 0)
    assert first.value == offset_commit_value(committed[0], 4)
    assert second.value == offset_commit_value(committed[1], 4)
    assert marker.marker == (P1, 3, True, 9)


def test_it_is_answered_when_it_is_stored(world: TransactionWorld) -> None:
    world.storing = False
    asked = world.txn_committing()
    assert asked.waits
    world.store()
    assert first_error(asked) is ErrorCode.NONE


def test_a_log_that_fails_refuses_it(world: TransactionWorld) -> None:
    world.storing = False
    asked = world.txn_committing()
    world.coordinator.on_log_failed(0, world.now)
    assert first_error(asked) is ErrorCode.NOT_COORDINATOR


def test_a_bug_in_the_decision_fails_the_request_alone(
    world: TransactionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.txn_commit("g", P2)

    def planted(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("coordinator.offset_turns.decide_txn_offset_commit", planted)
    with pytest.raises(RuntimeError, match="planted"):
        world.txn_commit()
    assert first_error_of_last(world) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.pending() == {("t", 0, P2)}


def first_error_of_last(world: TransactionWorld) -> ErrorCode:
    (response,) = world.tokens[-1].answers
    assert isinstance(response, TxnOffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def test_a_bug_after_a_late_answer_ends_the_shard_and_not_the_transactions_turn(
    world: TransactionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Exception] = []
    world.coordinator._shard_failed = lambda _, failure: failed.append(failure)

    def planted(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("coordinator.offset_turns.decide_txn_offset_commit", planted)
    world.verifier.is_slow = True
    asked = world.txn_committing()
    world.verifier.answer(world.verifier.asked[0])
    assert first_error(asked) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert [str(failure) for failure in failed] == ["planted"]


def test_an_id_that_no_record_can_hold_is_refused(world: TransactionWorld) -> None:
    assert world.txn_commit("\ufffd" * 11_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.verifier.asked == []
