"""Ending of a transaction: syncs that fail, markers that are tried again or refused, a full log."""

import pytest

from protocol.names import ErrorCode
from tests.transactions.world import World, at
from transactions.ending import MARKER_RETRY_BACKOFF_MAX_MS, MARKER_RETRY_BACKOFF_MS
from transactions.events import (
    CommitSyncFailed,
    MarkerRefused,
    MarkersDelayed,
    TransactionCompleted,
    TransactionPrepared,
)

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
ORDERS, OTHER = at("orders"), at("orders", 1)
TRIED_AGAIN = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
]


def given_ongoing(world: World) -> None:
    world.init()
    world.produced(1_000, 0, ORDERS, OTHER)


def test_events(world: World) -> None:
    given_ongoing(world)
    world.advance(250)
    world.end(1_000, 0)
    (prepared,) = world.happened(TransactionPrepared)
    (completed,) = world.happened(TransactionCompleted)
    assert isinstance(prepared, TransactionPrepared)
    assert isinstance(completed, TransactionCompleted)
    assert (prepared.is_commit, prepared.partitions, prepared.cause) == (True, 2, None)
    assert (completed.is_commit, completed.duration_ms) == (True, 250)


def test_markers_have_the_epoch_of_the_coordinator_and_the_version(world: World) -> None:
    world.log.leader_epoch = 7
    given_ongoing(world)
    world.end(1_000, 0)
    world.add(1_000, 1)
    world.end(1_000, 1, v=4)
    found = [(m.coordinator_epoch, m.transaction_version) for _, m in world.partitions.markers]
    assert found == [(7, 2), (7, 2), (7, 0)]


@pytest.mark.parametrize("error_code", TRIED_AGAIN)
def test_markers_are_written_again_to_those_alone_that_did_not_take_them(
    world: World, error_code: ErrorCode
) -> None:
    given_ongoing(world)
    world.partitions.errors[OTHER] = error_code
    assert world.end(1_000, 0) == (NONE, 1_000, 1)
    assert world.end(1_000, 0) == (BUSY, -1, -1)
    world.advance(MARKER_RETRY_BACKOFF_MS * 3)
    assert world.state == "PrepareCommit"
    (shown,) = world.describe()
    assert [(topic.topic, topic.partitions) for topic in shown.topics] == [("orders", [1])]
    del world.partitions.errors[OTHER]
    world.advance(4 * MARKER_RETRY_BACKOFF_MS)
    assert world.state == "CompleteCommit"
    assert world.partitions.of(ORDERS) == world.partitions.of(OTHER) == [(True, 1_000, 1)]
    assert world.end(1_000, 0) == (NONE, 1_000, 1)
    (delayed,) = world.happened(MarkersDelayed)  # once
    assert isinstance(delayed, MarkersDelayed)
    assert delayed.errors == ((OTHER, error_code),)


def test_a_partition_that_works_again_is_not_kept_waiting(world: World) -> None:
    given_ongoing(world)
    world.partitions.errors[OTHER] = ErrorCode.KAFKA_STORAGE_ERROR
    world.end(1_000, 0)
    world.advance(100_000)
    tried = world.partitions.tried
    world.advance(10_000)
    assert world.partitions.tried - tried == 10
    del world.partitions.errors[OTHER]
    world.advance(MARKER_RETRY_BACKOFF_MAX_MS)
    assert world.state == "CompleteCommit"


@pytest.mark.parametrize(
    "error_code",
    [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT],
)
def test_partition_that_is_gone_is_skipped(world: World, error_code: ErrorCode) -> None:
    given_ongoing(world)
    world.partitions.errors[OTHER] = error_code
    world.end(1_000, 0)
    assert world.state == "CompleteCommit"
    assert world.partitions.of(ORDERS, OTHER) == [(True, 1_000, 1)]


