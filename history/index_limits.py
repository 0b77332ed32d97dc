"""Index limits: how many rebalances the history keeps in memory."""

from msgspec import Struct


class IndexLimits(Struct, frozen=True):
    rebalances_per_group: int = 20  # rollcall.history.memory.rebalances.per.group
    rebalances: int = 20_000  # rollcall.history.memory.rebalances
    memory_bytes: int = 32 << 20  # rollcall.history.memory.bytes
