"""Golden records: the transitions and records of our decisions against Kafka's own classes.

golden/transitions.json was recorded with golden/RecordTransitions.java and Kafka 4.3.1.
"""

from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct
from msgspec import json as msgspec_json

from protocol.names import ErrorCode, ProducerId, TransactionalId
from seams.now import Now
from storage.api import TopicPartition
from tests.transactions.world import START
from transactions.commands import (
    AbortTransaction,
    AddPartitions,
    EndTransaction,
    InitProducerId,
    TransactionCommand,
)
from transactions.decide.prepare import completed
from transactions.decision_context import TransactionContext
from transactions.decisions import decide_transaction
from transactions.events import AbortCause
from transactions.metadata import TransactionMetadata, TransactionState
from transactions.outcome import Transition
from transactions.records import (
    read_transaction_key,
    read_transaction_value,
    transaction_key,
    transaction_record,
)
from transactions.transaction import Transaction

NEXT_PRODUCER_ID: Final = ProducerId(2_000)
STEP_MS: Final = 1_000


class Step(Struct):
    step: list[object]
    last_epoch: int
    values: tuple[str | None, str]


class Scenario(Struct):
    name: str
    key: str
    steps: list[Step]


FOUND: Final = msgspec_json.decode(
    (Path(__file__).parent / "golden" / "transitions.json").read_bytes(), type=list[Scenario]
)


def first_epoch(scenario: Scenario) -> int:
    """The one before the first step, as the recording began it."""
    epoch = read_transaction_value(TransactionalId(""), bytes.fromhex(scenario.steps[0].values[1]))
    return epoch.producer_epoch - 1


def command_of(step: list[object], metadata: TransactionMetadata) -> TransactionCommand:
    name, producer = metadata.transactional_id, (metadata.producer_id, metadata.producer_epoch)
    match step:
        case ["init", int(epoch)]:
            if epoch < 0:
                return InitProducerId(name, 60_000)
            is_old = epoch == 32_766 and metadata.producer_epoch == 0
            known = metadata.previous_producer_id if is_old else metadata.producer_id
            return InitProducerId(name, 60_000, known, epoch)
        case ["add", int(version), list(partitions)]:
            added = frozenset(TopicPartition(*partition) for partition in partitions)
            return AddPartitions(name, *producer, added, version)
        case ["end", int(version), bool(commit)]:
            return EndTransaction(name, *producer, commit, version)
        case ["abort", int()]:
            return AbortTransaction(name, AbortCause.TIMEOUT)
    raise AssertionError(step)


def transition_of(step: list[object], transaction: Transaction, now: Now) -> Transition:
    if step == ["complete"]:
        return completed(transaction.metadata, now)
    level = step[1] if step[0] == "abort" else 2
    assert isinstance(level, int)
    context = TransactionContext(level, is_full=False, producer_id=NEXT_PRODUCER_ID)
    command = command_of(step, transaction.metadata)
    outcome = decide_transaction(transaction, command, now, context)
    assert outcome.transition is not None, (step, outcome)
    return outcome.transition


@pytest.mark.parametrize("scenario", FOUND, ids=lambda scenario: scenario.name)
def test_transitions_are_kafkas(scenario: Scenario) -> None:
    key = bytes.fromhex(scenario.key)
    name = read_transaction_key(key)
    assert transaction_key(name) == key
    metadata = TransactionMetadata(
        transactional_id=name,
        producer_id=ProducerId(1_000),
        producer_epoch=first_epoch(scenario),
        timeout_ms=60_000,
        state=TransactionState.EMPTY,
        last_update_at_ms=START.wall_ms,
    )
    now = START
    for step in scenario.steps:
        transition = transition_of(step.step, Transaction(metadata), now)
        metadata = transition.target
        for level, value in zip((0, 2), step.values, strict=True):
            if value is not None:
                record = transaction_record(metadata, level)
                assert record.value is not None
                assert record.value.hex() == value, (step.step, level)
        assert metadata.last_producer_epoch == step.last_epoch, step.step
        if step.step[0] not in ("end", "abort"):
            now = Now(now.mono_ms, now.wall_ms + STEP_MS)
        assert transition.answer.error_code is ErrorCode.NONE


@pytest.mark.parametrize("scenario", FOUND, ids=lambda scenario: scenario.name)
def test_every_value_is_read_back(scenario: Scenario) -> None:
    name = read_transaction_key(bytes.fromhex(scenario.key))
    for step in scenario.steps:
        for level, value in zip((0, 2), step.values, strict=True):
            if value is not None:
                metadata = read_transaction_value(name, bytes.fromhex(value))
                record = transaction_record(metadata, level)
                assert record.value is not None
                assert record.value.hex() == value


def test_the_recording_has_every_state() -> None:
    found = {
        read_transaction_value(TransactionalId(""), bytes.fromhex(step.values[1])).state
        for scenario in FOUND
        for step in scenario.steps
    }
    assert found == set(TransactionState) - {
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    }


SEEN: Final = {
    "Empty": "0001 000000000000000e 0000 0000ea60 00 00 000001a202983b1e ffffffffffffffff"
    " 01 00 08 000000000000000e",
    "Ongoing": "0001 000000000000000e 0000 0000ea60 01 02 0b 742d312d636662383634 02 00000000 00"
    " 000001a202983b1e 000001a202983b1e 02 00 08 000000000000000e 02 02 0002",
}
"""Values of a live Kafka 4.3.1."""


@pytest.mark.parametrize("state", SEEN)
def test_values_of_a_live_kafka(state: str) -> None:
    value = bytes.fromhex(SEEN[state])
    metadata = read_transaction_value(TransactionalId("t"), value)
    assert metadata.state.wire_name == state
    assert metadata.producer_id == metadata.previous_producer_id == 14
    assert transaction_record(metadata, 2).value == value
