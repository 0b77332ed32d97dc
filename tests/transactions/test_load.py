"""Load: what a coordinator that starts finds, and what a crash at each step leaves."""

import pytest

from protocol.names import ErrorCode
from seams.now import Now
from storage.api import EndMarker, StoredMarker, StoredRecord
from tests.memory_log import MemoryLog
from tests.transactions.world import START, TIMEOUT_MS, TX, World, at
from transactions.events import TransactionsClosed, TransactionsLoaded, TransactionsLoadFailed
from transactions.records import UnreadableTransactionRecord, transaction_key

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
INVALID = ErrorCode.INVALID_TXN_STATE
ORDERS = at("orders")


def test_loading_and_not_ours(world: World) -> None:
    world.init()
    world.coordinator.resign(0, world.now)
    assert world.init()[0] is ErrorCode.NOT_COORDINATOR
    assert world.describe()[0].error_code is ErrorCode.NOT_COORDINATOR
    world.coordinator.begin_load(0, world.log)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.init()[0] is loading
    assert world.add(1_000, 0) is loading
    assert world.end(1_000, 0)[0] is loading
    assert world.describe()[0].error_code is loading
    assert world.list().error_code is loading
    world.coordinator.fail_load(0, "damaged")
    assert world.init()[0] is ErrorCode.NOT_COORDINATOR
    assert world.list().error_code is NONE
    assert len(world.happened(TransactionsClosed)) == 1
    assert len(world.happened(TransactionsLoadFailed)) == 1


def test_number_of_partitions_is_known_later() -> None:
    world = World(partition_count=0)
    assert world.init()[0] is ErrorCode.NOT_COORDINATOR
    assert world.describe()[0].error_code is ErrorCode.NOT_COORDINATOR
    assert world.list().error_code is NONE
    world.coordinator.tick(world.now)
    world.coordinator.partition_count = 50
    assert world.coordinator.partition_for("my-group") == 12  # Java's hash
    world.logs[world.coordinator.partition_for(TX)] = MemoryLog()
    world.load(world.coordinator.partition_for(TX))
    assert world.init()[0] is NONE


def test_number_of_partitions_never_changes(world: World) -> None:
    world.coordinator.partition_count = 1
    with pytest.raises(AssertionError):
        world.coordinator.partition_count = 2


def test_everything_is_there_after_a_restart(world: World) -> None:
    world.init("a")
    world.init("b")
    world.produced(1_000, 0)
    world.init()
    world.add(1_002, 0)
    world.advance(1_000)
    before = world.metadata
    world.crash()
    assert world.metadata == before
    assert world.coordinator.transactional_ids == 3
    (_, loaded) = world.happened(TransactionsLoaded)
    assert isinstance(loaded, TransactionsLoaded)
    assert (loaded.transactional_ids, loaded.open_transactions, loaded.prepared) == (3, 1, 0)


# ------------------------------------------------------------ the crash table


def test_crash_before_the_first_record_is_stored(world: World) -> None:
    world.storing = False
    world.init_lost()
    world.crash()
    world.storing = True
    world.run()
    assert world.init() == (NONE, 1_001, 0)  # a producer id is never given to two ids


def test_crash_after_init_producer_id(world: World) -> None:
    world.init()
    world.crash()
    assert world.init() == (NONE, 1_000, 1)


