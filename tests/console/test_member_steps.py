"""Member steps: which events count, and how many are kept."""

from console.member_steps import STEP_GROUPS_MAX, STEPS_MAX, MemberSteps
from coordinator.classic.events import GroupStabilized, MemberSynced, SyncParked
from history.timeline import LaneMark
from protocol.names import GenerationId, GroupId, MemberId
from seams.now import Now
from seams.reply_token import ReplyToken

GROUP = GroupId("g")


def synced(group: str, member: str) -> MemberSynced:
    return MemberSynced(GroupId(group), MemberId(member))


def test_steps_have_the_time_of_their_turn() -> None:
    steps = MemberSteps()
    stabilized = GroupStabilized(GROUP, 5, 6, GenerationId(1), {}, (MemberId("a"), MemberId("b")))
    steps.take([SyncParked(GROUP, MemberId("a"), ReplyToken(5, "", ""))], Now(1, 10))
    steps.take([stabilized], Now(2, 20))
    steps.take([synced("g", "c")], Now(3, 30))
    assert [tuple(step) for step in steps.of("g")] == [
        (20, "a", LaneMark.SYNCED), (20, "b", LaneMark.SYNCED), (30, "c", LaneMark.SYNCED),
    ]  # fmt: skip
    assert steps.of("other") == ()


def test_what_is_kept_is_bounded() -> None:
    steps = MemberSteps()
    for number in range(STEPS_MAX + 50):
        steps.take([synced("g", str(number))], Now(number, number))
    assert len(steps) == len(steps.of("g")) == STEPS_MAX
    assert steps.of("g")[-1].member_id == str(STEPS_MAX + 49)
    for number in range(STEP_GROUPS_MAX):
        steps.take([synced(f"group-{number}", "a")], Now(0, 0))
    assert steps.of("g") == ()
    assert len(steps) == STEP_GROUPS_MAX
