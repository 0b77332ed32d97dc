"""What has happened to a group lately, as far as trouble shows in it? The past that detectors see.

Fed with the facts of the group's history as they happen, and with a look at the group now and then.
Bounded in time by the window, and in number by the limits below: what is over them is the oldest.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from history.causes import Cause
from history.entries import (
    GroupEmptiedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
    Who,
)
from history.verdicts.model import GroupFacts, Key, identity_of

IDENTITIES_MAX: Final = 200
RETURNS_MAX: Final = 50
REBALANCES_MAX: Final = 100
MEMBERS_MAX: Final = 5_000


class Return(NamedTuple):
    """A member that came back after a membership shorter than the window."""

    at_ms: int
    who: Who
    stayed_ms: int
    away_ms: int
    reason: str  # why it was gone before
    replaced: Who | None = None  # the process whose place it took


class Stay(NamedTuple):
    """A membership that ended."""

    joined_at_ms: int
    ended_at_ms: int
    reason: str


class Refusal(NamedTuple):
    """A client that was not let in, for it has no assignor in common with the members."""

    at_ms: int
    who: Who
    offered: tuple[str, ...]
    supported: tuple[str, ...]


class Begun(NamedTuple):
    at_ms: int
    cause: Cause
    trigger: Who | None
    deadline_ms: int


class Shape(NamedTuple):
    """Who had what in a generation, as it was looked at."""

    generation: int
    members: frozenset[str]
    owners: Mapping[Key, str]
    counts: Mapping[str, int]
    topics: frozenset[frozenset[str] | None]
    twice: Mapping[Key, tuple[str, ...]]  # partitions with several owners: their names

    @property
    def largest(self) -> int:
        of_member: dict[str, int] = {}
        for owner in self.owners.values():
            of_member[owner] = of_member.get(owner, 0) + 1
        return max(of_member.values(), default=0)


class Past:
    """One group's."""

    def __init__(self) -> None:
        self.returns: dict[str, deque[Return]] = {}
        self.rebalances: deque[Begun] = deque(maxlen=REBALANCES_MAX)
        self.without_progress: deque[Begun] = deque(maxlen=REBALANCES_MAX)
        self.progress: int | None = None  # the sum of all committed offsets, at the last look
        self.looks_without_progress = 0
        self.refusals: dict[str, Refusal] = {}  # the last one of each client
        self.refused: dict[str, int] = {}  # how often
        self.last: Rebalance | None = None  # the last one that ended
        self.last_ended_at_ms = 0
        self.changed_at_ms = 0  # when anything happened
        self.mixed_since: dict[str, int] = {}  # which mixture, since when
        self.shape: Shape | None = None
        self.shape_before: Shape | None = None
        self.grown_at_ms: dict[str, int] = {}  # topics with more partitions than at the shape
        self._present: dict[str, tuple[str, int]] = {}  # member id -> identity, since when
        self._ended: dict[str, deque[Stay]] = {}

    def apply(self, event: HistoryEntry, window_ms: int) -> None:
        """A fact of the group's history; in their order."""
        self.changed_at_ms = event.at_ms
        match event:
            case MemberAddedEntry():
                self._joined(event.who, event.at_ms, window_ms)
            case StaticMemberReplacedEntry():
                self._left(event.old_member_id, event.at_ms, "replaced")
                self._joined(event.who, event.at_ms, window_ms, event.replaced)
            case MembersRemovedEntry():
                for gone in event.members:
                    reason = gone.reason or event.cause.value
                    self._left(gone.who.member_id, event.at_ms, reason)
            case RebalanceBegunEntry():
                deadline_ms = event.at_ms + event.timeout_ms
                begun = Begun(event.at_ms, event.cause, event.trigger, deadline_ms)
                self.rebalances.append(begun)
                self.without_progress.append(begun)
            case RebalanceEndedEntry():
                self.last, self.last_ended_at_ms = event.rebalance, event.at_ms
            case GroupEmptiedEntry():
                self.mixed_since.clear()
            case _:
                pass
        self._forget(event.at_ms - window_ms)

    def refuse(self, refusal: Refusal) -> None:
        """A join found no common protocol."""
        self.changed_at_ms = refusal.at_ms
        identity = identity_of(refusal.who)
        if identity in self.refusals or len(self.refusals) < IDENTITIES_MAX:
            self.refusals[identity] = refusal
            self.refused[identity] = self.refused.get(identity, 0) + 1

    def look(self, facts: GroupFacts, shape: Shape | None) -> None:
        """The group as it is now."""
        self.changed_at_ms = self.changed_at_ms or facts.at_ms
        self._look_at_progress(facts)
        self._forget_namesake(facts)
        if shape is not None and (self.shape is None or shape.generation != self.shape.generation):
            self.shape_before, self.shape = self.shape, shape
            self.grown_at_ms.clear()
        if shape is not None and self.shape is not None:
            for topic, count in facts.partition_counts.items():
                if count > self.shape.counts.get(topic, 0):
                    self.grown_at_ms.setdefault(topic, facts.at_ms)

    def _forget_namesake(self, facts: GroupFacts) -> None:
        """Where no history is kept, a group that was deleted shows by its generation and members.

        A static member's new process has a new id in the same generation: the shape is rebuilt.
        """
        if self.shape is None:
            return
        if facts.generation < self.shape.generation:
            self.shape = self.shape_before = None
        elif facts.generation == self.shape.generation:
            members = {member.who.member_id for member in facts.members}
            if members and members != self.shape.members:
                self.shape = None

    def _look_at_progress(self, facts: GroupFacts) -> None:
        """Only two looks tell whether an offset moved; between rebalances nobody needs to know."""
        if not self.without_progress:
            self.progress, self.looks_without_progress = None, 0
            return
        progress = sum(window.committed_offset or 0 for window in facts.windows.values())
        if self.progress is not None and progress > self.progress:
            self.without_progress.clear()
            self.looks_without_progress = 0
        elif self.progress is not None:
            self.looks_without_progress += 1
        self.progress = progress

    def mixed(self, mixture: str, *, is_mixed: bool, at_ms: int) -> int | None:
        """Since when the members differ in this; None if they do not."""
        if not is_mixed:
            self.mixed_since.pop(mixture, None)
            return None
        return self.mixed_since.setdefault(mixture, at_ms)

    def rebalances_since(self, at_ms: int) -> list[Begun]:
        return [begun for begun in self.rebalances if begun.at_ms >= at_ms]

    def _joined(self, who: Who, at_ms: int, window_ms: int, replaced: Who | None = None) -> None:
        identity = identity_of(who)
        if len(self._present) < MEMBERS_MAX:
            self._present[who.member_id] = (identity, at_ms)
        ended = self._ended.get(identity)
        if not ended:
            return
        stay = ended.popleft()
        stayed_ms = stay.ended_at_ms - stay.joined_at_ms
        if stayed_ms >= window_ms:
            return
        if identity not in self.returns and len(self.returns) >= IDENTITIES_MAX:
            del self.returns[next(iter(self.returns))]
        away_ms = at_ms - stay.ended_at_ms
        self.returns.setdefault(identity, deque(maxlen=RETURNS_MAX)).append(
            Return(at_ms, who, stayed_ms, away_ms, stay.reason, replaced)
        )

    def _left(self, member_id: str, at_ms: int, reason: str) -> None:
        present = self._present.pop(member_id, None)
        if present is None:
            return  # it joined before all that is remembered: no short stay
        identity, joined_at_ms = present
        if identity not in self._ended and len(self._ended) >= IDENTITIES_MAX:
            del self._ended[next(iter(self._ended))]
        self._ended.setdefault(identity, deque(maxlen=RETURNS_MAX)).append(
            Stay(joined_at_ms, at_ms, reason)
        )

    def forget(self, now_ms: int, window_ms: int) -> None:
        """What is older than the window does not count any more."""
        self._forget(now_ms - window_ms)

    def _forget(self, horizon_ms: int) -> None:
        for identity in [i for i, some in self.returns.items() if some[-1].at_ms < horizon_ms]:
            del self.returns[identity]
        for returns in self.returns.values():
            while returns[0].at_ms < horizon_ms:
                returns.popleft()
        for identity in [i for i, some in self._ended.items() if _are_old(some, horizon_ms)]:
            del self._ended[identity]
        for begun in (self.rebalances, self.without_progress):
            while begun and begun[0].at_ms < horizon_ms:
                begun.popleft()
        for identity in [i for i, one in self.refusals.items() if one.at_ms < horizon_ms]:
            del self.refusals[identity], self.refused[identity]
        if self.last_ended_at_ms < horizon_ms:
            self.last = None


def _are_old(stays: deque[Stay], horizon_ms: int) -> bool:
    return not stays or stays[-1].ended_at_ms < horizon_ms
