"""Decision context: what a decision may read besides the transactional id and the command."""

from typing import NamedTuple

from protocol.names import ProducerId


class TransactionContext(NamedTuple):
    """`producer_id`: a new one, if an earlier outcome of this command needed one."""

    transaction_version: int
    """The finalized level of the feature; requests that ended a transaction go by their version."""
    is_full: bool
    """There are as many transactional ids as rollcall.transactional.ids.max allows."""
    producer_id: ProducerId | None = None
