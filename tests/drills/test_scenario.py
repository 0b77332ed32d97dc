"""Scenarios: what a drill's file may say, and the one line that refuses a mistake."""

from pathlib import Path

import pytest

from config.crash_steps import LOADING, Step
from drills.catalog import find_drill, shipped_drills
from drills.moments import Moment
from drills.scenario import Promises, ScenarioError, parse_scenario
from protocol.names import ApiKey
from storage.drill_faults import DiskStep

KILL = '[[step]]\ndo = "kill"\ntarget = "m1"\n'


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, "my.toml")
    (line,) = str(refused.value).splitlines()
    assert line.startswith("my.toml: ")
    return line.removeprefix("my.toml: ")


def test_a_short_file_has_defaults_for_the_rest() -> None:
    scenario = parse_scenario(KILL, "folder/my.toml")

    assert scenario.name == "my"
    assert scenario.initial == ("m1", "m2", "m3")
    assert scenario.partitions == 3
    assert scenario.member("m2").session_timeout_ms == 30_000
    assert scenario.promises == Promises()
    assert scenario.daemon_step() is None


def test_everything_that_a_file_can_say() -> None:
    scenario = parse_scenario(
        """
        name = "all"
        shows = "everything"
        [group]
        protocol = "classic"
        assignor = "roundrobin"
        members = ["quick", "slow"]
        partitions = 8
        records_per_s = 50
        session_timeout_ms = 6000
        [member.quick]
        session_timeout_ms = 60000
        [daemon]
        group.initial.rebalance.delay.ms = 500
        "rollcall.flush" = "os"
        [[step]]
        do = "stall"
        target = "slow"
        at = "quick received Heartbeat"
        for_s = 2.5
        [[step]]
        do = "kill"
        target = "daemon"
        at = "some-told"
        [[step]]
        do = "cut"
        target = "all"
        mode = "reset"
        for_s = 1
        [[step]]
        do = "disk"
        full = true
        for_s = 1
        [promises]
        recover_within_s = 12.5
        [promises.java]
        rebalances_max = 2
        """,
        "my.toml",
    )

    stall, kill, cut, disk = scenario.steps
    assert stall.moment == Moment("quick", "received", ApiKey.HEARTBEAT)
    assert (kill.at, kill.moment) == ("some-told", None)
    assert (cut.mode, cut.for_s) == ("reset", 1.0)
    assert disk.is_full
    assert scenario.daemon_step() == kill
    assert dict(scenario.daemon) == {
        "group.initial.rebalance.delay.ms": "500",
        "rollcall.flush": "os",
    }
    assert [m.session_timeout_ms for m in scenario.members] == [60_000, 6_000]
    assert scenario.promises_for("java") == Promises(recover_within_s=12.5, rebalances_max=2)
    assert scenario.promises_for("model") == Promises(recover_within_s=12.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there are no steps"),
        ("[group", "at end of document"),
        ("a = 1\nb = \n", "at line 2, column 5"),
        ("speed = 3\n" + KILL, "the file has no key 'speed'"),
        ("[group]\nmember = 3\n" + KILL, "group has no key 'member'"),
        ("[group]\nmembers = 0\n" + KILL, "group.members must be from 1 to 50, not 0"),
        ("[group]\nmembers = true\n" + KILL, "group.members must be a number or a list"),
        ('[group]\nmembers = ["a b"]\n' + KILL, "a list of names"),
        ('[group]\npartitions = "4"\n' + KILL, "group.partitions must be a whole number"),
        ('[group]\nprotocol = "share"\n' + KILL, "must be one of classic, consumer"),
        ("[member.m9]\n" + KILL, "member has no key 'm9'"),
        ("[member.m1]\nsession_timeout_ms = 0\n" + KILL, "must be from 1 to 3.6e+06, not 0"),
        ("[promises]\nlost = 0\n" + KILL, "promises has no key 'lost'"),
        ("[promises.java]\nrebalances_max = -1\n" + KILL, "promises.java.rebalances_max must"),
        ('[[step]]\ntarget = "m1"\n', "step 1 has no `do`"),
        ('[[step]]\ndo = "explode"\n', "step 1.do must be one of start, stop, kill"),
        ('[[step]]\ndo = "kill"\n', "step 1 (kill) needs a target"),
        ('[[step]]\ndo = "kill"\ntarget = "m7"\n', "'m7' is none of m1, m2, m3"),
        ('[[step]]\ndo = "kill"\ntarget = "m1"\nsignal = 9\n', "step 1 (kill) has no key 'signal'"),
        ('[[step]]\ndo = "kill"\ntarget = "daemon"\nat = "noon"\n', "step 1.at must be one of"),
        ('[[step]]\ndo = "kill"\ntarget = "m1"\nat = "noon"\n', "'noon' is not [MEMBER]"),
        ('[[step]]\ndo = "kill"\ntarget = "m1"\nat = "sends Tea"\n', "'Tea' is none of"),
        ('[[step]]\ndo = "kill"\ntarget = "m1"\nat = "x sends Fetch"\n', "'x' is no member"),
        ('[[step]]\ndo = "stall"\ntarget = "m1"\n', "step 1 (stall) needs for_s"),
        ('[[step]]\ndo = "stall"\ntarget = "m1"\nfor_s = "1"\n', "for_s must be a number"),
        ('[[step]]\ndo = "disk"\nfor_s = 1\n', "needs either delay_ms or full"),
        ('[[step]]\ndo = "wait"\n', "needs either for_s or until"),
        ('[[step]]\ndo = "start"\nmember = "m1"\n', "a member is started twice"),
        ('[[step]]\ndo = "start"\nmember = "daemon"\n', "no member may be called 'daemon'"),
        ("step = 3\n", "there are no steps"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(text: str, expected: str) -> None:
    assert expected in refusal(text)


def test_a_file_that_is_missing_or_binary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    for name, reason in (("none.toml", "No such file"), ("binary.toml", "not UTF-8")):
        with pytest.raises(ScenarioError, match=reason):
            find_drill(str(tmp_path / name))
    with pytest.raises(ScenarioError, match="no such drill"):
        find_drill("nothing")


def test_the_shipped_drills_cover_every_step_and_case() -> None:
    drills = shipped_drills()
    steps = {step.at for drill in drills for step in drill.steps if step.at}

    assert {*map(str, Step), *map(str, DiskStep), LOADING} <= steps
    names = {drill.name for drill in drills}
    assert {name[5] for name in names if name.startswith("slow-") and name[6] == "-"} == set(
        "abcdefg"
    )
    assert all(drill.shows for drill in drills)
    assert all(find_drill(drill.name) == drill for drill in drills)
