"""Timeouts and expiry: what the coordinator does by itself as time passes."""

import pytest
from msgspec.structs import replace

from protocol.names import ErrorCode
from tests.transactions.world import TX, World, at
from transactions.events import AbortCause, TransactionalIdExpired, TransactionPrepared
from transactions.metadata import TransactionState
from transactions.settings import TransactionSettings
from transactions.shard import EXPIRED_IDS_PER_TICK_MAX

NONE = ErrorCode.NONE
CHECK_MS = 10_000
DAY_MS = 86_400_000
SELDOM = TransactionSettings(
    transaction_abort_timed_out_transaction_cleanup_interval_ms=DAY_MS,
    transactional_id_expiration_ms=DAY_MS,
)
"""Few ticks a day, for tests in which days pass."""


def given_timed_out(world: World) -> None:
    world.init(timeout_ms=700)
    world.produced(1_000, 0)
    world.advance(CHECK_MS)
    assert world.state == "CompleteAbort"


def test_ongoing_transaction_is_aborted_with_the_next_epoch(world: World) -> None:
    given_timed_out(world)
    assert world.partitions.of(at("orders")) == [(False, 1_000, 1)]
    (prepared,) = world.happened(TransactionPrepared)
    assert isinstance(prepared, TransactionPrepared)
    assert prepared.cause is AbortCause.TIMEOUT


@pytest.mark.parametrize("version", [0, 1])
def test_ongoing_transaction_is_aborted_below_version_2(version: int) -> None:
    world = World(version=version)
    world.init(timeout_ms=700)
    world.add(1_000, 0)
    world.advance(CHECK_MS)
    assert world.partitions.of(at("orders")) == [(False, 1_000, 1)]
    assert world.end(1_000, 0, v=4)[0] is ErrorCode.PRODUCER_FENCED
    # Below version 2 the last epoch is not known, so the producer cannot go on.
    assert world.init("tx", 1_000, 0)[0] is ErrorCode.PRODUCER_FENCED


def test_time_runs_from_the_first_partition(world: World) -> None:
    world.init(timeout_ms=25_000)
    world.advance(9_000)
    world.produced(1_000, 0)
    for partition in (1, 2):
        world.advance(11_000)
        assert world.state == "Ongoing"
        world.produced(1_000, 0, at("orders", partition))
    world.advance(9_000)  # 31 s after the first, at the check after 40 s
    assert world.state == "CompleteAbort"


def test_exactly_the_timeout_is_not_too_long(world: World) -> None:
    world.init(timeout_ms=CHECK_MS)
    world.produced(1_000, 0)
    world.advance(CHECK_MS)
    assert world.state == "Ongoing"
    world.advance(CHECK_MS)
    assert world.state == "CompleteAbort"


