"""Transaction metadata: the state of one transactional id, as its record holds it.

A value: each transition makes a new one. Kafka's counterpart: `TransactionMetadata`,
`TransactionState`.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from protocol.names import ProducerId, TransactionalId
from storage.api import TopicPartition

UNKNOWN_PRODUCER_ID: Final = ProducerId(-1)
UNKNOWN_EPOCH: Final = -1
NOT_BEGUN: Final = -1

MAX_EPOCH: Final = 32_767
"""An int16. Only fences and markers have it: a client is given one less at most."""

LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
"""The epochs of a producer id end here: the next epoch is 0, of another id."""

TIMEOUT_NEVER: Final = 2_147_483_647
"""The timeout of a transaction of a two-phase commit: it is not aborted by time."""

EPOCH_BUMP_SINCE: Final = 2
"""From this transaction version on each transaction ends with the next epoch (KIP-890)."""


class TransactionState(IntEnum):
    """The value is the byte in the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6  # pending only: an expired id whose tombstone is not stored yet
    PREPARE_EPOCH_FENCE = 7  # known by name only: here the fence and the abort are one transition

    @property
    def wire_name(self) -> str:
        """As DescribeTransactions and ListTransactions name it."""
        return _WIRE_NAMES[self]


_WIRE_NAMES: Final = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

STATE_NAMES: Final = frozenset(_WIRE_NAMES.values())

# Tuples: members are found by identity, without the hash of an enum.
PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
COMPLETED: Final = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
OPEN: Final = (TransactionState.ONGOING, *PREPARED)
"""With a transaction that is not completed."""
STORED_STATES: Final = (TransactionState.EMPTY, *OPEN, *COMPLETED)


class TransactionMetadata(Struct, frozen=True):
    """Times with `at_ms` are of the wall clock (Unix epoch)."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_at_ms: int
    previous_producer_id: ProducerId = UNKNOWN_PRODUCER_ID  # the one before the last transition
    next_producer_id: ProducerId = UNKNOWN_PRODUCER_ID  # in Prepare*, when the epochs are used up
    last_producer_epoch: int = UNKNOWN_EPOCH  # not stored: a restart forgets it, as in Kafka
    partitions: frozenset[TopicPartition] = frozenset()
    started_at_ms: int = NOT_BEGUN
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_commit(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
