"""InitProducerId: every check in its order, epochs, fencing, and retries of lost answers."""

import pytest

from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import ErrorCode, ProducerId
from tests.transactions.world import TIMEOUT_MS, World, at
from transactions.events import AbortCause, ProducerInitialized, TransactionPrepared
from transactions.metadata import LAST_CLIENT_EPOCH
from transactions.settings import TransactionSettings

NONE = ErrorCode.NONE
BUSY = (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
FENCED = (ErrorCode.PRODUCER_FENCED, -1, -1)


def given_epoch(world: World, epoch: int) -> None:
    """The transactional id is Empty with this epoch, after a restart."""
    log = world.log
    while True:
        _, _, given = world.init()
        if given == epoch:
            break
        # One record in the place of thousands of requests.
        record = log.records[-1]
        assert record.value is not None
        value = record.value[:10] + (epoch - 1).to_bytes(2, "big") + record.value[12:]
        log.append(((record.key, value),), world.now.wall_ms)
        log.store()
        world.crash()
        log = world.log


# ------------------------------------------------------------ checks of the request


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
@pytest.mark.parametrize("name", [None, "tx"])
def test_half_an_identity_is_invalid(
    world: World, name: str | None, producer_id: int, epoch: int
) -> None:
    assert world.init(name, producer_id, epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_null_id_gets_a_new_producer_id_each_time(world: World) -> None:
    assert world.init(None, timeout_ms=-5) == (NONE, 1_000, 0)
    assert world.init(None, 1_000, 0) == (NONE, 1_001, 0)
    assert world.log.records == []


def test_null_id_needs_no_coordinator() -> None:
    world = World(partition_count=0)
    assert world.init(None) == (NONE, 1_000, 0)
    assert world.init() == (ErrorCode.NOT_COORDINATOR, -1, -1)


def test_null_id_while_no_block_of_ids_can_be_reserved(world: World) -> None:
    world.ids.is_empty = True
    loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert world.init(None) == loading
    assert world.init() == loading
    assert world.coordinator.transactional_ids == 0


def test_empty_id_is_invalid(world: World) -> None:
    assert world.init("") == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeout_out_of_range(world: World, timeout_ms: int) -> None:
    assert world.init(timeout_ms=timeout_ms) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1, -1)


def test_largest_timeout(world: World) -> None:
    assert world.init(timeout_ms=900_000) == (NONE, 1_000, 0)
    assert world.metadata.timeout_ms == 900_000


def test_id_that_no_record_can_hold(world: World) -> None:
    assert world.init("\ufffd" * 11_000) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)


def test_more_ids_than_allowed() -> None:
    world = World(TransactionSettings(transactional_ids_max=1))
    assert world.init("a")[0] is NONE
    assert world.init("b") == (ErrorCode.POLICY_VIOLATION, -1, -1)
    assert world.init("a") == (NONE, 1_000, 1)


# ------------------------------------------------------------ epochs


def test_each_request_without_an_identity_gets_the_next_epoch(world: World) -> None:
    assert world.init() == (NONE, 1_000, 0)
    assert world.init() == (NONE, 1_000, 1)
    assert world.init() == (NONE, 1_000, 2)


def test_unknown_id_ignores_the_identity(world: World) -> None:
    assert world.init("tx", 77, 7) == (NONE, 1_000, 0)


def test_a_producer_goes_on_and_repeats_its_request(world: World) -> None:
    world.init()
    assert world.init("tx", 1_000, 0) == (NONE, 1_000, 1)
    assert world.init("tx", 1_000, 0) == (NONE, 1_000, 1)  # its answer was lost
    assert world.init("tx", 1_000, 1) == (NONE, 1_000, 2)
    assert world.init("tx", 1_000, 0) == FENCED


def test_a_new_producer_fences_the_one_that_would_go_on(world: World) -> None:
    world.init()
    world.init("tx", 1_000, 0)
    world.init()
    assert world.init("tx", 1_000, 1) == FENCED
    assert world.init("tx", 1_000, 0) == FENCED


def test_another_producer_id_is_fenced(world: World) -> None:
    world.init()
    assert world.init("tx", 999, 0) == FENCED


