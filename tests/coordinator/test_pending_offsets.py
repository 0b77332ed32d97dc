"""Pending offsets: what a marker does to them, who sees them, and what else removes them."""

from uuid import UUID

import pytest

from coordinator.events import GroupDeleted
from coordinator.group import GroupType
from coordinator.image import LoadStart
from coordinator.offsets.events import (
    DeletionCause,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsPending,
    PendingOffsetsDeleted,
    PendingOffsetsEnded,
)
from coordinator.offsets.transactions import plain_transactions, transactions_of_plain
from coordinator.records import offset_commit_key
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.names import ErrorCode, GroupId, GroupState, TopicName
from storage.api import AbortedTransaction, StoredMarker, StoredRecord
from tests.coordinator.transaction_givens import P1, P2, TransactionWorld
from tests.memory_log import MemoryLog
from tests.world import RESTORE_BUDGET, kafka_settings

NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
T = TopicName("t")
DAY_MS = 86_400_000


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


# ---------------------------------------------------------------- commit and abort


def test_offsets_become_visible_with_the_commit(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6})
    assert world.fetched() == {("t", 0): 1}
    assert world.mark() is NONE
    assert world.fetched() == {("t", 0): 5, ("t", 1): 6}
    assert world.pending() == set()


def test_an_abort_drops_them(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6})
    assert world.mark(commits=False) is NONE
    assert world.fetched() == {("t", 0): 1}
    assert world.pending() == set()


def test_a_marker_ends_them_in_every_group(world: TransactionWorld) -> None:
    for group_id in ("a", "b"):
        world.txn_commit(group_id, P1, offsets={1: 5})
        world.txn_commit(group_id, P2, offsets={2: 6})
    world.mark(P1)
    assert world.fetched("a") == world.fetched("b") == {("t", 1): 5}
    assert world.pending("a") == {("t", 2, P2)}
    world.mark(P2, commits=False)
    assert world.fetched("a") == world.fetched("b") == {("t", 1): 5}
    assert world.pending("b") == set()


def test_the_last_of_two_commits_in_a_transaction_counts(world: TransactionWorld) -> None:
    world.txn_commit(offsets={0: 9})
    world.txn_commit(offsets={0: 5})
    world.mark()
    assert world.fetched() == {("t", 0): 5}


def test_a_plain_commit_that_came_later_stays(world: TransactionWorld) -> None:
    world.txn_commit(offsets={0: 5, 1: 5})
    world.commit("g", offsets={0: 7})
    assert world.fetched(topics={"t": [0, 1]}, stable=True) == {
        ("t", 0): UNSTABLE,
        ("t", 1): UNSTABLE,
    }
    world.mark()
    assert world.fetched() == {("t", 0): 7, ("t", 1): 5}


def test_the_order_of_the_log_decides_between_producers(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, offsets={0: 5})
    world.txn_commit("g", P2, offsets={0: 6})
    world.mark(P2)
    assert world.fetched() == {("t", 0): 6}
    world.mark(P1)
    assert world.fetched() == {("t", 0): 6}


def test_the_order_of_the_log_decides_when_the_earlier_commits_first(
    world: TransactionWorld,
) -> None:
    world.txn_commit("g", P1, offsets={0: 5})
    world.txn_commit("g", P2, offsets={0: 6})
    world.mark(P1)
    assert world.fetched() == {("t", 0): 5}
    world.mark(P2)
    assert world.fetched() == {("t", 0): 6}


def test_a_repeated_marker_changes_nothing(world: TransactionWorld) -> None:
    world.txn_commit(offsets={0: 5})
    world.mark(epoch=1, version=2)
    world.commit("g", offsets={0: 3})
    assert world.mark(epoch=1, version=2) is NONE
    assert world.fetched() == {("t", 0): 3}
    assert [type(record) for record in world.log.records].count(StoredMarker) == 2


def test_a_marker_without_pending_offsets_is_written(world: TransactionWorld) -> None:
    assert world.mark(P2, 7, commits=False, coordinator_epoch=3) is NONE
    (stored,) = world.log.records
    assert isinstance(stored, StoredMarker)
    assert stored.marker == (P2, 7, False, 3)
    assert not world.has_group()


