"""EndTxn: the tables of both transaction versions, retries, and the order of what it does."""

import pytest

from protocol.messages.end_txn import EndTxnResponse
from protocol.names import ErrorCode
from tests.transactions.test_init_producer_id import given_epoch
from tests.transactions.world import World, at
from transactions.metadata import LAST_CLIENT_EPOCH

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED = ErrorCode.PRODUCER_FENCED
INVALID = ErrorCode.INVALID_TXN_STATE
OTHER = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def given_state(world: World, state: str, v: int) -> tuple[int, int]:
    """The producer id and epoch that are stored, after `state` was reached with this version."""
    world.init()
    if state != "Empty":
        world.add(1_000, 0)
    if state.startswith("Prepare"):
        world.partitions.hold()
    if state not in ("Empty", "Ongoing"):
        world.end(1_000, 0, commit=state.endswith("Commit"), v=v)
    assert world.state == state
    return world.metadata.producer_id, world.metadata.producer_epoch


@pytest.mark.parametrize("v", [0, 4, 5])
def test_checks_before_the_state(world: World, v: int) -> None:
    assert world.end(1_000, 0, v=v)[0] is OTHER
    assert world.end(1_000, 0, transactional_id="", v=v)[0] is ErrorCode.INVALID_REQUEST
    world.init()
    assert world.end(999, 0, v=v)[0] is OTHER


@pytest.mark.parametrize("v", range(6))
@pytest.mark.parametrize("epoch", [1, 3])
def test_other_epoch_is_fenced(world: World, v: int, epoch: int) -> None:
    for _ in range(3):
        world.init()  # the stored epoch is 2; in Empty there is nothing to be repeated
    error_code = ErrorCode.INVALID_PRODUCER_EPOCH if v < 2 else FENCED
    assert world.end(1_000, epoch, v=v) == (error_code, -1, -1)
    world.add(1_000, 2)
    assert world.end(1_000, epoch, v=v) == (error_code, -1, -1)


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", INVALID, INVALID),
        ("Ongoing", NONE, NONE),
        ("PrepareCommit", BUSY, BUSY),  # pending comes first; alone: BUSY, INVALID
        ("PrepareAbort", BUSY, BUSY),
        ("CompleteCommit", NONE, INVALID),
        ("CompleteAbort", INVALID, NONE),
    ],
)
@pytest.mark.parametrize("v", [0, 4])
def test_table_of_older_versions(state: str, commit: ErrorCode, abort: ErrorCode, v: int) -> None:
    for is_commit, expected in ((True, commit), (False, abort)):
        world = World(version=1)
        identity = given_state(world, state, v)
        assert world.end(*identity, commit=is_commit, v=v) == (expected, -1, -1)


NEXT = "the next epoch"
STORED = "the stored epoch"


@pytest.mark.parametrize(
    ("state", "abort_retry", "abort_current", "commit_retry", "commit_current"),
    [
        ("Empty", FENCED, NEXT, FENCED, INVALID),
        ("Ongoing", FENCED, NEXT, FENCED, NEXT),
        ("CompleteAbort", STORED, NEXT, INVALID, INVALID),
        ("CompleteCommit", INVALID, NEXT, STORED, INVALID),
        ("PrepareCommit", BUSY, BUSY, BUSY, BUSY),
        ("PrepareAbort", BUSY, BUSY, BUSY, BUSY),
    ],
)
def test_table_of_version_2(
    state: str,
    abort_retry: object,
    abort_current: object,
    commit_retry: object,
    commit_current: object,
) -> None:
    cases = (
        (False, 1, abort_retry),
        (False, 0, abort_current),
        (True, 1, commit_retry),
        (True, 0, commit_current),
    )
    for commit, behind, expected in cases:
        world = World()
        producer_id, epoch = given_state(world, state, 5)
        answer = world.end(producer_id, epoch - behind, commit=commit)
        if expected is NEXT:
            assert answer == (NONE, producer_id, epoch + 1), (state, commit, behind)
        elif expected is STORED:
            assert answer == (NONE, producer_id, epoch), (state, commit, behind)
        else:
            assert answer == (expected, -1, -1), (state, commit, behind)


@pytest.mark.parametrize("epoch", [-2, 2])
def test_epoch_beyond_a_retry_is_fenced(world: World, epoch: int) -> None:
    world.init()
    world.init()
    world.init()
    world.produced(1_000, 2)
    world.end(1_000, 2)
    assert world.end(1_000, 3 + epoch)[0] is FENCED


def test_late_end_of_the_transaction_before_does_not_end_the_next(world: World) -> None:
    """Trap: a repeated EndTxn that ends the next transaction."""
    world.init()
    world.produced(1_000, 0)
    world.end(1_000, 0)
    world.produced(1_000, 1)
    assert world.end(1_000, 0) == (FENCED, -1, -1)
    assert world.end(1_000, 0, commit=False) == (FENCED, -1, -1)
    assert world.state == "Ongoing"


