"""Steps of detectors: between two pauses only a part of a large group's members is read."""

from collections.abc import Iterator, Sequence
from typing import overload

import pytest
from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.entries import Rebalance, RebalanceEndedEntry
from history.entry_values import MemberWait
from history.verdicts.detect import verdicts_in_steps
from history.verdicts.model import (
    MEMBERS_PER_STEP,
    ObservedGroup,
    ObservedMember,
    Verdict,
    VerdictLimits,
)
from history.verdicts.recent_activity import RecentActivity

MEMBERS = 20 * MEMBERS_PER_STEP
START = 1_800_000_000_000
HOUR = 3_600_000
LIMITS = VerdictLimits()


class Counted(Sequence[ObservedMember]):
    """Counts how many members were read."""

    def __init__(self, members: Sequence[ObservedMember]) -> None:
        self.members_read = 0
        self._members = members

    def __len__(self) -> int:
        return len(self._members)

    @overload
    def __getitem__(self, at: int) -> ObservedMember: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ObservedMember]: ...
    def __getitem__(self, at: int | slice) -> ObservedMember | Sequence[ObservedMember]:
        found = self._members[at]
        self.members_read += len(found) if isinstance(found, Sequence) else 1
        return found

    def __iter__(self) -> Iterator[ObservedMember]:
        for member in self._members:
            self.members_read += 1
            yield member


def large_group(members: Sequence[ObservedMember]) -> ObservedGroup:
    return ObservedGroup(
        "g",
        START,
        "Stable",
        START - HOUR,
        generation=7,
        protocol_type="consumer",
        protocol="range",
        members=members,
        partition_counts={"t": 2 * MEMBERS},
    )


def member(number: int) -> ObservedMember:
    return ObservedMember(
        MemberIdentity(f"member-{number}", None, "client", "/10.0.0.1"),
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        protocols=("range",),
        topics=frozenset({"t"}),
        assigned=(("t", 2 * number), ("t", 2 * number + 1)),
    )


def slow_rebalance() -> RebalanceEndedEntry:
    waits = [
        MemberWait(MemberIdentity(f"member-{number}"), 60_000, WaitEnd.REJOINED)
        for number in range(100)
    ]
    rebalance = Rebalance(
        Cause.MEMBER_JOINED,
        START - HOUR,
        end=End.STABLE,
        duration_ms=60_000,
        waited_for=tuple(waits),
        members_before=MEMBERS,
        members_after=MEMBERS,
    )
    return RebalanceEndedEntry("g", START, rebalance)


def members_read_in_steps(
    group: ObservedGroup, activity: RecentActivity
) -> tuple[list[int], list[Verdict]]:
    counted = Counted(group.members)
    read: list[int] = []
    verdicts: list[Verdict] = []
    for step in verdicts_in_steps(replace(group, members=counted), activity, LIMITS):
        if step is None:
            read.append(counted.members_read)
            counted.members_read = 0
        else:
            verdicts.append(step)
    return read, verdicts


@pytest.mark.parametrize("generation", [7, 8], ids=["known", "new"])
def test_no_step_reads_all_members(generation: int) -> None:
    activity = RecentActivity()
    activity.apply(slow_rebalance(), LIMITS.window_ms)
    group = large_group([member(number) for number in range(MEMBERS)])
    members_read_in_steps(group, activity)
    read, verdicts = members_read_in_steps(replace(group, generation=generation), activity)
    assert max(read) <= MEMBERS_PER_STEP + 2  # and the two that a comparison begins with
    assert sum(read) >= 4 * MEMBERS
    assert len(verdicts) == 100