def test_the_caller_is_answered_when_the_marker_is_stored(world: TransactionWorld) -> None:
    world.txn_commit()
    world.storing = False
    world.write_marker()
    assert world.marked == []
    world.store()
    assert world.marked == [NONE]


def test_an_answer_about_offsets_waits_for_the_marker(world: TransactionWorld) -> None:
    world.txn_commit(offsets={0: 5})
    world.storing = False
    world.write_marker()
    asked = world.fetching(stable=True)
    assert asked.waits
    world.store()
    assert isinstance(asked.response, OffsetFetchResponse)
    (topic,) = asked.response.groups[0].topics
    assert topic.partitions[0].committed_offset == 5


# ---------------------------------------------------------------- refused markers


def test_a_marker_of_an_older_coordinator(world: TransactionWorld) -> None:
    world.mark(P1, 1, coordinator_epoch=5)
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert world.mark(P1, 1, coordinator_epoch=4) is fenced
    assert world.mark(P1, 1, coordinator_epoch=5) is NONE


def test_the_epoch_of_a_marker_never_falls(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, 5)
    old = ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.mark(P1, 4) is old
    assert world.mark(P1, 5, version=2) is old  # each transaction has its own
    assert world.pending() == {("t", 0, P1)}
    assert world.mark(P1, 5, version=1) is NONE
    world.txn_commit("g", P1, 5)
    assert world.mark(P1, 6, version=2) is NONE
    assert world.mark(P1, 6, version=2) is NONE  # repeated after a crash
    assert world.mark(P1, 5, version=2) is old


def test_the_last_epoch_of_a_producer_id(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, 32_767)
    assert world.mark(P1, 32_767, version=2) is NONE


def test_a_marker_to_a_partition_that_is_not_served(world: TransactionWorld) -> None:
    again = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.mark(partition=1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.mark(partition=-1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.log.full = True
    assert world.mark() is again
    world.log.full = False
    world.coordinator.resign(0, world.now)
    assert world.mark() is again
    world.coordinator.begin_load(0, world.log)
    assert world.mark() is again
    assert world.log.records == []


def test_a_log_that_fails_asks_for_the_marker_again(world: TransactionWorld) -> None:
    world.storing = False
    world.write_marker()
    world.coordinator.on_log_failed(0, world.now)
    assert world.marked == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_disk_that_takes_too_long_asks_for_the_marker_again(world: TransactionWorld) -> None:
    world.storing = False
    world.write_marker()
    world.advance(world.settings.offsets_commit_timeout_ms)
    assert world.marked == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_log_that_is_closed_ends_the_shard_and_answers_once(world: TransactionWorld) -> None:
    failed: list[int] = []
    world.coordinator._shard_failed = lambda partition, _: failed.append(partition)
    world.log.closed = True
    world.log.has_room = lambda: True  # type: ignore[method-assign]
    world.write_marker()
    assert world.marked == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert failed == [0]


# ---------------------------------------------------------------- require_stable


def test_require_stable_refuses_the_partition_alone(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1, 1: 2})
    world.txn_commit(offsets={1: 6, 2: 7})
    wanted = {"t": [0, 1, 2, 3]}
    assert world.fetched(topics=wanted, stable=True) == {
        ("t", 0): 1, ("t", 1): UNSTABLE, ("t", 2): UNSTABLE, ("t", 3): -1,
    }  # fmt: skip
    assert world.fetched(topics=wanted) == {
        ("t", 0): 1, ("t", 1): 2, ("t", 2): -1, ("t", 3): -1,
    }  # fmt: skip
    assert world.fetched("other", topics=wanted, stable=True) == dict.fromkeys(
        [("t", n) for n in range(4)], -1
    )


def test_all_topics_leave_out_what_is_only_pending(world: TransactionWorld) -> None:
    world.given_topics(t=2, u=1)
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6})
    world.txn_commit(topic="u", offsets={0: 9})
    assert world.fetched(stable=True) == {("t", 0): UNSTABLE}
    assert world.fetched() == {("t", 0): 1}