def test_crash_in_an_ongoing_transaction(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.crash()
    assert world.produced(1_000, 0) is NONE
    assert world.end(1_000, 0) == (NONE, 1_000, 1)
    assert world.partitions.of(ORDERS) == [(True, 1_000, 1)]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("v", [4, 5])
def test_crash_before_the_decision_is_stored(world: World, commit: bool, v: int) -> None:
    world.init()
    world.add(1_000, 0)
    world.storing = False
    lost = world.send(world.end_request(1_000, 0, commit), v)
    assert lost.answers == []
    world.crash()
    world.storing = True
    assert world.state == "Ongoing"
    assert world.end(1_000, 0, commit=not commit, v=v)[0] is NONE


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("v", [4, 5])
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_crash_after_the_decision(world: World, commit: bool, v: int, taken: int) -> None:
    """Trap: Prepare* that is not finished after a restart. Nor is it ever reversed."""
    world.init()
    partitions = [ORDERS, at("orders", 1)]
    world.add(1_000, 0, *partitions)
    for partition in partitions[taken:]:
        world.partitions.errors[partition] = ErrorCode.REQUEST_TIMED_OUT
    if taken == len(partitions):
        world.partitions.hold()
    answer = world.end(1_000, 0, commit=commit, v=v)
    if taken == len(partitions):  # the markers are written, Complete* is not stored
        world.storing = False
        world.partitions.release()
        world.run()
    world.partitions.errors = {}
    world.partitions.hold()
    world.crash_holding()
    world.storing = True
    assert world.end(1_000, 0, commit=commit, v=v)[0] is BUSY
    assert world.init()[0] is BUSY
    world.partitions.release()
    world.run()  # no client asked for it

    assert world.end(1_000, 0, commit=commit, v=v) == answer
    assert world.end(1_000, 0, commit=not commit, v=v)[0] is INVALID
    epoch = 1 if v == 5 else 0
    for number, partition in enumerate(partitions):
        found = world.partitions.of(partition)
        assert set(found) == {(commit, 1_000, epoch)}
        assert len(found) == (2 if number < taken else 1)
    epochs = [marker.coordinator_epoch for _, marker in world.partitions.markers]
    assert epochs == sorted(epochs)


def test_crash_while_a_producer_is_fenced(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.storing = False
    world.init_lost()
    world.crash()
    world.storing = True
    assert world.init()[0] is BUSY
    assert world.init() == (NONE, 1_000, 2)
    assert world.produced(1_000, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.partitions.of(ORDERS) == [(False, 1_000, 1)]


def test_waiting_requests_are_answered_when_the_log_fails(world: World) -> None:
    world.init()
    world.storing = False
    token = world.send(world.end_request(1_000, 0, commit=False))
    world.coordinator.on_log_failed(0, world.now)
    assert [getattr(answer, "error_code", None) for answer in token.answers] == [
        ErrorCode.NOT_COORDINATOR
    ]
    world.coordinator.on_stored(0, world.log.store(), world.now)  # too late: not for this shard
    assert len(token.answers) == 1


def test_partitions_that_answer_after_the_end(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    world.end(1_000, 0)
    world.coordinator.resign(0, world.now)
    world.partitions.release()
    world.run()
    world.load(0)
    assert world.state == "CompleteCommit"


# ------------------------------------------------------------ records of others


def record(key: bytes | None, value: bytes | None, offset: int = 0) -> StoredRecord:
    return StoredRecord(offset, START.wall_ms, key, value)


def test_records_of_a_later_kafka_are_skipped(world: World) -> None:
    world.init()
    known = world.log.records[-1]
    world.crash()
    world.logs[0].records += [
        record(b"\x00\x07later", b"\x00\x00", 1),
        record(known.key, b"\x00\x09later", 2),
        StoredMarker(3, START.wall_ms, EndMarker(1_000, 0, is_commit=True, coordinator_epoch=0)),
    ]
    world.logs[0].store()
    world.crash()
    assert world.coordinator.transaction(TX) is None
    loaded = world.happened(TransactionsLoaded)[-1]
    assert isinstance(loaded, TransactionsLoaded)
    assert sorted((skipped.offset, skipped.reason) for skipped in loaded.skipped) == [
        (1, "record type 7 is not known"),
        (2, "value version 9 is not known"),
        (3, "of a transaction: this log has none"),
    ]


DEAD_VALUE = bytes(2 + 8 + 2 + 4) + b"\x06" + bytes(20)
"""A value of version 0 with a state that is never stored."""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00", b""),
        (b"\x00\x00\x00\x09x", b"\x00\x00"),
        (transaction_key(TX), b"\x00"),
        (transaction_key(TX), b"\x00\x01\x00"),
        (transaction_key(TX), DEAD_VALUE),
    ],
)
def test_damaged_record_fails_the_load(world: World, key: bytes | None, value: bytes) -> None:
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, MemoryLog())
    with pytest.raises(UnreadableTransactionRecord):
        world.coordinator.load(0, [record(key, value)], 1)


def test_a_load_that_begins_again_forgets_what_it_had(world: World) -> None:
    world.init()
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, world.log)
    world.coordinator.load(0, world.log.records, 1)
    world.coordinator.load_from(0, None)
    world.coordinator.finish_load(0, world.now)
    assert world.coordinator.transactional_ids == 0
    assert world.coordinator.restore_slice(0, world.now, 100) is False
    assert world.coordinator.load_left(0) == (0, 0)


# ------------------------------------------------------------ after a power failure


def given_ongoing_ids(world: World) -> None:
    world.init("data")
    world.produce(1_000, 0, ORDERS, transactional_id="data")
    world.init("offsets")
    world.add_offsets(1_001, 0, transactional_id="offsets")
    world.init("prepared")
    world.produce(1_002, 0, ORDERS, transactional_id="prepared")


