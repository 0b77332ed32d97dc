"""LeaveGroup: one member or many, by member id or by instance id, and what becomes of the rest."""

from protocol.messages.leave_group import LeaveGroupRequest
from protocol.names import GroupId
from tests.compare.scenarios.join import stable_pair
from tests.compare.scenarios.sync import completing_pair
from tests.compare.script import Script, scenario


@scenario()
def a_leave_without_a_group_id_is_invalid(script: Script) -> None:
    a = script.client("a")
    for version in range(6):
        a.leave(("somebody", None), group_id="", version=version)


@scenario()
def a_leave_of_an_unknown_group_names_each_member(script: Script) -> None:
    a = script.client("a")
    for version in range(6):
        a.leave(("somebody", None), version=version)
    a.leave(("x", None), ("y", "i"), ("", "i"), version=3)
    a.ask(LeaveGroupRequest(GroupId(script.name), members=()), 5)


@scenario()
def a_lone_member_leaves_an_empty_group_behind(script: Script) -> None:
    a = script.client("a")
    a.enter()
    a.sync({a: b"x"})
    a.leave(reason="the end")
    a.describe()
    a.leave()
    a.enter(member_id="")
    a.describe()


@scenario()
def a_member_leaves_in_every_version(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    for version in range(6):
        a.sync({a: b"x"})
        b.join(member_id="")
        b.join(may_wait=True)
        a.join()
        b.leave(version=version)
        b.leave(version=version)
        a.join()


@scenario()
def the_rest_is_told_to_join_again(script: Script) -> None:
    a, b = stable_pair(script)
    b.leave()
    a.describe()
    a.beat()
    a.join()
    a.sync({a: b"everything"})


@scenario()
def another_leads_when_the_leader_leaves(script: Script) -> None:
    a, b = stable_pair(script)
    a.leave()
    b.beat()
    b.join()
    b.sync({b: b"everything"})


@scenario()
def a_stranger_cannot_leave(script: Script) -> None:
    a, b = stable_pair(script)
    a.leave(("stranger", None))
    a.leave(("", None))
    a.leave(("", "no such instance"))
    a.leave((a.member_id, "no such instance"))
    a.leave(("stranger", None), version=0)
    a.beat()
    b.beat()


@scenario()
def many_leave_at_once_and_each_is_answered(script: Script) -> None:
    a, b = stable_pair(script)
    a.leave(
        (b.member_id, None), ("stranger", None), (b.member_id, None), ("", "i"), (a.member_id, None)
    )
    a.describe()


@scenario()
def a_leave_of_nobody_changes_nothing(script: Script) -> None:
    a, b = stable_pair(script)
    a.ask(LeaveGroupRequest(GroupId(script.name), members=()), 5)
    a.ask(LeaveGroupRequest(GroupId(script.name)), 0)
    b.beat()


@scenario()
def a_member_that_leaves_completes_the_rebalance(script: Script) -> None:
    a, b = stable_pair(script)
    a.join(may_wait=True)
    b.leave()


@scenario()
def a_member_that_leaves_while_its_join_waits_is_told(script: Script) -> None:
    a, b = stable_pair(script)
    elsewhere = script.client("elsewhere")
    a.join(may_wait=True)
    elsewhere.leave((a.member_id, None), reason="an operator")
    b.join()


@scenario()
def the_last_member_that_leaves_in_a_rebalance_empties_the_group(script: Script) -> None:
    a, b = stable_pair(script)
    elsewhere = script.client("elsewhere")
    a.join(may_wait=True)
    elsewhere.leave((a.member_id, None), (b.member_id, None))
    elsewhere.describe()


@scenario()
def a_leave_before_the_sync_starts_over(script: Script) -> None:
    a, b = completing_pair(script)
    b.leave()
    a.sync({a: b"x"})
    a.join()
    a.describe()


@scenario()
def a_pending_id_can_leave_every_kind_of_group(script: Script) -> None:
    a, c, d = script.clients("a", "c", "d")
    c.join()
    c.leave()
    c.leave()
    a.enter()
    c.join(member_id="")
    d.join(member_id="")
    c.leave((c.member_id, None), (d.member_id, None), (c.member_id, None), version=3)
    a.sync({a: b"x"})
    a.describe()
