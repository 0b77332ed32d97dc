"""Timeline: the lanes that entries and steps of members amount to."""

from collections.abc import Mapping, Sequence

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, Removal, WaitEnd
from history.consumer_entries import (
    PartitionsAssignedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
)
from history.entries import (
    GenerationBegunEntry,
    GroupLoadedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
)
from history.entry_values import JoinedMember, MemberRemoval
from history.timeline import (
    Doing,
    Lane,
    LaneMark,
    MemberStep,
    Span,
    Timeline,
    TimelineBuilder,
    merged_with_steps,
    newest_spans,
)
from protocol.names import GroupInstanceId, MemberId

ONE = MemberIdentity(MemberId("one-1"), None, "one", "/10.0.0.1")
TWO = MemberIdentity(MemberId("two-2"), None, "two", "/10.0.0.2")
STATIC = MemberIdentity(MemberId("pod-1"), GroupInstanceId("pod"), "pod", "/10.0.0.3")
AGAIN = STATIC._replace(member_id=MemberId("pod-2"))

OWNED, WAITED, SYNCING, TO_REJOIN = Doing.OWNED, Doing.WAITED, Doing.SYNCING, Doing.TO_REJOIN

SECOND_JOINS = [
    MemberAddedEntry("g", 1_000, TWO),
    RebalanceBegunEntry("g", 1_000, trigger=TWO, generation=1, waiting_for=(ONE,)),
    GenerationBegunEntry("g", 1_400, 2, joined=(JoinedMember(ONE, 300), JoinedMember(TWO, 0))),
    RebalanceEndedEntry(
        "g",
        1_500,
        Rebalance(
            Cause.MEMBER_JOINED,
            1_000,
            TWO,
            end=End.STABLE,
            duration_ms=500,
            generation_before=1,
            generation_after=2,
        ),
    ),
]


def build_timeline(
    entries: Sequence[HistoryEntry],
    steps: Sequence[MemberStep],
    members: Mapping[str, tuple[MemberIdentity, Doing]],
    from_ms: int,
    now_ms: int,
) -> Timeline:
    builder = TimelineBuilder(from_ms)
    for happened in merged_with_steps(entries, steps):
        builder.take(happened)
    return builder.timeline(now_ms, members)


def lanes(timeline: Timeline) -> dict[str, Lane]:
    return {lane.key: lane for lane in timeline.lanes}


def spans(lane: Lane) -> list[tuple[Doing, int, int | None]]:
    return [tuple(span) for span in lane.spans]


def marks(lane: Lane) -> list[tuple[LaneMark, int]]:
    return [(mark.mark, mark.at_ms) for mark in lane.marks]


def now(*members: MemberIdentity) -> dict[str, tuple[MemberIdentity, Doing]]:
    return {each.group_instance_id or each.member_id: (each, OWNED) for each in members}


def test_a_second_member_joins() -> None:
    timeline = build_timeline(SECOND_JOINS, [], now(ONE, TWO), 0, 2_000)
    found = lanes(timeline)
    assert spans(found["one-1"]) == [
        (OWNED, 0, 1_000), (TO_REJOIN, 1_000, 1_300), (WAITED, 1_300, 1_400),
        (SYNCING, 1_400, 1_500), (OWNED, 1_500, None),
    ]  # fmt: skip
    assert spans(found["two-2"]) == [
        (WAITED, 1_000, 1_400), (SYNCING, 1_400, 1_500), (OWNED, 1_500, None),
    ]  # fmt: skip
    assert marks(found["two-2"]) == [(LaneMark.JOINED, 1_000), (LaneMark.SYNCED, 1_500)]
    (band,) = timeline.rebalances
    assert (band.began_ms, band.ended_ms, band.generation_after) == (1_000, 1_500, 2)
    assert band.end is End.STABLE


def test_steps_make_it_exact() -> None:
    steps = [
        MemberStep(1_250, "one-1", LaneMark.JOINED),
        MemberStep(1_420, "two-2", LaneMark.SYNCED),
        MemberStep(1_500, "one-1", LaneMark.SYNCED),
    ]
    found = lanes(build_timeline(SECOND_JOINS, steps, now(ONE, TWO), 0, 2_000))
    assert spans(found["one-1"])[1:3] == [(TO_REJOIN, 1_000, 1_250), (WAITED, 1_250, 1_400)]
    assert spans(found["two-2"])[-1] == (OWNED, 1_420, None)
    assert marks(found["two-2"]) == [(LaneMark.JOINED, 1_000), (LaneMark.SYNCED, 1_420)]
    assert marks(found["one-1"]) == [(LaneMark.JOINED, 1_250), (LaneMark.SYNCED, 1_500)]


