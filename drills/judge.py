"""Judge: what a drill's events say about recovery, loss, repetition and ownership.

Pure: events in, numbers out. What happened before the group was formed does not count.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from drills.events import DrillEvent, Kind, ordered_events
from drills.ownership import Overlap, track_ownership
from drills.scenario import Promises


class Recovery(Struct, frozen=True):
    """A fault, and how long it took until each partition was read and committed again.

    That is: until a record that was written to it after the fault was read, and an offset beyond
    it was committed. None: never.
    """

    fault: str
    at_s: float
    seconds: float | None


class DrillMeasures(Struct, frozen=True):
    """What the report has for each client library."""

    time_to_recover_s: float | None
    """Of the slowest recovery; None: the group did not recover, or there was no fault."""
    records_read_twice: int
    records_lost: int
    ownership_overlaps: int
    ownership_overlaps_expected: int
    commits_lost: int
    rebalances: int
    records_written: int
    records_read: int
    commits_acknowledged: int
    commits_refused: int
    recoveries: tuple[Recovery, ...]
    overlaps: tuple[Overlap, ...]


class PromiseVerdict(Struct, frozen=True):
    """One promise and whether it was kept."""

    promise: str
    limit: float
    value: float | None
    is_kept: bool


def measure(
    events: Iterable[DrillEvent], partitions: int, silence_s: Mapping[str, float]
) -> DrillMeasures:
    """`silence_s`: for how long at least each member may be silent before it is given up."""
    ordered = ordered_events(events)
    formed_s = next((event.at_s for event in ordered if event.kind is Kind.FORMED), 0.0)
    overlaps = tuple(
        overlap
        for overlap in track_ownership(ordered, silence_s).overlaps
        if overlap.at_s >= formed_s
    )
    written = {place for event in _of(ordered, Kind.WRITTEN) for place in event.offsets}
    read = {place for event in _of(ordered, Kind.READ) for place in event.offsets}
    recoveries = recoveries_of(ordered, partitions)
    seconds = [recovery.seconds for recovery in recoveries]
    return DrillMeasures(
        time_to_recover_s=max((s for s in seconds if s is not None), default=None)
        if None not in seconds
        else None,
        records_read_twice=_read_twice(ordered, formed_s),
        records_lost=len(written - read),
        ownership_overlaps=sum(not overlap.is_expected for overlap in overlaps),
        ownership_overlaps_expected=sum(overlap.is_expected for overlap in overlaps),
        commits_lost=len(lost_commits(ordered)),
        rebalances=_rebalances(ordered, formed_s),
        records_written=len(written),
        records_read=len(read),
        commits_acknowledged=len(_of(ordered, Kind.COMMITTED)),
        commits_refused=len(_of(ordered, Kind.NOT_COMMITTED)),
        recoveries=recoveries,
        overlaps=overlaps,
    )


def judge(measures: DrillMeasures, promises: Promises) -> list[PromiseVerdict]:
    """Each promise that the scenario makes. A drill without a fault has nothing to recover from."""
    seconds = measures.time_to_recover_s
    within = seconds is not None and seconds <= promises.recover_within_s
    verdicts = [
        PromiseVerdict(
            "recover_within_s",
            promises.recover_within_s,
            seconds,
            within or not measures.recoveries,
        )
    ]
    for name, value in (
        ("records_lost", measures.records_lost),
        ("commits_lost", measures.commits_lost),
        ("ownership_overlaps", measures.ownership_overlaps),
        ("records_read_twice", measures.records_read_twice),
        ("rebalances", measures.rebalances),
    ):
        limit: int | None = getattr(promises, f"{name}_max")
        if limit is not None:
            verdicts.append(PromiseVerdict(f"{name}_max", limit, value, value <= limit))
    if promises.rebalances_min is not None:
        kept = measures.rebalances >= promises.rebalances_min
        verdicts.append(
            PromiseVerdict("rebalances_min", promises.rebalances_min, measures.rebalances, kept)
        )
    return verdicts


def recoveries_of(events: Sequence[DrillEvent], partitions: int) -> tuple[Recovery, ...]:
    """Of each fault, in order."""
    return tuple(
        Recovery(fault.text, fault.at_s, _seconds_to_recover(events, fault.at_s, partitions))
        for fault in _of(events, Kind.FAULT)
    )


def lost_commits(events: Iterable[DrillEvent]) -> set[tuple[int, int]]:
    """(partition, offset) of commits that were acknowledged, and that the group has lost later.

    An answer shows it to a request for the committed offset, of a member or of the drill, that was
    sent after the acknowledgement. A member that goes back by itself, to a position that it has
    kept, is no sign of it: no coordinator told it to.
    """
    acknowledged: dict[int, list[tuple[float, int]]] = {}
    lost: set[tuple[int, int]] = set()
    for event in ordered_events(events):
        if event.kind is Kind.COMMITTED:
            for partition, offset in event.offsets:
                acknowledged.setdefault(partition, []).append((event.at_s, offset))
        elif event.kind is Kind.PROBED:
            for partition, offset in event.offsets:
                commits = acknowledged.get(partition, [])
                earlier = [o for at_s, o in commits if at_s < event.since_s]
                if earlier and offset < earlier[-1]:
                    lost.update((partition, o) for o in earlier if o > offset)
    return lost


def _of(events: Iterable[DrillEvent], kind: Kind) -> list[DrillEvent]:
    return [event for event in events if event.kind is kind]


def _read_twice(events: Sequence[DrillEvent], formed_s: float) -> int:
    seen: set[tuple[int, int]] = set()
    repeated = 0
    for event in _of(events, Kind.READ):
        for place in event.offsets:
            repeated += place in seen and event.at_s >= formed_s
            seen.add(place)
    return repeated


def _rebalances(events: Sequence[DrillEvent], formed_s: float) -> int:
    """New generations, or epochs, that any member got after the group was formed."""
    generations = _of(events, Kind.GENERATION)
    before = {event.number for event in generations if event.at_s < formed_s}
    newest = max(before, default=0)
    return len({event.number for event in generations if event.number > newest})


def _seconds_to_recover(
    events: Sequence[DrillEvent], fault_s: float, partitions: int
) -> float | None:
    waited: dict[int, int] = {}  # partition -> the first record that was written after the fault
    read: set[int] = set()
    done: dict[int, float] = {}
    for event in events:
        if event.at_s <= fault_s:
            continue
        if event.kind is Kind.WRITTEN:
            for partition, offset in event.offsets:
                waited.setdefault(partition, offset)
        elif event.kind is Kind.READ:
            read.update(p for p, offset in event.offsets if offset >= waited.get(p, offset + 1))
        elif event.kind is Kind.COMMITTED:
            for partition, offset in event.offsets:
                if partition in read and offset > waited[partition]:
                    done.setdefault(partition, event.at_s)
    if len(done) < partitions:
        return None
    return max(done.values()) - fault_s