@pytest.mark.parametrize("commit", [True, False])
def test_fenced_producer_does_not_get_the_epoch_of_an_older_client(
    world: World, commit: bool
) -> None:
    """Kafka differs: it takes this for a repeated request, and answers the epoch of the other."""
    world.init()
    world.init()
    world.add(1_000, 1)
    world.end(1_000, 1, commit=commit, v=4)
    assert world.end(1_000, 0, commit=commit) == (FENCED, -1, -1)


def test_aborts_of_no_transaction_write_no_marker(world: World) -> None:
    world.init()
    assert world.end(1_000, 0, commit=False) == (NONE, 1_000, 1)
    assert world.end(1_000, 1, commit=False) == (NONE, 1_000, 2)
    assert world.partitions.markers == []
    assert world.metadata.started_at_ms == world.now.wall_ms


# ------------------------------------------------------------ the last epoch


def test_epochs_are_used_up_with_version_2(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    world.produced(1_000, LAST_CLIENT_EPOCH)
    assert world.end(1_000, LAST_CLIENT_EPOCH) == (NONE, 1_001, 0)
    assert world.partitions.of(at("orders")) == [(True, 1_000, 32_767)]
    # The answer was lost: the same again, from EndTxn and from InitProducerId.
    assert world.end(1_000, LAST_CLIENT_EPOCH) == (NONE, 1_001, 0)
    assert world.end(1_000, LAST_CLIENT_EPOCH, commit=False) == (INVALID, -1, -1)
    assert world.init("tx", 1_000, LAST_CLIENT_EPOCH) == (NONE, 1_001, 0)
    assert world.produced(1_000, LAST_CLIENT_EPOCH) is OTHER


def test_epochs_are_used_up_and_the_coordinator_restarts(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    world.produced(1_000, LAST_CLIENT_EPOCH)
    world.partitions.hold()
    world.end(1_000, LAST_CLIENT_EPOCH)
    world.crash()
    assert world.end(1_000, LAST_CLIENT_EPOCH) == (NONE, 1_001, 0)


def test_epochs_are_used_up_with_older_requests(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    world.add(1_000, LAST_CLIENT_EPOCH)
    assert world.end(1_000, LAST_CLIENT_EPOCH, v=4) == (NONE, -1, -1)
    assert world.partitions.of(at("orders")) == [(True, 1_000, LAST_CLIENT_EPOCH)]
    assert world.init() == (NONE, 1_001, 0)


def test_no_producer_id_for_the_next_transaction(world: World) -> None:
    given_epoch(world, LAST_CLIENT_EPOCH)
    world.produced(1_000, LAST_CLIENT_EPOCH)
    world.ids.is_empty = True
    loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert world.end(1_000, LAST_CLIENT_EPOCH) == loading
    assert world.state == "Ongoing"


def test_request_of_version_2_at_level_0(world: World) -> None:
    """Kafka leaves the id pending forever; here the level says how records look, no more."""
    world.version = 0
    world.init()
    assert world.produced(1_000, 0) is NONE
    assert world.end(1_000, 0) == (NONE, 1_000, 1)
    world.crash()
    assert world.state == "CompleteCommit"
    assert world.end(1_000, 0) == (NONE, 1_000, 1)


# ------------------------------------------------------------ what is answered when


def test_order_of_durability_of_a_commit(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.storing = False
    world.partitions.hold(syncs=True)
    records = len(world.log.records)

    ended = world.send(world.end_request(1_000, 0))
    assert world.partitions.synced == [(at("orders"),)]
    assert len(world.log.records) == records  # nothing is decided before the data is synced

    held, world.partitions.held = world.partitions.held or [], []
    for work in held:
        work()
    world.run()
    assert len(world.log.records) == records + 1
    assert (ended.answers, world.partitions.held, world.state) == ([], [], "Ongoing")

    world.store()  # Prepare*: answered before any marker
    (answer,) = ended.answers
    assert isinstance(answer, EndTxnResponse)
    assert answer.error_code is NONE
    assert (len(world.partitions.held), world.partitions.markers) == (1, [])
    assert world.state == "PrepareCommit"

    world.partitions.release()
    world.run()
    assert world.partitions.of(at("orders")) == [(True, 1_000, 1)]
    assert world.state == "PrepareCommit"  # Complete* is not stored
    assert len(world.log.records) == records + 2
    assert world.produced(1_000, 1) is BUSY
    world.store()
    assert world.state == "CompleteCommit"


def test_commit_without_partitions_needs_no_sync(world: World) -> None:
    world.init()
    world.add_each(1_000, 0)
    assert world.end(1_000, 0) == (NONE, 1_000, 1)
    assert world.partitions.synced == []
