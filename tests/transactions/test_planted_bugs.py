"""Planted bugs: the random runs find each of the classic defects of a transaction coordinator."""

from collections.abc import Callable
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from seams.now import Now
from tests.transactions.test_at_random import STEPS, Checker, Run
from tests.transactions.world import World
from transactions import shard
from transactions.decide import init_producer_id
from transactions.ending import Ending
from transactions.metadata import TransactionMetadata
from transactions.outcome import TransactionOutcome, Transition
from transactions.shard import TransactionShard
from transactions.transaction import Transaction

SEEDS: Final = 40
Patch = pytest.MonkeyPatch


def fence_keeps_the_epoch(patch: Patch) -> None:
    """The next producer gets the epoch of the one before it."""
    decide = init_producer_id._next_epoch

    def planted(
        metadata: TransactionMetadata, command: init_producer_id.InitProducerId, now: Now
    ) -> TransactionOutcome:
        outcome = decide(metadata, command, now)
        if outcome.transition is None:
            return outcome
        target = replace(outcome.transition.target, producer_epoch=metadata.producer_epoch)
        answer = outcome.transition.answer._replace(producer_epoch=metadata.producer_epoch)
        return TransactionOutcome(transition=Transition(target, answer))

    patch.setattr(init_producer_id, "_next_epoch", planted)


def answer_before_the_record_is_stored(patch: Patch) -> None:
    append = TransactionShard._append

    def planted(
        self: TransactionShard, transaction: Transaction, transition: Transition, now: Now
    ) -> None:
        append(self, transaction, transition, now)
        done, transaction.done = transaction.done, None
        if done is not None:
            done(transition.answer)

    patch.setattr(TransactionShard, "_append", planted)


def complete_before_all_markers(patch: Patch) -> None:
    marked = Ending._marked

    def planted(self: Ending, transaction: Transaction, errors: object, now: Now) -> None:
        transaction.unmarked = frozenset()
        marked(self, transaction, {}, now)
        del errors

    patch.setattr(Ending, "_marked", planted)


def prepared_is_not_finished_after_a_load(patch: Patch) -> None:
    finish = TransactionShard.finish_load

    def planted(self: TransactionShard, now: Now, *, unsynced_data_lost: bool) -> None:
        with pytest.MonkeyPatch.context() as during:
            during.setattr(Ending, "begin", lambda *_: None)
            finish(self, now, unsynced_data_lost=unsynced_data_lost)

    patch.setattr(TransactionShard, "finish_load", planted)


def timeouts_are_forgotten(patch: Patch) -> None:
    patch.setattr(shard, "is_timed_out", lambda *_: False)


def lost_records_are_not_noticed(patch: Patch) -> None:
    patch.setattr(TransactionShard, "_with_unsynced_data", lambda _: ())


def markers_before_the_decision_is_stored(patch: Patch) -> None:
    append = TransactionShard._append

    def planted(
        self: TransactionShard, transaction: Transaction, transition: Transition, now: Now
    ) -> None:
        append(self, transaction, transition, now)
        if transition.target.is_prepared and transition.target.partitions:
            early = Transaction(transition.target)
            self._ending._write_markers(early, now)

    patch.setattr(TransactionShard, "_append", planted)


BUGS: Final[tuple[Callable[[Patch], None], ...]] = (
    fence_keeps_the_epoch,
    answer_before_the_record_is_stored,
    complete_before_all_markers,
    prepared_is_not_finished_after_a_load,
    timeouts_are_forgotten,
    lost_records_are_not_noticed,
    markers_before_the_decision_is_stored,
)


def is_found(seed: int) -> bool:
    random = Random(seed)
    world = World(version=2)
    world.storing = False
    run = Run(random, world, Checker(world))
    for _ in range(3):
        run.start_producer()
    try:
        for _ in range(STEPS):
            run.step()
        run.heal()
    except (AssertionError, KeyError):
        return True
    return world.failures != []


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_bug_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    assert not is_found(0)
    plant(monkeypatch)
    assert any(is_found(seed) for seed in range(SEEDS))
