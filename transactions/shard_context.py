"""TransactionShard context: what all shards of one transaction coordinator share, as one value."""

from collections.abc import Callable
from typing import NamedTuple

from seams.next_deadline import NextDeadline
from seams.now import Now
from seams.producer_ids import ProducerIdSource
from seams.transactions import TransactionPartitions
from transactions.events import TransactionEvent
from transactions.settings import TransactionSettings

TurnStep = Callable[[Now], None]


class IdCount:
    """How many transactional ids all shards have."""

    __slots__ = ("ids",)

    def __init__(self) -> None:
        self.ids = 0


class TransactionShardContext(NamedTuple):
    """`post` runs a step of a partition's shard soon, with the time as it is then.

    `unsynced_aborted`: the partition's transactions whose data may be lost are aborted, and that is
    stored.
    """

    settings: TransactionSettings
    partitions: TransactionPartitions
    producer_ids: ProducerIdSource
    transaction_version: Callable[[], int]
    observe: Callable[[TransactionEvent], None]
    post: Callable[[int, TurnStep], None]
    unsynced_aborted: Callable[[int], None]
    next_deadline: NextDeadline
    id_count: IdCount
