"""Regex cache: which of all topics each regular expression matches, as long as they stay.

After a topic is created, every group with an expression resolves it again. Only the names that are
new have to be matched, and once for all groups. Kafka matches all names for each group, in another
thread.
"""

from collections.abc import Collection, Iterable
from typing import Final

from protocol.names import TopicName
from seams.regular_expressions import resolve

CACHED_MAX: Final = 500
"""Expressions. The ones that were used last are kept: a change of topics costs 0.1 ms for each."""

_NOT_YET: Final = -1


class RegexCache:
    """One for all groups of a coordinator."""

    __slots__ = ("_matched", "_names", "_version")

    def __init__(self) -> None:
        self._version = _NOT_YET
        self._names: frozenset[TopicName] = frozenset()
        self._matched: dict[str, frozenset[TopicName]] = {}  # the one used last is the last

    def resolve(
        self, patterns: Iterable[str], names: Collection[TopicName], version: int
    ) -> dict[str, frozenset[TopicName]]:
        """As `regular_expressions.resolve`. `names` are all topics, in this version of them."""
        if version != self._version:
            self._update(frozenset(names))
            self._version = version
        wanted = dict.fromkeys(patterns)
        found = {p: self._matched.pop(p) for p in wanted if p in self._matched}
        found |= resolve((p for p in wanted if p not in found), self._names)
        self._matched |= found
        for pattern in list(self._matched)[:-CACHED_MAX]:
            del self._matched[pattern]
        return {pattern: found[pattern] for pattern in wanted}

    def _update(self, names: frozenset[TopicName]) -> None:
        added, removed = names - self._names, self._names - names
        self._names = names
        if removed:
            for pattern, topics in self._matched.items():
                if not topics.isdisjoint(removed):
                    self._matched[pattern] = topics - removed
        if added:
            for pattern, topics in resolve(self._matched, added).items():
                if topics:
                    self._matched[pattern] |= topics
