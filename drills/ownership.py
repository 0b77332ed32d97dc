"""Ownership: which member owned which partition from when to when, and where two did.

A member owns a partition from the callback that assigns it until the callback that revokes it, the
member's own close, or its death.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from drills.events import DrillEvent, Kind, ordered_events


class Owned(Struct, frozen=True):
    member: str
    partition: int
    from_s: float
    to_s: float


class Overlap(Struct, frozen=True):
    """`member` was assigned a partition that `other` had not given back.

    `is_expected`: the other was stalled or cut off for its whole session, so that the coordinator
    had to give it up and could not say so. No coordinator can avoid this.
    """

    at_s: float
    partition: int
    member: str
    other: str
    is_expected: bool


class OwnershipTrack:
    """Follows events in their order."""

    def __init__(self, silence_s: Mapping[str, float]) -> None:
        """`silence_s`: how long the coordinator waits for each member that is silent."""
        self.intervals: list[Owned] = []
        self.overlaps: list[Overlap] = []
        self._silence_s = silence_s
        self._since: dict[tuple[str, int], float] = {}
        self._silent_since: dict[str, float] = {}
        self._given_up: set[str] = set()

    def owners(self, partition: int) -> list[str]:
        return [member for member, owned in self._since if owned == partition]

    def owned_by(self, member: str) -> list[int]:
        return sorted(partition for name, partition in self._since if name == member)

    def follow(self, event: DrillEvent) -> None:
        match event.kind:
            case Kind.ASSIGNED:
                self._given_up.discard(event.source)
                for partition in event.partitions:
                    self._assign(event, partition)
            case Kind.REVOKED:
                self._given_up.discard(event.source)
                self._end(event, event.partitions)
            case Kind.CLOSING | Kind.KILLED | Kind.ENDED:
                self._silent_since.pop(event.source, None)
                self._end(event, self.owned_by(event.source))
            case Kind.STALLED | Kind.CUT:
                self._silent_since.setdefault(event.source, event.at_s)
            case Kind.RESUMED | Kind.HEALED:
                if self._is_given_up(event.source, event.at_s):
                    self._given_up.add(event.source)
                self._silent_since.pop(event.source, None)
            case _:
                pass

    def finish(self, at_s: float) -> None:
        for (member, partition), since_s in self._since.items():
            self.intervals.append(Owned(member, partition, since_s, at_s))
        self._since.clear()

    def _is_given_up(self, member: str, at_s: float) -> bool:
        since_s = self._silent_since.get(member)
        if since_s is not None and at_s - since_s >= self._silence_s.get(member, 0.0):
            return True
        return member in self._given_up

    def _assign(self, event: DrillEvent, partition: int) -> None:
        for other in self.owners(partition):
            if other != event.source:
                expected = self._is_given_up(other, event.at_s)
                self.overlaps.append(Overlap(event.at_s, partition, event.source, other, expected))
        self._since.setdefault((event.source, partition), event.at_s)

    def _end(self, event: DrillEvent, partitions: Iterable[int]) -> None:
        for partition in partitions:
            since_s = self._since.pop((event.source, partition), None)
            if since_s is not None:
                self.intervals.append(Owned(event.source, partition, since_s, event.at_s))


def track_ownership(events: Iterable[DrillEvent], silence_s: Mapping[str, float]) -> OwnershipTrack:
    """All of it, to the last event."""
    track = OwnershipTrack(silence_s)
    ordered = ordered_events(events)
    for event in ordered:
        track.follow(event)
    track.finish(ordered[-1].at_s if ordered else 0.0)
    return track