def test_a_member_goes_and_comes_back() -> None:
    entries = [
        MembersRemovedEntry("g", 3_000, Removal.SESSION_EXPIRED, members=(MemberRemoval(TWO),)),
        MemberAddedEntry("g", 4_000, TWO),
    ]
    gone = lanes(build_timeline([*SECOND_JOINS, entries[0]], [], now(ONE), 0, 5_000))["two-2"]
    assert gone.gone_at_ms == 3_000
    assert gone.spans[-1] == Span(OWNED, 1_500, 3_000)
    assert gone.marks[-1] == (LaneMark.GONE, 3_000, "session_expired")
    back = lanes(build_timeline([*SECOND_JOINS, *entries], [], now(ONE, TWO), 0, 5_000))["two-2"]
    assert back.gone_at_ms is None
    assert spans(back)[-2:] == [(OWNED, 1_500, 3_000), (WAITED, 4_000, None)]


def test_a_static_member_keeps_its_lane() -> None:
    entries = [
        StaticMemberReplacedEntry("g", 2_000, AGAIN, "pod-1", without_rebalance=True),
        StaticMemberReplacedEntry("g", 2_500, AGAIN, "pod-1"),
    ]
    steps = [MemberStep(2_600, "pod-2", LaneMark.SYNCED)]
    (lane,) = build_timeline(entries, steps, now(AGAIN), 0, 3_000).lanes
    assert lane.key == "pod"
    assert lane.member == AGAIN
    assert spans(lane) == [(OWNED, 0, 2_500), (WAITED, 2_500, 2_600), (OWNED, 2_600, None)]


def test_a_member_without_entries_owned_all_the_time() -> None:
    (lane,) = build_timeline([], [], now(ONE), 500, 900).lanes
    assert spans(lane) == [(OWNED, 500, None)]


def test_a_removal_that_was_left_out_of_a_list_ends_the_lane() -> None:
    gone = lanes(build_timeline(SECOND_JOINS, [], now(ONE), 0, 2_000))["two-2"]
    assert gone.gone_at_ms == 2_000


def test_a_consumer_group_hands_over() -> None:
    entries = [
        RevocationRequestedEntry("g", 1_000, ONE),
        RevocationEndedEntry("g", 1_200, ONE, WaitEnd.REVOKED),
        MemberAddedEntry("g", 900, TWO, group_type="consumer"),
        PartitionsAssignedEntry("g", 1_300, TWO),
    ]
    found = lanes(build_timeline(entries, [], now(ONE, TWO), 0, 2_000))
    assert spans(found["one-1"]) == [
        (OWNED, 0, 1_000), (Doing.REVOKING, 1_000, 1_200), (OWNED, 1_200, None),
    ]  # fmt: skip
    assert spans(found["two-2"]) == [(WAITED, 900, 1_300), (OWNED, 1_300, None)]


def test_a_rebalance_that_is_overtaken_or_runs() -> None:
    begun = [
        RebalanceBegunEntry("g", 1_000, generation=1, waiting_for=(ONE,)),
        RebalanceBegunEntry("g", 1_500, generation=1, waiting_for=(ONE,)),
        GroupLoadedEntry("g", 1_600),
    ]
    timeline = build_timeline(begun, [], {"one-1": (ONE, TO_REJOIN)}, 0, 2_000)
    assert [(band.ended_ms, band.end) for band in timeline.rebalances] == [
        (1_500, End.OVERTAKEN), (None, End.RUNNING),
    ]  # fmt: skip
    assert timeline.restarts_ms == [1_600]
    assert spans(timeline.lanes[0]) == [(OWNED, 0, 1_000), (TO_REJOIN, 1_000, None)]


def test_a_clock_that_goes_back_makes_no_span_end_before_it_begins() -> None:
    entries = [
        MemberAddedEntry("g", 5_000, ONE),
        GenerationBegunEntry("g", 4_000, 1, joined=(JoinedMember(ONE, 0),)),
        *SECOND_JOINS,
    ]
    for lane in build_timeline(entries, [], now(ONE, TWO), 0, 6_000).lanes:
        for span, after in zip(lane.spans, lane.spans[1:], strict=False):
            assert span.to_ms is not None
            assert span.from_ms <= span.to_ms <= after.from_ms


def test_of_very_many_spans_the_newest_are_kept() -> None:
    storm = []
    for number in range(100):
        at_ms = 1_000 * number
        storm.append(RebalanceBegunEntry("g", at_ms, generation=number, waiting_for=(ONE, TWO)))
        joined = (JoinedMember(ONE, 100), JoinedMember(TWO, 200))
        storm.append(GenerationBegunEntry("g", at_ms + 300, number + 1, joined=joined))
        rebalance = Rebalance(Cause.MEMBER_JOINED, at_ms, end=End.STABLE, generation_after=number)
        storm.append(RebalanceEndedEntry("g", at_ms + 400, rebalance))
    all_lanes = build_timeline(storm, [], now(ONE, TWO), 0, 100_000).lanes
    assert newest_spans(all_lanes, 10_000) is None
    before = {lane.key: list(lane.spans) for lane in all_lanes}

    since_ms = newest_spans(all_lanes, 50)

    assert since_ms is not None
    assert 40 <= sum(len(lane.spans) for lane in all_lanes) <= 50
    for lane in all_lanes:
        kept = [s for s in before[lane.key] if s.to_ms is None or s.to_ms > since_ms]
        assert lane.spans == kept
        assert lane.spans[-1].to_ms is None
        assert all(mark.at_ms >= since_ms for mark in lane.marks)