@pytest.mark.parametrize(
    ("v", "error_code"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)],
)
def test_fenced_by_version(world: World, v: int, error_code: ErrorCode) -> None:
    world.init()
    assert world.init("tx", 999, 0, v=v) == (error_code, -1, -1)


def test_a_restart_forgets_the_last_epoch(world: World) -> None:
    world.init()
    world.init("tx", 1_000, 0)
    world.crash()
    assert world.init("tx", 1_000, 0) == FENCED
    assert world.init("tx", 1_000, 1) == (NONE, 1_000, 2)


def test_epochs_are_used_up(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    (_, new_id, epoch) = world.init()
    assert (new_id, epoch) == (1_001, 0)
    assert world.init("tx", 1_000, LAST_CLIENT_EPOCH) == FENCED


def test_epochs_of_a_known_producer_are_used_up_and_the_answer_is_lost(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    assert world.init("tx", 1_000, LAST_CLIENT_EPOCH) == (NONE, 1_001, 0)
    assert world.init("tx", 1_000, LAST_CLIENT_EPOCH) == (NONE, 1_001, 0)


def test_record_and_event(world: World) -> None:
    world.init()
    assert world.state == "Empty"
    assert (world.metadata.timeout_ms, world.metadata.started_at_ms) == (TIMEOUT_MS, -1)
    (event,) = world.happened(ProducerInitialized)
    assert isinstance(event, ProducerInitialized)
    assert (event.producer_id, event.producer_epoch, event.is_new) == (1_000, 0, True)


# ------------------------------------------------------------ in a transaction


def test_answer_waits_for_the_record_and_others_are_refused_meanwhile(world: World) -> None:
    world.storing = False
    request = InitProducerIdRequest("tx", TIMEOUT_MS, ProducerId(-1), -1)
    first = world.send(request)
    assert first.answers == []
    assert world.init() == BUSY
    world.store()
    (answer,) = first.answers
    assert isinstance(answer, InitProducerIdResponse)
    assert (answer.producer_id, answer.producer_epoch) == (1_000, 0)


def test_ongoing_transaction_is_aborted_first(world: World) -> None:
    """Trap: fencing without aborting leaves the old data to the next commit."""
    world.init()
    world.produced(1_000, 0)
    assert world.init() == BUSY
    assert world.partitions.of(at("orders")) == [(False, 1_000, 1)]
    assert world.state == "CompleteAbort"
    assert world.init() == (NONE, 1_000, 2)  # 1 was never given out
    (prepared,) = world.happened(TransactionPrepared)
    assert isinstance(prepared, TransactionPrepared)
    assert prepared.cause is AbortCause.NEW_PRODUCER


def test_ongoing_transaction_is_aborted_below_version_2(world: World) -> None:
    world.version = 1
    world.init()
    world.add(1_000, 0)
    assert world.init() == BUSY
    assert world.partitions.of(at("orders")) == [(False, 1_000, 1)]
    assert world.init() == (NONE, 1_000, 2)


def test_a_producer_with_a_fenced_identity_does_not_abort(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    assert world.init("tx", 999, 0) == FENCED
    assert world.state == "Ongoing"


def test_abort_is_under_way(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    assert world.init() == BUSY
    assert world.init() == BUSY
    world.partitions.release()
    world.run()
    assert world.init() == (NONE, 1_000, 2)


def test_ongoing_transaction_with_the_last_epoch(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    world.produced(1_000, LAST_CLIENT_EPOCH)
    assert world.init() == BUSY
    assert world.partitions.of(at("orders")) == [(False, 1_000, 32_767)]
    error_code, new_id, epoch = world.init()
    assert (error_code, epoch) == (NONE, 1)
    assert new_id == 1_001


def test_something_else_is_decided_while_a_producer_id_is_reserved(world: World) -> None:
    world.ids.hold()
    request = InitProducerIdRequest("tx", TIMEOUT_MS, ProducerId(-1), -1)
    tokens = [world.send(request), world.send(request)]
    world.ids.give()
    world.run()
    found = [answer for token in tokens for answer in token.answers]
    codes = [a.error_code for a in found if isinstance(a, InitProducerIdResponse)]
    assert codes == [NONE, ErrorCode.CONCURRENT_TRANSACTIONS]
