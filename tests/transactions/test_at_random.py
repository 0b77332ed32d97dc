"""Random requests: late storing, crashes and failing markers, and what must hold whatever happens.

Each run is drawn from a seed. Producers of two transactional ids begin, add, end and give up at
random; records are stored late; partitions refuse to sync or to take markers for a while; the
process is killed and loads what was stored. A checker follows what clients were told and what
partitions were given:

- an epoch is never given to two producers, nor given again after a later one;
- a decision that was stored is never reversed, and no partition gets both;
- the epochs of a partition's markers never go backwards, nor those of its coordinator;
- a partition has its marker before the transaction is completed;
- what a client was told outlives every crash;
- a transaction that was open when the power failed is not committed;
- when everything works again each transaction that was decided is completed, each that was
  abandoned is aborted after its timeout, and each transactional id can be used.
"""

from random import Random
from typing import Final

import pytest
from msgspec import Struct, field

from protocol.messages.end_txn import EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import ErrorCode, ProducerId
from seams.transactions import PartitionErrors, TransactionMarker
from storage.api import StoredRecord, TopicPartition
from tests.transactions.world import Token, World, at
from transactions.events import TransactionEvent
from transactions.metadata import COMPLETED, TransactionMetadata, TransactionState
from transactions.records import read_transaction_key, read_transaction_value
from transactions.settings import TransactionSettings

RUNS: Final = 60
STEPS: Final = 250
NAMES: Final = ("a", "b")
PARTITIONS: Final = (at("orders"), at("orders", 1), at("payments"))
TIMEOUT_MS: Final = 30_000
RECOVERY_MS: Final = 120_000
NONE: Final = ErrorCode.NONE
SOMETIMES_REFUSED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)

Identity = tuple[int, int]


class Producer(Struct):
    """A client: one incarnation of a producer of a transactional id."""

    name: str
    number: int
    identity: Identity | None = None
    initializing: Token | None = None
    ending: tuple[Token, bool, int] | None = None  # its request, commit?, its version
    adding: list[PartitionErrors] | None = None
    is_open: bool = False
    is_version_2: bool = True


