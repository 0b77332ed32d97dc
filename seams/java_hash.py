"""Java's String.hashCode: Kafka's choice of partition, and its order of map entries.

The compiled build counts it in C (native/java_hash.pxi), in less time than it takes to look up the
partition of a key that was kept.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from protocol.compiled_codec import function_in_c

_HASH_IN_C: Final = function_in_c("java_hash")
_ORDER_IN_C: Final = function_in_c("hash_map_order")

_KEYS_OF_PARTITIONS_CACHED: Final = 65_536
_LENGTH_CACHED: Final = 255
"""Longer ids are hashed each time: clients must not fill memory with names they think up."""

_SMALLEST: Final = -(1 << 31)

_KEYS_CACHED: Final = 16_384
"""Of maps that are walked through again and again: the members of groups that rebalance."""


def java_hash(text: str) -> int:
    """`String.hashCode()`: over UTF-16 code units, wrapped to a signed 32-bit number."""
    if _HASH_IN_C is not None:
        found: int = _HASH_IN_C(text)
        return found
    return java_hash_in_python(text)


def java_hash_in_python(text: str) -> int:
    """The same: the oracle of what is in C."""
    value = 0
    if text.isascii():
        for byte in text.encode():
            # 31 * value: the compiled build has no fast way to multiply what is beyond 30 bits.
            value = ((value << 5) - value + byte) & 0xFFFF_FFFF
    else:
        units = array("H", text.encode("utf-16", "surrogatepass"))
        for unit in units[1:]:  # without its byte order mark
            value = ((value << 5) - value + unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, partitions: int) -> int:
    """The partition of a coordinator's topic that holds this key, and so its coordinator.

    A group's partition of `__consumer_offsets`, a transactional id's of `__transaction_state`.
    """
    if _HASH_IN_C is None and len(key) <= _LENGTH_CACHED:
        return _kept_partition_of(key, partitions)
    return _partition_of(key, partitions)


def _partition_of(key: str, partitions: int) -> int:
    value = java_hash(key)
    return (0 if value == _SMALLEST else abs(value)) % partitions


_kept_partition_of = lru_cache(maxsize=_KEYS_OF_PARTITIONS_CACHED)(_partition_of)


def hash_map_order(keys: Sequence[str]) -> list[str]:
    """The order in which a `java.util.HashMap` walks through these keys."""
    if _ORDER_IN_C is not None:
        ordered: list[str] = _ORDER_IN_C([*keys])
        return ordered
    return hash_map_order_in_python(keys)


def hash_map_order_in_python(keys: Sequence[str]) -> list[str]:
    """The same: the oracle of what is in C."""
    buckets = 16
    while len(keys) * 4 > buckets * 3:
        buckets *= 2

    return sorted(keys, key=lambda key: _spread_hash(key) & (buckets - 1))


def hash_early(key: str) -> None:
    """Keep the hash of a key for a later `hash_map_order`; in C there is no use for it."""
    if _ORDER_IN_C is None:
        _spread_hash(key)


def _spread_hash(key: str) -> int:
    """`HashMap.hash`."""
    return _spread(key) if len(key) <= _LENGTH_CACHED else _spread.__wrapped__(key)


@lru_cache(maxsize=_KEYS_CACHED)
def _spread(key: str) -> int:
    value = java_hash(key) & 0xFFFF_FFFF
    return value ^ value >> 16
