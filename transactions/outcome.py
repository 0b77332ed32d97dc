"""Outcome: what one decision about a transactional id yields: an answer, or a transition.

It is a value: a decision returns it and the shard carries it out.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from protocol.names import ErrorCode, ProducerId
from transactions.events import TransactionEvent
from transactions.metadata import UNKNOWN_EPOCH, UNKNOWN_PRODUCER_ID, TransactionMetadata


class TransactionAnswer(NamedTuple):
    """The answer to a request about one transactional id, whatever its API and version."""

    error_code: ErrorCode
    producer_id: ProducerId = UNKNOWN_PRODUCER_ID
    producer_epoch: int = UNKNOWN_EPOCH


class Transition(Struct, frozen=True):
    """A change of the metadata: appended to the log, and visible when it is stored.

    Only then are the events observed and is the answer sent.
    """

    target: TransactionMetadata
    answer: TransactionAnswer
    events: Sequence[TransactionEvent] = ()


class TransactionOutcome(Struct, frozen=True):
    """One of the three: an answer now, a transition, or the question again with a producer id."""

    answer: TransactionAnswer | None = None
    transition: Transition | None = None
    needs_producer_id: bool = False


ANSWERS: Final = {
    error_code: TransactionOutcome(TransactionAnswer(error_code)) for error_code in ErrorCode
}
"""The outcome that is this error and nothing else."""

NEEDS_PRODUCER_ID: Final = TransactionOutcome(needs_producer_id=True)
