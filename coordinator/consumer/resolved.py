"""Resolved regular expression: the topics that one matched, and when.

Kafka's counterpart: `ResolvedRegularExpression`.
"""

from msgspec import Struct

from protocol.names import TopicName


class ResolvedRegularExpression(Struct, frozen=True):
    """`version` is the version of the topics that it was matched with; -1 if not known."""

    topics: frozenset[TopicName] = frozenset()
    version: int = -1
    resolved_at_ms: int = 0  # wall clock