@pytest.mark.parametrize(
    "error_code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
def test_refused_marker_leaves_the_id_prepared_until_the_next_load(
    world: World, error_code: ErrorCode
) -> None:
    given_ongoing(world)
    world.partitions.errors = {ORDERS: error_code, OTHER: ErrorCode.REQUEST_TIMED_OUT}
    world.end(1_000, 0)
    del world.partitions.errors[OTHER]
    world.advance(10 * MARKER_RETRY_BACKOFF_MS)
    assert world.partitions.of(OTHER) == [(True, 1_000, 1)]  # the others get theirs
    assert world.state == "PrepareCommit"
    (refused,) = world.happened(MarkerRefused)
    assert isinstance(refused, MarkerRefused)
    assert (refused.topic_partition, refused.error_code) == (ORDERS, error_code)
    world.partitions.errors = {}
    world.crash()
    assert world.state == "CompleteCommit"


@pytest.mark.parametrize("error_code", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT])
def test_commit_whose_data_cannot_be_synced_is_refused(world: World, error_code: ErrorCode) -> None:
    given_ongoing(world)
    records = len(world.log.records)
    world.partitions.sync_errors[OTHER] = error_code
    refused = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)  # on which clients ask again
    assert world.end(1_000, 0) == refused
    assert world.end(1_000, 0, v=4) == refused
    assert (world.state, len(world.log.records)) == ("Ongoing", records)
    (failed, _) = world.happened(CommitSyncFailed)
    assert isinstance(failed, CommitSyncFailed)
    assert failed.errors == ((OTHER, error_code),)
    world.partitions.sync_errors = {}
    assert world.end(1_000, 0) == (NONE, 1_000, 1)


def test_data_that_cannot_be_synced_can_be_aborted(world: World) -> None:
    given_ongoing(world)
    world.partitions.sync_errors[OTHER] = ErrorCode.KAFKA_STORAGE_ERROR
    assert world.end(1_000, 0)[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.end(1_000, 0, commit=False) == (NONE, 1_000, 1)


def test_partition_that_is_gone_counts_as_synced(world: World) -> None:
    given_ongoing(world)
    world.partitions.sync_errors[OTHER] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.end(1_000, 0) == (NONE, 1_000, 1)


def test_id_is_pending_while_its_data_is_synced(world: World) -> None:
    given_ongoing(world)
    world.partitions.hold(syncs=True)
    world.send(world.end_request(1_000, 0))
    assert world.end(1_000, 0, commit=False) == (BUSY, -1, -1)
    assert world.init() == (BUSY, -1, -1)
    world.advance(100_000)  # its timeout passes
    assert world.state == "Ongoing"
    world.partitions.release()
    world.run()
    assert world.state == "CompleteCommit"


def test_full_log_refuses_what_needs_a_record(world: World) -> None:
    given_ongoing(world)
    world.log.full = True
    full = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.init("new") == (full, -1, -1)
    assert world.coordinator.transactional_ids == 1
    assert world.add(1_000, 0, at("orders", 2)) is full
    assert world.add(1_000, 0, ORDERS) is NONE  # this one needs none
    assert world.end(1_000, 0) == (full, -1, -1)
    world.log.full = False
    assert world.end(1_000, 0) == (NONE, 1_000, 1)


def test_log_that_is_full_after_the_sync(world: World) -> None:
    given_ongoing(world)
    world.partitions.hold(syncs=True)
    ended = world.send(world.end_request(1_000, 0))
    world.log.full = True
    world.partitions.release()
    world.run()
    assert len(ended.answers) == 1
    assert world.state == "Ongoing"
    world.log.full = False
    assert world.end(1_000, 0) == (NONE, 1_000, 1)


def test_log_that_is_full_after_the_markers(world: World) -> None:
    given_ongoing(world)
    world.partitions.hold()
    world.end(1_000, 0)
    world.log.full = True
    world.partitions.release()
    world.advance(1_000)
    assert world.state == "PrepareCommit"
    world.log.full = False
    world.advance(MARKER_RETRY_BACKOFF_MS)
    assert world.state == "CompleteCommit"
    assert world.partitions.of(ORDERS) == [(True, 1_000, 1)]
