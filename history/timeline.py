"""Timeline: what each member of a group was doing, and when, as lanes of a picture.

Made from the entries of the group's history, the oldest first, and from the steps of members that
the history does not keep (when each had its assignment), where these are known. A lane belongs to a
group.instance.id, or to a member id: a static member that comes back as another process keeps its
lane. What a lane shows of a time before its first entry is what the entry says about it, else that
the member owned its partitions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.consumer_entries import (
    GroupConvertedEntry,
    PartitionsAssignedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
)
from history.entries import (
    GenerationBegunEntry,
    GroupDeletedEntry,
    GroupEmptiedEntry,
    GroupLoadedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
)


class Doing(StrEnum):
    """What a member does for a time. JSON has these words."""

    OWNED = "owned"  # it has its assignment, possibly an empty one
    TO_REJOIN = "to_rejoin"  # the group rebalances, and it has not sent its JoinGroup yet
    WAITED = "waited"  # it has joined, and waits for the others; or for its first partitions
    SYNCING = "syncing"  # it is in the generation, and has no assignment yet
    REVOKING = "revoking"  # it was told to give partitions back, and has not confirmed that
    AWAY = "away"  # a static member that left for a while, or did not rejoin


class LaneMark(StrEnum):
    """What a member did at a moment."""

    JOINED = "joined"
    SYNCED = "synced"
    REPLACED = "replaced"  # another process came with its instance id
    GONE = "gone"


class Span(NamedTuple):
    """`to_ms` None: it still does."""

    doing: Doing
    from_ms: int
    to_ms: int | None


class MarkedMoment(NamedTuple):
    mark: LaneMark
    at_ms: int
    note: str = ""


class Lane(Struct):
    """One member. `gone_at_ms`: it is no member any more."""

    key: str
    member: MemberIdentity
    spans: list[Span] = field(default_factory=list)
    marks: list[MarkedMoment] = field(default_factory=list)
    gone_at_ms: int | None = None

    @property
    def doing(self) -> Doing | None:
        return None if not self.spans or self.gone_at_ms is not None else self.spans[-1].doing


class RebalanceBand(NamedTuple):
    """A rebalance as a band behind the lanes. `ended_ms` None: it is running."""

    began_ms: int
    ended_ms: int | None
    cause: Cause
    generation_before: int
    generation_after: int | None
    end: End


class MemberStep(NamedTuple):
    """A step that the history does not keep: a JoinGroup, or an assignment that was answered."""

    at_ms: int
    member_id: str
    mark: LaneMark


class Timeline(NamedTuple):
    from_ms: int
    to_ms: int
    lanes: Sequence[Lane]
    rebalances: Sequence[RebalanceBand]
    restarts_ms: Sequence[int]


def lane_key(member: MemberIdentity) -> str:
    return member.group_instance_id or member.member_id


class TimelineBuilder:
    """Takes entries and steps in their order; `timeline` is what they amount to."""

    def __init__(self, from_ms: int) -> None:
        self._from_ms = from_ms
        self._lanes: dict[str, Lane] = {}
        self._keys: dict[str, str] = {}  # member id -> lane
        self._bands: list[RebalanceBand] = []
        self._restarts: list[int] = []
        self._rejoined: set[str] = set()  # with an exact moment, in this rebalance

    def timeline(
        self, now_ms: int, members: Mapping[str, tuple[MemberIdentity, Doing]]
    ) -> Timeline:
        """`members`: those that the group has now, by lane, with what they do."""
        for key, (member, doing) in members.items():
            if key not in self._lanes:
                self._lane(member).spans.append(Span(doing, self._from_ms, None))
        for key, lane in self._lanes.items():
            if lane.gone_at_ms is None and key not in members:
                self._end(lane, now_ms, "")  # its removal was left out of a long list
        return Timeline(
            self._from_ms, now_ms, list(self._lanes.values()), self._bands, self._restarts
        )

    def take(self, happened: HistoryEntry | MemberStep) -> None:
        if isinstance(happened, MemberStep):
            self.step(happened)
        else:
            self.entry(happened)

    def step(self, step: MemberStep) -> None:
        lane = self._lanes.get(self._keys.get(step.member_id, ""))
        if lane is None or lane.gone_at_ms is not None:
            return
        if step.mark is LaneMark.JOINED:
            self._rejoined.add(lane.key)
            self._set(lane, Doing.WAITED, step.at_ms)
            lane.marks.append(MarkedMoment(LaneMark.JOINED, step.at_ms))
        elif step.mark is LaneMark.SYNCED and lane.doing is not Doing.OWNED:
            self._set(lane, Doing.OWNED, step.at_ms)
            lane.marks.append(MarkedMoment(LaneMark.SYNCED, step.at_ms))

    def entry(self, entry: HistoryEntry) -> None:
        match entry:
            case MemberAddedEntry():
                lane = self._lane(entry.member)
                self._set(lane, Doing.WAITED, entry.at_ms)
                self._rejoined.add(lane.key)
                lane.marks.append(MarkedMoment(LaneMark.JOINED, entry.at_ms))
            case StaticMemberReplacedEntry():
                self._replaced(entry)
            case MembersRemovedEntry():
                for removal in entry.members:
                    self._end(self._known(removal.member), entry.at_ms, str(entry.cause))
            case GroupDeletedEntry() | GroupEmptiedEntry():
                for lane in self._lanes.values():
                    self._end(lane, entry.at_ms, "")
            case RebalanceBegunEntry():
                self._begun(entry)
            case GenerationBegunEntry():
                self._generation(entry)
            case RebalanceEndedEntry():
                self._ended(entry)
            case GroupLoadedEntry():
                self._restarts.append(entry.at_ms)
            case RevocationRequestedEntry():
                self._set(self._known(entry.member), Doing.REVOKING, entry.at_ms)
            case RevocationEndedEntry() if entry.end is WaitEnd.REVOKED:
                self._set(self._known(entry.member), Doing.OWNED, entry.at_ms)
            case PartitionsAssignedEntry():
                lane = self._known(entry.member)
                if lane.doing is not Doing.OWNED:
                    lane.marks.append(MarkedMoment(LaneMark.SYNCED, entry.at_ms))
                self._set(lane, Doing.OWNED, entry.at_ms)
            case StaticMemberLeftEntry():
                self._set(self._known(entry.member), Doing.AWAY, entry.at_ms)
            case GroupConvertedEntry():
                pass  # the members stay, and what they own
            case _:
                pass

    # ------------------------------------------------------------ rebalances

    def _begun(self, entry: RebalanceBegunEntry) -> None:
        if self._bands and self._bands[-1].ended_ms is None:
            self._bands[-1] = self._bands[-1]._replace(ended_ms=entry.at_ms, end=End.OVERTAKEN)
        self._bands.append(
            RebalanceBand(entry.at_ms, None, entry.cause, entry.generation, None, End.RUNNING)
        )
        if entry.group_type:
            return  # members of a consumer group keep what they own
        self._rejoined = {key for key in self._rejoined if self._lanes[key].doing is Doing.WAITED}
        awaited = {lane_key(member) for member in entry.waiting_for}
        for member in entry.waiting_for:
            self._set(self._known(member), Doing.TO_REJOIN, entry.at_ms)
        trigger = None if entry.trigger is None else self._lanes.get(lane_key(entry.trigger))
        if trigger is not None and trigger.key not in awaited and trigger.doing is Doing.OWNED:
            self._set(trigger, Doing.WAITED, entry.at_ms)  # its JoinGroup began it
            trigger.marks.append(MarkedMoment(LaneMark.JOINED, entry.at_ms))
            self._rejoined.add(trigger.key)
        if entry.waiting_for_left_out:
            for lane in self._lanes.values():
                if lane.doing is Doing.OWNED:
                    self._set(lane, Doing.TO_REJOIN, entry.at_ms)

    def _generation(self, entry: GenerationBegunEntry) -> None:
        began_ms = self._bands[-1].began_ms if self._bands else entry.at_ms
        for joined in entry.joined:
            lane = self._known(joined.member)
            if lane.key not in self._rejoined and lane.doing is not Doing.WAITED:
                at_ms = min(began_ms + joined.join_delay_ms, entry.at_ms)
                self._set(lane, Doing.WAITED, at_ms)
                lane.marks.append(MarkedMoment(LaneMark.JOINED, at_ms))
        absent = {lane_key(member) for member in entry.absent}
        for lane in self._lanes.values():
            if lane.key in absent:
                self._set(lane, Doing.AWAY, entry.at_ms)
            elif lane.doing in (Doing.WAITED, Doing.TO_REJOIN):
                self._set(lane, Doing.SYNCING, entry.at_ms)
        self._rejoined.clear()

    def _ended(self, entry: RebalanceEndedEntry) -> None:
        rebalance = entry.rebalance
        ended_ms = entry.at_ms
        band = RebalanceBand(
            rebalance.began_at_ms, ended_ms, rebalance.cause,
            rebalance.generation_before, rebalance.generation_after, rebalance.end,
        )  # fmt: skip
        if self._bands and self._bands[-1].began_ms == band.began_ms:
            self._bands[-1] = band
        elif not self._bands or self._bands[-1].began_ms < band.began_ms:
            self._bands.append(band)
        if rebalance.end not in (End.STABLE, End.KEPT):
            return
        for lane in self._lanes.values():
            if lane.doing in (Doing.SYNCING, Doing.WAITED):
                lane.marks.append(MarkedMoment(LaneMark.SYNCED, ended_ms))
                self._set(lane, Doing.OWNED, ended_ms)

    def _replaced(self, entry: StaticMemberReplacedEntry) -> None:
        lane = self._known(entry.member)
        lane.member = entry.member
        self._keys[entry.member.member_id] = lane.key
        lane.marks.append(MarkedMoment(LaneMark.REPLACED, entry.at_ms))
        self._rejoined.add(lane.key)
        stays = entry.without_rebalance or bool(entry.group_type)
        self._set(lane, Doing.OWNED if stays else Doing.WAITED, entry.at_ms)

    # ------------------------------------------------------------ lanes

    def _lane(self, member: MemberIdentity) -> Lane:
        """Its lane, possibly a new and empty one; a member that was gone is back."""
        key = lane_key(member)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, member)
        lane.member = member
        lane.gone_at_ms = None
        self._keys[member.member_id] = key
        return lane

    def _known(self, member: MemberIdentity) -> Lane:
        """The lane of a member that was there before its first entry."""
        lane = self._lanes.get(lane_key(member))
        if lane is None:
            lane = self._lane(member)
            lane.spans.append(Span(Doing.OWNED, self._from_ms, None))
        return lane

    def _set(self, lane: Lane, doing: Doing, at_ms: int) -> None:
        if lane.doing is doing:
            return
        self._close(lane, at_ms)
        lane.spans.append(Span(doing, max(at_ms, _latest(lane)), None))

    def _end(self, lane: Lane, at_ms: int, cause: str) -> None:
        if lane.gone_at_ms is None:
            self._close(lane, at_ms)
            lane.gone_at_ms = at_ms
            lane.marks.append(MarkedMoment(LaneMark.GONE, at_ms, cause))

    @staticmethod
    def _close(lane: Lane, at_ms: int) -> None:
        if lane.spans and lane.spans[-1].to_ms is None:
            last = lane.spans[-1]
            lane.spans[-1] = last._replace(to_ms=max(at_ms, last.from_ms))


def _latest(lane: Lane) -> int:
    """The wall clock may go back: no span begins before the one before it ends."""
    return lane.spans[-1].to_ms or lane.spans[-1].from_ms if lane.spans else 0


def merged_with_steps(
    entries: Iterable[HistoryEntry], steps: Iterable[MemberStep]
) -> Iterator[HistoryEntry | MemberStep]:
    """Entries and steps, each the oldest first. Of one moment, the entry comes before the step."""
    waiting = iter(steps)
    step = next(waiting, None)
    for entry in entries:
        while step is not None and step.at_ms < entry.at_ms:
            yield step
            step = next(waiting, None)
        yield entry
    while step is not None:
        yield step
        step = next(waiting, None)


def newest_spans(lanes: Sequence[Lane], most: int) -> int | None:
    """Drops the oldest spans and marks until `most` spans are left in all lanes together.

    Returns since when the lanes are complete; None: nothing was dropped.
    """
    ends = [span.to_ms for lane in lanes for span in lane.spans if span.to_ms is not None]
    running = sum(bool(lane.spans) and lane.spans[-1].to_ms is None for lane in lanes)
    if len(ends) + running <= most:
        return None
    from_ms = sorted(ends)[-max(1, most - running)]
    for lane in lanes:
        lane.spans = [s for s in lane.spans if s.to_ms is None or s.to_ms > from_ms]
        lane.marks = [mark for mark in lane.marks if mark.at_ms >= from_ms]
    return from_ms
