"""Simulated transactions: exactly once in every world, and planted bugs that are found.

`make test` runs a few seeds; TRANSACTION_WORLDS is how many (`make long-transaction-sim`: 2,000).
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from coordinator.transactional_commits import TransactionalCommits
from protocol.names import ErrorCode
from seams.now import Now
from seams.transactions import Done, TransactionMarker
from storage.api import TopicPartition
from tests.simulator.sim import Broken
from tests.simulator.transaction_run import simulate_transactions
from topics import markers
from topics.markers import TransactionMarkers
from topics.partition import Partition
from topics.producers import ProducerStates
from transactions.ending import Ending
from transactions.shard import TransactionShard

WORLDS = int(os.environ.get("TRANSACTION_WORLDS", "16"))
STEPS = 4_000
PLANTED_STEPS = 2_000
PLANTED_SEEDS = range(60)

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("seed", range(WORLDS))
def test_every_transaction_is_applied_exactly_once(seed: int) -> None:
    run = simulate_transactions(seed, STEPS)
    assert all(progress.commits for progress in run.progress.values())


def open_transactions_are_read(patch: Patch) -> None:
    """read_committed reads up to the high watermark."""

    def last_stable_offset(_partition: Partition, high_watermark: int) -> int:
        return high_watermark

    patch.setattr(Partition, "last_stable_offset", last_stable_offset)


def aborted_transactions_are_not_listed(patch: Patch) -> None:
    """Consumers are not told which records to skip."""
    patch.setattr("storage.log.partition_log.aborted_among", lambda _segments, _batches: ())


def a_commit_is_decided_before_its_data_is_synced(patch: Patch) -> None:
    """A power failure takes records of a committed transaction."""

    def sync(
        _markers: TransactionMarkers, partitions: Sequence[TopicPartition], done: Done
    ) -> None:
        done(dict.fromkeys(partitions, ErrorCode.NONE))

    patch.setattr(TransactionMarkers, "sync", sync)


def markers_are_not_synced(patch: Patch) -> None:
    """The transaction is complete, its marker is only in the page cache."""
    patch.setattr(Partition, "flush", lambda _partition: None)


def an_answer_does_not_wait_for_its_record(patch: Patch) -> None:
    """A transition is visible when it is appended, not when it is stored."""
    append = TransactionShard._append

    def appended(shard: Any, transaction: Any, transition: Any, now: Now) -> None:
        append(shard, transaction, transition, now)
        shard._stored.pop()[1](now)

    patch.setattr(TransactionShard, "_append", appended)


def a_decision_is_forgotten_by_a_start(patch: Patch) -> None:
    """A prepared transaction is not completed after the load."""
    finish = TransactionShard.finish_load

    def finish_load(shard: TransactionShard, now: Now, *, unsynced_data_lost: bool) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Ending, "begin", lambda _ending, _transaction, _now: None)
            finish(shard, now, unsynced_data_lost=unsynced_data_lost)

    patch.setattr(TransactionShard, "finish_load", finish_load)


def lost_data_is_committed(patch: Patch) -> None:
    """A power failure took records of an ongoing transaction, which then goes on."""
    finish = TransactionShard.finish_load

    def finish_load(shard: TransactionShard, now: Now, *, unsynced_data_lost: bool) -> None:
        assert unsynced_data_lost in (True, False)
        finish(shard, now, unsynced_data_lost=False)

    patch.setattr(TransactionShard, "finish_load", finish_load)


def repeated_batches_are_appended(patch: Patch) -> None:
    """A batch whose answer was lost is stored twice."""
    check = ProducerStates.check

    def checked(states: ProducerStates, *arguments: Any) -> Any:
        found = check(states, *arguments)
        return found if type(found).__name__ == "RejectedSequence" else None

    patch.setattr(ProducerStates, "check", checked)


def epochs_of_producers_are_not_checked(patch: Patch) -> None:
    """A fenced producer goes on writing."""
    patch.setattr(ProducerStates, "check", lambda *_arguments: None)


def a_restart_forgets_open_transactions(patch: Patch) -> None:
    """The last stable offset is the log end after a start."""
    replay = ProducerStates.replay

    def replayed(states: ProducerStates, batches: Any) -> None:
        replay(states, batches)
        for producer_id in list(states.entries):
            states.entries.pop(producer_id)

    patch.setattr(ProducerStates, "replay", replayed)


def offsets_are_committed_without_the_transaction(patch: Patch) -> None:
    """TxnOffsetCommit is not verified: a fenced producer may move the group."""

    def verify(commits: TransactionalCommits, commit: Any, _: int, token: Any, now: Now) -> None:
        commits.verified(commit, token, now)

    patch.setattr(TransactionalCommits, "_verify", verify)


def markers_of_offsets_are_not_written(patch: Patch) -> None:
    """The group coordinator says that it has the marker, and has not."""

    def write_marker(
        _commits: TransactionalCommits,
        _partition: int,
        _marker: TransactionMarker,
        _now: Now,
        done: Callable[[ErrorCode], None],
    ) -> None:
        done(ErrorCode.NONE)

    patch.setattr(TransactionalCommits, "write_marker", write_marker)


def every_marker_commits(patch: Patch) -> None:
    """Aborted records become visible."""
    append = markers.append_marker

    def appended(partition: Partition, marker: TransactionMarker, *rest: Any, **more: Any) -> Any:
        changed = TransactionMarker(
            marker.producer_id,
            marker.producer_epoch,
            True,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        return append(partition, changed, *rest, **more)

    patch.setattr(markers, "append_marker", appended)


# Each with the faults that bring it out.
CALM: tuple[str, ...] = ()
KILLS = ("kill", "client", "lossy")
POWER = ("power", "torn")
PLANTED = [
    (open_transactions_are_read, CALM),
    (aborted_transactions_are_not_listed, CALM),
    (a_commit_is_decided_before_its_data_is_synced, POWER),
    (markers_are_not_synced, POWER),
    (an_answer_does_not_wait_for_its_record, POWER),
    (a_decision_is_forgotten_by_a_start, KILLS),
    (lost_data_is_committed, POWER),
    (repeated_batches_are_appended, ("lossy",)),
    (epochs_of_producers_are_not_checked, ("lossy", "double")),
    (a_restart_forgets_open_transactions, KILLS),
    (offsets_are_committed_without_the_transaction, ("double", "lossy")),
    (markers_of_offsets_are_not_written, CALM),
    (every_marker_commits, CALM),
]


@pytest.mark.pure
@pytest.mark.parametrize(("plant", "weather"), PLANTED, ids=[each[0].__name__ for each in PLANTED])
def test_a_planted_bug_is_found(
    plant: Callable[[Patch], None], weather: tuple[str, ...], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    for seed in PLANTED_SEEDS:
        try:
            simulate_transactions(seed, PLANTED_STEPS, weather=weather)
        except (Broken, AssertionError):
            return
    pytest.fail(f"not found by {len(PLANTED_SEEDS)} seeds")