# ---------------------------------------------------------------- deletion and expiry


def delete_group(world: TransactionWorld, group_id: str = "g") -> ErrorCode:
    response = world.ask(DeleteGroupsRequest([GroupId(group_id)]), version=2).response
    assert isinstance(response, DeleteGroupsResponse)
    return response.results[0].error_code


def delete_offsets(world: TransactionWorld, *partitions: int) -> OffsetDeleteResponse:
    named = [OffsetDeleteRequestPartition(n) for n in partitions]
    request = OffsetDeleteRequest(GroupId("g"), [OffsetDeleteRequestTopic(T, named)])
    response = world.ask(request, version=0).response
    assert isinstance(response, OffsetDeleteResponse)
    return response


def tombstones(world: TransactionWorld) -> list[bytes | None]:
    return [
        record.key
        for record in world.log.records
        if isinstance(record, StoredRecord) and record.value is None
    ]


def test_a_deleted_group_does_not_come_back(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6})
    assert delete_group(world) is NONE
    keys = [offset_commit_key(GroupId("g"), T, n) for n in (0, 1)]
    assert tombstones(world)[:2] == keys  # each once
    assert world.mark() is NONE
    assert not world.has_group()
    world.crash()
    assert not world.has_group()


def test_a_deleted_offset_does_not_come_back(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6, 2: 7})
    delete_offsets(world, 0, 1, 1, 9)
    assert tombstones(world) == [
        offset_commit_key(GroupId("g"), T, 0),
        offset_commit_key(GroupId("g"), T, 1),
    ]
    assert world.pending() == {("t", 2, P1)}
    world.mark()
    assert world.fetched() == {("t", 2): 7}
    world.crash()
    assert world.fetched() == {("t", 2): 7}


def test_offsets_with_pending_ones_do_not_expire() -> None:
    world = TransactionWorld(kafka_settings(offsets_retention_minutes=60))
    world.commit("g", offsets={0: 1, 1: 2})
    world.txn_commit(offsets={1: 6})
    world.txn_commit("pending")
    world.advance(DAY_MS)
    assert world.fetched() == {("t", 1): 2}
    assert world.has_group("pending")
    world.mark(commits=False)
    world.advance(600_000)
    assert not world.has_group("g")
    assert not world.has_group("pending")


def test_pending_offsets_of_a_deleted_topic_are_dropped(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6})
    gone = world.topics.topic_id(T)
    assert gone is not None
    del world.topics.counts[T]
    world.coordinator.topics_deleted([(T, gone)], world.now)
    world.advance(1_000)
    assert world.pending() == set()
    world.given_topics(t=3)
    world.mark()
    assert world.fetched() == {}
    assert world.events_of(PendingOffsetsDeleted)[0].cause is DeletionCause.TOPIC_DELETED


def test_a_group_that_is_converted_keeps_them(world: TransactionWorld) -> None:
    world.txn_commit(offsets={0: 5})
    world.heartbeat_consumer("g", "m1")
    assert world.consumer_group().group_type is GroupType.CONSUMER
    world.crash()
    assert world.pending() == {("t", 0, P1)}
    world.mark()
    assert world.consumer_group().offsets[T][0].committed_offset == 5
    world.crash()
    assert world.consumer_group().offsets[T][0].committed_offset == 5


# ---------------------------------------------------------------- reload


@pytest.mark.parametrize("commits", [True, False])
def test_they_survive_a_crash(world: TransactionWorld, commits: bool) -> None:
    world.commit("g", offsets={0: 1})
    world.txn_commit(offsets={0: 5, 1: 6})
    world.txn_commit("pending", offsets={0: 7})
    world.crash()
    assert world.fetched(topics={"t": [0, 1]}, stable=True) == {
        ("t", 0): UNSTABLE, ("t", 1): UNSTABLE,
    }  # fmt: skip
    assert world.group("pending").state is GroupState.EMPTY
    world.mark(commits=commits)
    world.crash()
    assert world.fetched() == ({("t", 0): 5, ("t", 1): 6} if commits else {("t", 0): 1})
    assert world.fetched("pending") == ({("t", 0): 7} if commits else {})


