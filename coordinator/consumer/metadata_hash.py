"""Metadata hash: whether the topics that a group subscribes to are as they were.

The hash of a group is stored with its epoch (ConsumerGroupMetadataValue). When a topic is created,
deleted or gets partitions, another hash bumps the epoch. It is Kafka's hash, XXH3 with 64 bits, so
that a Kafka broker that takes over the log does not bump every epoch. Kafka's counterpart:
`Utils.computeTopicHash` and `computeGroupHash`.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from protocol.names import TopicName

FORMAT_VERSION: Final = 0
"""The first byte of what is hashed for a topic; Kafka's `TOPIC_HASH_MAGIC_BYTE`."""

NO_TOPICS: Final = 0
"""The hash of a group without topics."""

_INT: Final = struct.Struct("<i")


def topic_hash(topic_id: UUID, name: str, partitions: int, racks: Sequence[Sequence[str]]) -> int:
    """A signed number. `racks` has those of each partition's replicas; none when it is empty."""
    return _xxh3(_topic_bytes(topic_id, name, partitions, racks))


def group_hash(hashes: Mapping[TopicName, int]) -> int:
    """Of the hashes of the topics that exist. A signed number."""
    if not hashes:
        return NO_TOPICS
    # Java compares UTF-16 units; names of topics are ASCII, where both orders are the same.
    ordered = [hashes[name] for name in sorted(hashes)]
    return _xxh3(struct.pack(f"<{len(ordered)}q", *ordered))


def _topic_bytes(
    topic_id: UUID, name: str, partitions: int, racks: Sequence[Sequence[str]]
) -> bytes:
    head = struct.pack("<b", FORMAT_VERSION) + topic_id.bytes[7::-1] + topic_id.bytes[:7:-1]
    parts = [head, _string(name), _INT.pack(partitions)]
    if not any(racks):
        parts.append(struct.pack(f"<{partitions}i", *range(partitions)))
    else:
        for partition in range(partitions):
            parts.append(_INT.pack(partition))
            parts += map(_rack, sorted(racks[partition], key=_utf16))
    return b"".join(parts)


def _rack(rack: str) -> bytes:
    text = _string(rack)
    return text[-_INT.size :] + text  # its length is hashed twice, before it and behind it


def _string(text: str) -> bytes:
    """As hash4j's `putString`: the UTF-16 units, then how many."""
    units = text.encode("utf-16-le")
    return units + _INT.pack(len(units) // 2)


def _utf16(text: str) -> bytes:
    """A key that sorts as Java's strings do."""
    return text.encode("utf-16-be")


def _xxh3(content: bytes) -> int:
    import xxhash  # Loaded with the first consumer group: a start does not need it.

    unsigned = xxhash.xxh3_64_intdigest(content)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
