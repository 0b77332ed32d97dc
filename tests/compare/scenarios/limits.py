"""Limits of a group: its size, and the time that a new group waits for more members."""

from tests.compare.client import topics
from tests.compare.script import Script, scenario


@scenario("small groups")
def a_group_has_room_for_so_many_members(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.enter()
    a.sync({a: b"x"})
    b.join(version=3, may_wait=True)
    a.join()
    c.join()
    c.join(version=3)
    c.join(instance_id="ic")
    c.join(member_id="stranger")
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"})
    for version in range(10):
        c.join(member_id="", version=version)
    c.join(member_id="stranger")
    b.join()
    b.leave()
    c.join(member_id="")


@scenario("small groups")
def pending_members_take_no_room(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.join()
    b.join()
    c.join()
    a.join()
    b.join(may_wait=True)
    c.join(may_wait=True)
    a.join(may_wait=True)
    script.client("x").describe()


@scenario("small groups")
def a_member_waiting_to_join_may_join_again(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join(version=3, may_wait=True)
    a.join()
    a.sync({a: b"x", b: b"y"})
    b.join(protocols=(("range", topics("more")),), may_wait=True)
    again = script.client("again")
    again.join(member_id=b.member_id, protocols=(("range", topics("more")),), may_wait=True)
    c = script.client("c")
    c.join(version=3, may_wait=True)
    a.join(may_wait=True)


@scenario("delayed")
def a_new_group_waits_for_more_members(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(version=3, may_wait=True)
    b.join(version=3, may_wait=True)
    a_twin = script.client("x")
    a_twin.describe()
    script.answers(a, b)
    b.sync(may_wait=True)
    a.sync({a: b"1", b: b"2"})


@scenario("delayed")
def a_new_group_waits_no_longer_than_its_members_would(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(version=3, rebalance_ms=100, may_wait=True)
    b.join(version=3, rebalance_ms=100, may_wait=True)
    script.answers(a, b)


@scenario("delayed")
def a_member_that_leaves_a_new_group_in_time(script: Script) -> None:
    a, b, x = script.clients("a", "b", "x")
    a.join(instance_id="ia", may_wait=True)
    b.join(instance_id="ib", may_wait=True)
    x.leave(("", "ib"))
    script.answers(a)


@scenario("delayed")
def everybody_leaves_a_new_group_in_time(script: Script) -> None:
    a, x = script.clients("a", "x")
    a.join(instance_id="ia", may_wait=True)
    x.leave(("", "ia"))
    script.until_state("Empty")
    x.describe()
    a.join(instance_id="ia", may_wait=True)
    script.answers(a)


@scenario("delayed")
def a_restart_in_a_new_group_takes_the_place(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(instance_id="ia", may_wait=True)
    b.join(instance_id="ia", may_wait=True)
    script.answers(b)


@scenario("delayed")
def a_rebalance_of_an_old_group_does_not_wait(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(version=3)
    a.sync({a: b"x"})
    b.join(version=3, may_wait=True)
    a.join()
    b.leave()
    a.leave()
    a.join(member_id="", version=3, may_wait=True)
    script.answers(a)