def test_what_the_producer_hears(world: World) -> None:
    given_timed_out(world)
    assert world.produced(1_000, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.produced(1_000, 0, add=False) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.add(1_000, 0) is ErrorCode.PRODUCER_FENCED
    assert world.add(1_000, 0, v=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.add_offsets(1_000, 0) is ErrorCode.PRODUCER_FENCED
    assert world.end(1_000, 0, v=4)[0] is ErrorCode.PRODUCER_FENCED
    assert world.end(1_000, 0, v=1)[0] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.end(1_000, 0) == (ErrorCode.INVALID_TXN_STATE, -1, -1)
    assert world.end(1_000, 0, commit=False) == (NONE, 1_000, 1)  # looks like a repeated request
    assert world.init("tx", 1_000, 0) == (NONE, 1_000, 1)  # and so does this
    assert world.init() == (NONE, 1_000, 2)


def test_timeout_that_passed_while_down(world: World) -> None:
    """Trap: an open transaction that is never aborted."""
    world.init(timeout_ms=700)
    world.produced(1_000, 0)
    world.crash()
    assert world.state == "Ongoing"
    world.advance(CHECK_MS)
    assert world.state == "CompleteAbort"


def test_transaction_of_a_two_phase_commit_has_no_timeout() -> None:
    world = World(replace(SELDOM, transaction_max_timeout_ms=2_147_483_647))
    world.init(timeout_ms=2_147_483_647)
    world.produced(1_000, 0)
    world.advance(2_147_483_647 + 2 * DAY_MS)
    assert world.state == "Ongoing"


def test_full_log_delays_the_abort(world: World) -> None:
    world.init(timeout_ms=700)
    world.produced(1_000, 0)
    world.log.full = True
    world.advance(3 * CHECK_MS)
    assert world.state == "Ongoing"
    world.log.full = False
    world.advance(CHECK_MS)
    assert world.state == "CompleteAbort"


# ------------------------------------------------------------ expiry


def expired(world: World) -> bool:
    return world.coordinator.transaction(TX) is None


@pytest.fixture
def brief() -> World:
    """Transactional ids expire after a day, looked for every hour."""
    return World(SELDOM)


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_unused_id_expires(brief: World, state: str) -> None:
    brief.init()
    if state != "Empty":
        brief.produced(1_000, 0)
        brief.end(1_000, 0, commit=state == "CompleteCommit")
    assert brief.state == state
    brief.advance(DAY_MS - 1)
    assert not expired(brief)
    brief.advance(3_600_000)
    assert expired(brief)
    assert brief.log.records[-1].value is None
    assert brief.log.records[-1].key == brief.log.records[0].key
    (event,) = brief.happened(TransactionalIdExpired)
    assert isinstance(event, TransactionalIdExpired)
    assert (event.transactional_id, event.producer_id) == (TX, 1_000)


def test_what_the_producer_of_an_expired_id_hears(brief: World) -> None:
    brief.init()
    brief.advance(2 * DAY_MS)
    other = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert brief.add(1_000, 0) is other
    assert brief.produced(1_000, 0) is other
    assert brief.end(1_000, 0)[0] is other
    assert brief.describe()[0].error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert brief.init("tx", 1_000, 0) == (NONE, 1_001, 0)
    brief.crash()
    assert brief.init() == (NONE, 1_001, 1)


def test_ongoing_transaction_does_not_expire() -> None:
    world = World(replace(SELDOM, transaction_max_timeout_ms=10 * DAY_MS))
    world.init(timeout_ms=10 * DAY_MS)
    world.produced(1_000, 0)
    world.advance(5 * DAY_MS)
    assert world.state == "Ongoing"


def test_id_is_pending_until_its_tombstone_is_stored(brief: World) -> None:
    brief.init()
    brief.storing = False
    brief.advance(2 * DAY_MS)
    assert brief.transaction.pending is TransactionState.DEAD
    assert brief.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    answers = brief.produce(1_000, 0, wait=True)
    brief.store()
    brief.run()
    assert expired(brief)
    assert answers == [{at("orders"): ErrorCode.INVALID_PRODUCER_ID_MAPPING}]


def test_crash_before_the_tombstone_is_stored(brief: World) -> None:
    brief.init()
    brief.storing = False
    brief.advance(2 * DAY_MS)
    brief.storing = True
    brief.crash()
    assert brief.init() == (NONE, 1_000, 1)


def test_many_ids_expire_in_batches(brief: World) -> None:
    count = EXPIRED_IDS_PER_TICK_MAX + 5
    for number in range(count):
        brief.init(f"tx-{number}")
    brief.advance(2 * DAY_MS)
    assert brief.coordinator.transactional_ids == 0
    assert [len(batch) for batch in brief.log.batches[count:]] == [EXPIRED_IDS_PER_TICK_MAX, 5]


def test_long_ids_expire_in_batches_that_fit() -> None:
    world = World(replace(SELDOM, max_batch_bytes=10_000))
    for number in range(5):
        world.init(f"{number}" * 3_000)
    world.advance(2 * DAY_MS)
    assert world.coordinator.transactional_ids == 0
    assert [len(batch) for batch in world.log.batches[5:]] == [3, 2]


def test_full_log_delays_the_expiry(brief: World) -> None:
    brief.init()
    brief.advance(DAY_MS - 1)
    brief.log.full = True
    brief.advance(10_000)
    assert not expired(brief)
    brief.log.full = False
    brief.advance(1_000)
    assert expired(brief)