class Checker:
    """What must hold, checked against all that was said and written."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.owners: dict[tuple[str, Identity], int] = {}
        self.newest: dict[str, Identity] = {}
        self.decided: dict[tuple[str, Identity], bool] = {}
        self.lost: set[tuple[str, int, int, int]] = set()
        self.final: set[tuple[str, Identity]] = set()  # with transaction version 2
        self.ids: dict[int, str] = {}
        self.written = 0
        self.last: dict[str, TransactionMetadata] = {}
        self.marker_epochs: dict[tuple[TopicPartition, int], int] = {}
        self.coordinator_epochs: dict[TopicPartition, int] = {}
        world.partitions.on_marker = self.marker

    def given(self, producer: Producer, identity: Identity) -> None:
        """InitProducerId gave this identity to the producer; each is given once."""
        owner = self.owners.setdefault((producer.name, identity), producer.number)
        assert owner == producer.number, f"{identity} was given to two producers"
        newest = self.newest.get(producer.name, (-1, -1))
        assert identity >= newest, f"{identity} was given after {newest}"
        self.newest[producer.name] = identity
        assert self.ids.setdefault(identity[0], producer.name) == producer.name

    def ended(self, producer: Producer, identity: Identity, *, commit: bool) -> None:
        """EndTxn was answered with success: it is decided so, once and for all."""
        decided = self.decided.get((producer.name, identity))
        assert decided is commit, f"{identity} was told {commit}, stored {decided}"

    def check(self) -> None:
        """Check the records that were stored since the last time."""
        stored = self.world.log.survivors()
        for record in stored[self.written :]:
            assert isinstance(record, StoredRecord)
            name = read_transaction_key(record.key)
            assert record.value is not None
            metadata = read_transaction_value(name, record.value)
            before = self.last.get(name)
            self._transition(name, before, metadata)
            self.last[name] = metadata
        self.written = len(stored)

    def power_failed(self) -> None:
        """Records of open transactions may be gone."""
        self.check()
        for metadata in self.last.values():
            if metadata.state is TransactionState.ONGOING and metadata.partitions:
                self.lost.add(_begun(metadata))

    def _transition(
        self, name: str, before: TransactionMetadata | None, metadata: TransactionMetadata
    ) -> None:
        if before is None:
            return
        legal = LEGAL_BEFORE[metadata.state]
        assert before.state in legal, f"{before.state.wire_name} -> {metadata.state.wire_name}"
        if metadata.is_prepared:
            key = (name, (before.producer_id, before.producer_epoch))
            if metadata.client_transaction_version == 2:
                assert key not in self.final, "decided twice"
                self.final.add(key)
            if metadata.is_commit:
                assert _begun(before) not in self.lost, (
                    "records of a committed transaction are lost"
                )
            self.decided[key] = metadata.is_commit  # an older client goes on with its epoch
        if metadata.state in COMPLETED:
            assert before.is_commit is metadata.is_commit
            for partition in before.partitions:
                assert self._has_marker(partition, before), f"{partition} has no marker"

    def _has_marker(self, partition: TopicPartition, metadata: TransactionMetadata) -> bool:
        return any(
            at_partition == partition
            and marker.producer_id == metadata.producer_id
            and marker.producer_epoch == metadata.producer_epoch
            and marker.is_commit is metadata.is_commit
            for at_partition, marker in self.world.partitions.markers
        )

    def marker(self, partition: TopicPartition, marker: TransactionMarker) -> None:
        """A partition takes a marker."""
        self.check()
        key = (partition, marker.producer_id)
        assert marker.producer_epoch >= self.marker_epochs.get(key, -1), "an epoch went backwards"
        self.marker_epochs[key] = marker.producer_epoch
        assert marker.coordinator_epoch >= self.coordinator_epochs.get(partition, -1)
        self.coordinator_epochs[partition] = marker.coordinator_epoch
        # Durability 2: the decision that it carries is stored.
        name = self.ids[marker.producer_id]
        last = self.last[name]
        assert last.is_prepared, f"a marker in {last.state.wire_name}"
        assert last.is_commit is marker.is_commit


LEGAL_BEFORE: Final = {
    TransactionState.EMPTY: {TransactionState.EMPTY, *COMPLETED},
    TransactionState.ONGOING: {TransactionState.ONGOING, TransactionState.EMPTY, *COMPLETED},
    TransactionState.PREPARE_COMMIT: {TransactionState.ONGOING},
    TransactionState.PREPARE_ABORT: {TransactionState.ONGOING, TransactionState.EMPTY, *COMPLETED},
    TransactionState.COMPLETE_COMMIT: {TransactionState.PREPARE_COMMIT},
    TransactionState.COMPLETE_ABORT: {TransactionState.PREPARE_ABORT},
}


def _begun(metadata: TransactionMetadata) -> tuple[str, int, int, int]:
    """Names an ongoing transaction; an abort by the coordinator raises the epoch."""
    name, producer_id = metadata.transactional_id, metadata.producer_id
    return name, producer_id, metadata.producer_epoch, metadata.started_at_ms


class Run(Struct):
    random: Random
    world: World
    checker: Checker
    producers: list[Producer] = field(default_factory=list)
    incarnations: int = 0

    def step(self) -> None:
        random, world = self.random, self.world
        action = random.random()
        if action < 0.08:
            self.start_producer()
        elif action < 0.60:
            self.act(random.choice(self.producers))
        elif action < 0.75:
            world.store()
        elif action < 0.83:
            self.fail_somewhere()
        elif action < 0.88:
            world.partitions.release()
        elif action < 0.90:
            world.partitions.hold(syncs=random.random() < 0.5)
        elif action < 0.97:
            world.advance(random.choice((10, 100, 1_000, 20_000)))
        else:
            self.crash()
        world.run()
        self.hear()
        self.checker.check()

    def start_producer(self) -> None:
        self.incarnations += 1
        producer = Producer(self.random.choice(NAMES), self.incarnations)
        producer.is_version_2 = self.random.random() < 0.7
        self.producers.append(producer)
        self.producers = self.producers[-4:]

    def fail_somewhere(self) -> None:
        errors = self.world.partitions.errors
        partition = self.random.choice(PARTITIONS)
        if partition in errors:
            del errors[partition]
            self.world.partitions.sync_errors.pop(partition, None)
        else:
            errors[partition] = self.random.choice(SOMETIMES_REFUSED)
            if self.random.random() < 0.5:
                self.world.partitions.sync_errors[partition] = errors[partition]

    def crash(self) -> None:
        """What clients have on its way is lost; the partitions keep what they took."""
        lost = self.random.random() < 0.3
        if lost:
            self.checker.power_failed()
        # As the broker does: until the aborts are stored, the next start learns of the loss too.
        lost = lost or self.world.coordinator.unsettled_partitions > 0
        self.world.crash(unsynced_data_lost=lost)
        for producer in self.producers:
            producer.initializing = producer.ending = producer.adding = None

    # ------------------------------------------------------------ what a client does

    def act(self, producer: Producer) -> None:
        if producer.initializing or producer.ending or producer.adding is not None:
            return  # it waits for an answer
        if producer.identity is None or self.random.random() < 0.05:
            known = producer.identity or (-1, -1)
            if self.random.random() < 0.5:
                known = (-1, -1)
            request = InitProducerIdRequest(
                producer.name, TIMEOUT_MS, ProducerId(known[0]), known[1]
            )
            producer.initializing = self.world.send(request)
        elif self.random.random() < 0.6:
            self.add(producer, producer.identity)
        else:
            self.end(producer, producer.identity)

    def add(self, producer: Producer, identity: Identity) -> None:
        chosen = self.random.sample(PARTITIONS, self.random.randint(1, 2))
        if producer.is_version_2:
            producer.adding = self.world.produce(
                *identity,
                *chosen,
                transactional_id=producer.name,
                wait=self.random.random() < 0.5,
            )
            producer.is_open = True
            return
        answer = self.world.send(self.world.add_request(*identity, *chosen, name=producer.name))
        producer.is_open = True
        del answer  # whatever it is: the client goes on and hears of it when it ends

    def end(self, producer: Producer, identity: Identity) -> None:
        commit = self.random.random() < 0.6
        version = 5 if producer.is_version_2 else 4
        request = self.world.end_request(*identity, commit, producer.name)
        producer.ending = (self.world.send(request, version), commit, version)

    def hear(self) -> None:
        for producer in self.producers:
            if producer.initializing is not None and producer.initializing.answers:
                (answer,) = producer.initializing.answers
                producer.initializing = None
                assert isinstance(answer, InitProducerIdResponse)
                if answer.error_code is NONE:
                    producer.identity = (answer.producer_id, answer.producer_epoch)
                    self.checker.check()
                    self.checker.given(producer, producer.identity)
            if producer.adding:
                assert len(producer.adding) == 1, "answered twice"
                producer.adding = None
            if producer.ending is not None and producer.ending[0].answers:
                self.hear_end(producer)

    def hear_end(self, producer: Producer) -> None:
        assert producer.ending is not None
        assert producer.identity is not None
        token, commit, version = producer.ending
        producer.ending = None
        (answer,) = token.answers
        assert isinstance(answer, EndTxnResponse)
        if answer.error_code is not NONE:
            return
        self.checker.check()
        if version == 5:
            self.checker.ended(producer, producer.identity, commit=commit)
            producer.identity = (answer.producer_id, answer.producer_epoch)
        producer.is_open = False

    # ------------------------------------------------------------ the end

    def heal(self) -> None:
        """Everything works again: nothing may be left open or pending."""
        world = self.world
        world.partitions.errors = {}
        world.partitions.sync_errors = {}
        world.partitions.release()
        world.storing = True
        world.advance(RECOVERY_MS)
        self.checker.check()
        assert world.failures == []
        assert world.coordinator.open_transactions() == []
        for transaction in world.coordinator.transactions():
            assert transaction.pending is None
        for name in NAMES:
            error_code, producer_id, epoch = world.init(name)
            assert error_code is NONE
            assert world.produce(producer_id, epoch, transactional_id=name) == [
                {PARTITIONS[0]: NONE}
            ]
            assert world.end(producer_id, epoch, transactional_id=name)[0] is NONE
        self.checker.check()


@pytest.mark.parametrize("seed", range(RUNS))
def test_random_requests_and_crashes(seed: int) -> None:
    random = Random(seed)
    settings = TransactionSettings(
        transaction_abort_timed_out_transaction_cleanup_interval_ms=5_000
    )
    world = World(settings, version=random.choice((1, 2)))
    world.storing = random.random() < 0.3
    run = Run(random, world, Checker(world))
    for _ in range(3):
        run.start_producer()
    for _ in range(STEPS):
        run.step()
    run.heal()


def test_the_runs_meet_what_they_are_about() -> None:
    """Crashes while transactions are prepared, and aborts and commits of both versions."""
    kinds: set[str] = set()
    for seed in range(10):
        random = Random(seed)
        world = World(version=2)
        run = Run(random, world, Checker(world))
        run.start_producer()
        for _ in range(STEPS):
            run.step()
        kinds.update(type(event).__name__ for event in world.events)
        kinds.update(f"commit={marker.is_commit}" for _, marker in world.partitions.markers)
    events: tuple[type[TransactionEvent], ...] = TransactionEvent.__args__
    expected = {event.__name__ for event in events}
    never = {
        "TransactionalIdExpired",
        "MarkerRefused",
        "TransactionsLoadFailed",
        "TransactionsClosed",
    }
    assert kinds >= (expected - never) | {"commit=True", "commit=False"}