def test_what_was_superseded_stays_so_after_a_crash(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, offsets={0: 5})
    world.txn_commit("g", P2, offsets={0: 6, 1: 6})
    world.mark(P2)
    world.commit("g", offsets={1: 9})
    world.crash()
    assert world.pending() == {("t", 0, P1)}
    world.mark(P1)
    assert world.fetched() == {("t", 0): 6, ("t", 1): 9}


def test_the_open_transaction_needs_no_verification_after_a_crash(
    world: TransactionWorld,
) -> None:
    world.txn_commit("g", P1, 3)
    world.crash()
    world.verifier.asked.clear()
    assert world.txn_commit("g", P1, 3) is NONE
    assert world.verifier.asked == []
    assert world.mark(P1, 2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_group_that_is_not_ready_yet_gets_its_offsets(world: TransactionWorld) -> None:
    for group_id in ("a", "b"):
        world.commit(group_id, offsets={0: 1})
        world.txn_commit(group_id, offsets={0: 5})
    coordinator, log = world.coordinator, MemoryLog(world.log.survivors())
    coordinator.resign(0, world.now)
    world.logs[0] = log
    coordinator.begin_load(0, log)
    coordinator.load(0, log.records, log.end_position)
    coordinator.finish_load(0, world.now)
    world.mark()
    while coordinator.restore_slice(0, world.now, RESTORE_BUDGET):
        pass
    assert world.fetched("a") == world.fetched("b") == {("t", 0): 5}


def test_a_snapshot_keeps_them(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, 3, offsets={0: 5}, metadata="m")
    world.txn_commit("g", P2, 1, offsets={0: 6})
    world.commit("g", offsets={0: 7})
    world.mark(77, 4, commits=False)
    transactions = world.shard.transactions
    restored = transactions_of_plain(plain_transactions(transactions))
    assert list(restored.pending.rows()) == list(transactions.pending.rows())
    assert list(restored.producers.rows()) == list(transactions.producers.rows())
    restored.pending.check()
    restored.producers.check()
    coordinator = world.coordinator
    coordinator.resign(0, world.now)
    coordinator.begin_load(0, world.log)
    coordinator.load_from(0, LoadStart(None, world.log.end_position, (), restored))
    coordinator.finish_load(0, world.now)
    assert world.pending() == {("t", 0, P1), ("t", 0, P2)}


# ---------------------------------------------------------------- the last stable offset


def test_the_first_open_transaction_is_reported(world: TransactionWorld) -> None:
    world.commit("g")
    world.txn_commit("g", P1)  # at 1
    world.txn_commit("g", P2)  # at 2
    world.txn_commit("h", P1)  # at 3
    assert world.first_unstable[1:] == [(0, 1)]
    world.mark(P1)
    assert world.first_unstable[1:] == [(0, 1), (0, 2)]
    world.mark(P2)
    assert world.first_unstable[1:] == [(0, 1), (0, 2), (0, None)]


def test_it_moves_when_the_marker_is_stored(world: TransactionWorld) -> None:
    world.txn_commit()
    world.storing = False
    world.write_marker()
    assert world.first_unstable[1:] == [(0, 0)]
    world.store()
    assert world.first_unstable[1:] == [(0, 0), (0, None)]


def test_it_is_reported_after_a_load(world: TransactionWorld) -> None:
    world.txn_commit()
    assert world.first_unstable == [(0, None), (0, 0)]
    world.crash()
    assert world.first_unstable[2:] == [(0, 0)]
    world.mark()
    world.crash()
    assert world.first_unstable[3:] == [(0, None), (0, None)]


def test_aborted_transactions_are_known_to_readers(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, offsets={0: 1, 1: 1})  # at 0
    world.txn_commit("g", P2)  # at 2
    world.mark(P1, commits=False)  # at 3
    world.mark(P2)  # at 4
    world.txn_commit("g", P2, 1)  # at 5
    world.mark(P2, 1, commits=False)  # at 6
    first, second = AbortedTransaction(P1, 0, 3, 2), AbortedTransaction(P2, 5, 6, 7)
    for _ in range(2):
        aborted = world.coordinator.transactions.aborted(0)
        assert aborted is not None
        assert aborted.aborted_between(0, 7) == [first, second]
        assert aborted.aborted_between(3, 5) == [first]
        assert aborted.aborted_between(4, 7) == [second]
        world.crash()
    world.coordinator.transactions.cleaned(0, 5)
    aborted = world.coordinator.transactions.aborted(0)
    assert aborted is not None
    assert aborted.aborted_between(0, 7) == [second]


def test_producers_are_described(world: TransactionWorld) -> None:
    world.commit("g")
    world.txn_commit("g", P1, 3, offsets={0: 1, 1: 1})
    world.txn_commit("g", P2, 1)
    world.mark(P2, 2, coordinator_epoch=4, version=2)
    at_ms = world.now.wall_ms
    for _ in range(2):
        producers = world.coordinator.transactions.producers(0)
        assert producers is not None
        shown = {
            producer_id: (
                each.producer_epoch, each.coordinator_epoch, each.last_sequence,
                each.last_timestamp_ms, each.first_offset,
            )
            for producer_id, each in producers.items()
        }  # fmt: skip
        assert shown == {P1: (3, -1, 1, at_ms, 1), P2: (2, 4, -1, at_ms, None)}
        world.crash()


def test_idle_producers_are_forgotten(world: TransactionWorld) -> None:
    world.txn_commit("g", P1)
    world.txn_commit("g", P2)
    world.mark(P2)
    world.advance(DAY_MS + 1)
    world.mark(77)
    producers = world.coordinator.transactions.producers(0)
    assert producers is not None
    assert set(producers) == {P1, 77}


# ---------------------------------------------------------------- events


def test_events_describe_a_transaction(world: TransactionWorld) -> None:
    world.commit("g", offsets={0: 1})
    world.events.clear()
    world.txn_commit("g", P1, 3, offsets={0: 5, 1: 6})
    (pending,) = world.events_of(OffsetsPending)
    assert (pending.producer_id, pending.producer_epoch, pending.client_id) == (P1, 3, "client")
    world.commit("g", offsets={1: 7})
    world.events.clear()
    world.mark(P1, 3)
    (committed,) = world.events_of(OffsetsCommitted)
    assert committed.producer_id == P1
    assert committed.client_id == "client"
    assert [(t, list(p)) for t, p in committed.offsets] == [("t", [0])]
    assert [(t, list(p)) for t, p in committed.replaced] == [("t", [0])]
    (ended,) = world.events_of(PendingOffsetsEnded)
    assert ended.is_commit
    assert [(t, list(p)) for t, p in ended.offsets] == [("t", [0, 1])]
    assert not world.events_of(OffsetsDeleted)
    assert not world.events_of(GroupDeleted)


def test_the_last_batch_of_each_producer_is_known_to_the_cleaner(world: TransactionWorld) -> None:
    world.txn_commit("g", P1, offsets={0: 1, 1: 1})  # at 0 and 1
    world.txn_commit("g", P2)  # at 2
    world.mark(P1)
    world.mark(P2, 1, version=2)
    for _ in range(2):
        producers = world.coordinator.transactions.producers(0)
        assert producers is not None
        assert {known: each.last_offset for known, each in producers.items()} == {P1: 1, P2: None}
        world.crash()


def test_pending_offsets_of_a_namesake_of_a_deleted_topic_stay(
    world: TransactionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.commit("g", offsets={0: 1})
    gone = world.topics.id_of(T)
    del world.topics.counts[T]
    world.coordinator.topics_deleted([(T, gone)], world.now)
    monkeypatch.setattr(world.topics, "id_of", lambda _: UUID(int=77))
    world.given_topics(t=3)
    world.txn_commit(offsets={0: 5})  # before the slice that forgets the deleted topic
    world.advance(1_000)
    assert world.fetched() == {}
    world.crash()
    world.mark()
    assert world.fetched() == {("t", 0): 5}