def test_unsynced_data_is_aborted(world: World) -> None:
    given_ongoing_ids(world)
    world.partitions.hold()
    world.end(1_002, 0, transactional_id="prepared")
    world.crash(unsynced_data_lost=True)
    states = {
        found.metadata.transactional_id: found.metadata.state.wire_name
        for found in world.coordinator.transactions()
    }
    assert states == {
        "data": "CompleteAbort",
        "offsets": "Ongoing",  # its records are in a journaled log
        "prepared": "CompleteCommit",  # its data was synced before
    }
    assert world.coordinator.unsettled_partitions == 0
    assert world.end(1_000, 0, transactional_id="data")[0] is INVALID
    assert (False, 1_000, 1) in world.partitions.of(ORDERS)


def test_nothing_is_aborted_without_a_power_failure(world: World) -> None:
    given_ongoing_ids(world)
    world.crash()
    states = [found.metadata.state.wire_name for found in world.coordinator.transactions()]
    assert states == ["Ongoing"] * 3


def test_loss_is_over_when_the_aborts_are_stored(world: World) -> None:
    given_ongoing_ids(world)
    world.storing = False
    world.crash(unsynced_data_lost=True)
    assert world.coordinator.unsettled_partitions == 1
    # Whatever its producer asks meanwhile, it may not be committed.
    assert world.end(1_000, 0, transactional_id="data")[0] is BUSY
    (errors,) = world.produce(1_000, 0, transactional_id="data", add=False)
    assert errors == {ORDERS: BUSY}
    world.store()
    assert world.coordinator.unsettled_partitions == 0


def test_unsynced_data_is_aborted_when_the_log_has_room_again(world: World) -> None:
    given_ongoing_ids(world)
    world.crash_holding(unsynced_data_lost=True, is_full=True)
    world.advance(1_000)
    assert world.coordinator.unsettled_partitions == 1
    assert world.end(1_000, 0, transactional_id="data")[0] is BUSY
    world.logs[0].full = False
    world.advance(1_000)
    assert world.coordinator.unsettled_partitions == 0
    assert world.end(1_000, 0, transactional_id="data")[0] is INVALID


def test_attempts_to_abort_do_not_multiply_while_the_log_is_full(world: World) -> None:
    given_ongoing_ids(world)
    for number in range(3):
        name = f"more-{number}"
        world.init(name)
        world.produce(1_003 + number, 0, ORDERS, transactional_id=name)
    world.crash_holding(unsynced_data_lost=True, is_full=True)
    attempts = 0
    has_room = world.logs[0].has_room

    def counted() -> bool:
        nonlocal attempts
        attempts += 1
        return has_room()

    world.logs[0].has_room = counted  # type: ignore[method-assign]
    world.advance(500)
    assert attempts == 5 * 5  # each of the five ids, every 100 ms
    world.logs[0].full = False
    world.advance(1_000)
    assert world.coordinator.unsettled_partitions == 0


def test_timeout_before_the_abort_of_unsynced_data(world: World) -> None:
    given_ongoing_ids(world)
    world.crash_holding(unsynced_data_lost=True, is_full=True)
    world.now = Now(world.now.mono_ms + 130, world.now.wall_ms + TIMEOUT_MS)  # a late tick
    world.run()
    world.advance(9_820)
    world.logs[0].full = False
    world.advance(1_000)  # the check of timeouts comes before the next attempt
    assert world.coordinator.unsettled_partitions == 0
    assert world.init("data")[0] is NONE


def test_reload_before_the_aborts_are_stored(world: World) -> None:
    given_ongoing_ids(world)
    world.storing = False
    world.crash(unsynced_data_lost=True)
    world.coordinator.on_log_failed(0, world.now)
    world.logs[0] = MemoryLog(world.log.survivors())
    world.storing = True
    world.load(0)
    assert world.coordinator.unsettled_partitions == 0
    assert world.end(1_000, 0, transactional_id="data")[0] is INVALID


def test_new_transactions_after_the_loss_stay(world: World) -> None:
    given_ongoing_ids(world)
    world.crash(unsynced_data_lost=True)
    world.produce(1_000, 1, ORDERS, transactional_id="data")
    world.coordinator.on_log_failed(0, world.now)
    world.load(0)
    (errors,) = world.produce(1_000, 1, ORDERS, transactional_id="data", add=False)
    assert errors == {ORDERS: NONE}
