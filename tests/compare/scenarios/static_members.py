"""Static members (KIP-345, KIP-814): they return, and no other member has to rejoin."""

from tests.compare.client import Client, topics
from tests.compare.script import Script, pass_time, scenario

BOTH = (("range", topics("r")), ("roundrobin", topics("rr")))


def static_pair(script: Script, *, version: int = 9) -> tuple[Client, Client]:
    """A stable group of a (instance ia, the leader) and b (instance ib)."""
    a, b = script.clients("a", "b")
    a.join(instance_id="ia", version=version)
    a.sync({a: b"everything"}, instance_id="ia")
    b.join(instance_id="ib", version=version, may_wait=True)
    a.join(instance_id="ia", version=version)
    b.sync(instance_id="ib", may_wait=True)
    a.sync({a: b"half", b: b"other half"}, instance_id="ia")
    return a, b


@scenario()
def a_static_member_joins_in_one_step_in_every_version(script: Script) -> None:
    for version in range(5, 10):
        a = script.client(f"a{version}")
        group = f"{script.group}.{version}"
        a.join(group_id=group, instance_id="ia", version=version)
        a.sync({a: b"x"}, group_id=group, instance_id="ia")
        a.beat(group_id=group, instance_id="ia")
        a.beat(group_id=group)
        a.describe(group)


@scenario()
def a_restarted_leader_keeps_its_place(script: Script) -> None:
    for version in range(5, 10):
        group = f"{script.group}.{version}"
        a, b, new = (script.client(f"{name}{version}") for name in ("a", "b", "new"))
        a.join(group_id=group, instance_id="ia", version=version)
        a.sync({a: b"1"}, group_id=group, instance_id="ia")
        b.join(group_id=group, instance_id="ib", version=version, may_wait=True)
        a.join(group_id=group, instance_id="ia", version=version)
        a.sync({a: b"1", b: b"2"}, group_id=group, instance_id="ia")
        b.sync(group_id=group, instance_id="ib")
        new.join(group_id=group, instance_id="ia", version=version)
        new.sync(group_id=group, instance_id="ia")
        new.beat(group_id=group, instance_id="ia")
        b.beat(group_id=group, instance_id="ib")
        new.describe(group)


@scenario()
def a_restarted_follower_keeps_its_place(script: Script) -> None:
    a, b = static_pair(script)
    for version in range(5, 10):
        new = script.client(f"new{version}")
        new.join(instance_id="ib", version=version)
        new.sync(instance_id="ib")
        a.beat(instance_id="ia")
    b.describe()


@scenario()
def the_id_of_a_past_life_is_fenced_everywhere(script: Script) -> None:
    topic = script.topic()
    a, b = static_pair(script)
    new = script.client("new")
    new.join(instance_id="ib")
    b.beat(instance_id="ib")
    b.beat()
    b.sync(instance_id="ib")
    b.sync()
    b.join(instance_id="ib")
    b.join()
    b.commit(topic, {0: 1}, instance_id="ib")
    b.commit(topic, {0: 1})
    b.leave((b.member_id, "ib"))
    b.leave()
    b.beat(instance_id="ib", generation_id=77)
    new.beat(instance_id="ib")
    new.commit(topic, {0: 2}, instance_id="ib")
    a.beat(instance_id="ia")


@scenario()
def a_wrong_instance_id_is_refused(script: Script) -> None:
    a, b = static_pair(script)
    a.beat(instance_id="ib")
    a.beat(instance_id="nobody")
    a.beat(instance_id="")
    a.beat(instance_id="ib", member_id="stranger")
    a.sync(instance_id="ib")
    a.sync(instance_id="nobody")
    a.join(instance_id="ib")
    a.join(instance_id="nobody")
    b.beat(instance_id="ib")


@scenario()
def a_restart_with_other_topics_moves_nobody(script: Script) -> None:
    a, b = static_pair(script)
    new = script.client("new")
    new.join(instance_id="ib", protocols=(("range", topics("other topics")),))
    new.sync(instance_id="ib")
    new.describe()
    a.beat(instance_id="ia")
    leader = script.client("leader")
    leader.join(instance_id="ia", protocols=(("range", topics("yet others")),))
    leader.sync(instance_id="ia")
    b.beat(instance_id="ib")


@scenario()
def a_restart_that_changes_the_choice_of_protocol_rebalances(script: Script) -> None:
    a, new = script.clients("a", "new")
    a.join(instance_id="ia", protocols=BOTH)
    a.sync({a: b"x"}, instance_id="ia")
    new.join(instance_id="ia", protocols=BOTH[::-1])
    new.sync({new: b"y"}, instance_id="ia", protocol_name="roundrobin")


@scenario()
def a_restart_with_a_foreign_protocol_is_refused(script: Script) -> None:
    _, b = static_pair(script)
    new = script.client("new")
    new.join(instance_id="ib", protocols=(("sticky", topics()),))
    new.join(instance_id="ib", protocol_type="connect")
    b.beat(instance_id="ib")


@scenario()
def a_restart_with_another_timeout_has_it_from_its_first_beat(script: Script) -> None:
    static_pair(script)
    new = script.client("new")
    new.join(instance_id="ib", session_ms=600)
    pass_time(script, 1_200, "clock")
    new.beat(instance_id="ib")
    script.until_state("PreparingRebalance")
    new.beat(instance_id="ib")


@scenario()
def a_restart_while_the_join_of_the_past_life_waits(script: Script) -> None:
    a, b = static_pair(script)
    new = script.client("new")
    a.join(instance_id="ia", may_wait=True)
    new.join(instance_id="ia", may_wait=True)
    b.join(instance_id="ib")
    b.sync(instance_id="ib", may_wait=True)
    new.sync({new: b"1", b: b"2"}, instance_id="ia")


@scenario()
def a_restart_while_the_sync_of_the_past_life_waits(script: Script) -> None:
    a, b = static_pair(script)
    new = script.client("new")
    a.join(instance_id="ia", may_wait=True)
    b.join(instance_id="ib")
    b.sync(instance_id="ib", may_wait=True)
    new.join(instance_id="ib", may_wait=True)
    a.sync({a: b"1"}, instance_id="ia")
    a.join(instance_id="ia")


@scenario()
def a_restart_while_another_sync_waits(script: Script) -> None:
    a, b = static_pair(script)
    new = script.client("new")
    a.join(instance_id="ia", may_wait=True)
    b.join(instance_id="ib")
    b.sync(instance_id="ib", may_wait=True)
    new.join(instance_id="ia", may_wait=True)
    b.join(instance_id="ib")


@scenario()
def a_restart_before_its_own_join_of_the_rebalance(script: Script) -> None:
    a, b = static_pair(script)
    new = script.client("new")
    a.join(instance_id="ia", may_wait=True)
    new.join(instance_id="ib")
    b.beat(instance_id="ib")


@scenario()
def a_static_member_may_join_again_with_its_id(script: Script) -> None:
    a, b = static_pair(script)
    b.join(instance_id="ib")
    b.join()
    b.join(instance_id="ib", protocols=(("range", topics("more")),), may_wait=True)
    a.join(instance_id="ia")


@scenario()
def a_static_member_that_is_absent_stays_a_member(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(instance_id="ia", rebalance_ms=900)
    a.sync({a: b"x"}, instance_id="ia")
    b.join(instance_id="ib", rebalance_ms=900, may_wait=True)
    a.join(instance_id="ia", rebalance_ms=900)
    b.sync(instance_id="ib", may_wait=True)
    a.sync({a: b"x", b: b"y"}, instance_id="ia")
    a.join(instance_id="ia", rebalance_ms=900, may_wait=True)
    script.answers(a)
    b.beat(instance_id="ib")
    b.beat(instance_id="ib", generation_id=3)


@scenario()
def another_leads_while_the_static_leader_is_absent(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(instance_id="ia", rebalance_ms=900)
    a.sync({a: b"x"}, instance_id="ia")
    b.join(instance_id="ib", rebalance_ms=900, may_wait=True)
    a.join(instance_id="ia", rebalance_ms=900)
    b.sync(instance_id="ib", may_wait=True)
    a.sync({a: b"x", b: b"y"}, instance_id="ia")
    b.join(instance_id="ib", protocols=(("range", topics("m")),), rebalance_ms=900, may_wait=True)
    script.answers(b)


@scenario()
def a_silent_static_member_is_put_out_at_last(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(instance_id="ia")
    a.sync({a: b"x"}, instance_id="ia")
    b.join(instance_id="ib", session_ms=900, may_wait=True)
    a.join(instance_id="ia")
    b.sync(instance_id="ib", may_wait=True)
    a.sync({a: b"x", b: b"y"}, instance_id="ia")
    script.until_state("PreparingRebalance")
    b.beat(instance_id="ib")
    a.beat(instance_id="ia")
    a.join(instance_id="ia")
    b.join(instance_id="ib")
    b.join(instance_id="ib", member_id="", may_wait=True)


@scenario()
def an_operator_removes_members_by_instance_id(script: Script) -> None:
    a, b = static_pair(script)
    operator = script.client("operator")
    operator.leave(("", "nobody"), ("", "ib"), ("", "ib"), reason="by hand")
    b.beat(instance_id="ib")
    a.beat(instance_id="ia")
    a.join(instance_id="ia")


@scenario()
def a_static_member_leaves_with_both_ids(script: Script) -> None:
    a, b = static_pair(script)
    operator = script.client("operator")
    operator.leave((a.member_id, "ib"), ("stranger", "ib"), (b.member_id, "nobody"))
    operator.leave((b.member_id, "ib"), version=3)
    operator.leave(("", "ia"), version=4)
    operator.describe()


@scenario()
def a_static_member_leaves_while_its_join_waits(script: Script) -> None:
    a, b = static_pair(script)
    operator = script.client("operator")
    a.join(instance_id="ia", may_wait=True)
    operator.leave(("", "ia"))
    b.join(instance_id="ib")


@scenario()
def a_static_and_a_dynamic_member_share_a_group(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join(instance_id="ib", may_wait=True)
    a.join()
    b.sync(instance_id="ib", may_wait=True)
    a.sync({a: b"1", b: b"2"})
    new = script.client("new")
    new.join(instance_id="ib")
    new.describe()
    new.describe(version=3)
    a.join(may_wait=True)
    new.join(instance_id="ib")


@scenario()
def a_dynamic_member_cannot_become_static(script: Script) -> None:
    a = script.client("a")
    a.enter()
    a.sync({a: b"x"})
    a.join(instance_id="ia")
    a.beat(instance_id="ia")
    a.beat()


@scenario()
def an_empty_instance_id_is_an_instance_id(script: Script) -> None:
    a = script.client("a")
    a.join(instance_id="")
    a.describe()


@scenario()
def static_members_alone_and_absent_keep_the_group_waiting(script: Script) -> None:
    a, b, c, x = script.clients("a", "b", "c", "x")
    a.join(instance_id="ia", rebalance_ms=700)
    a.sync({a: b"x"}, instance_id="ia")
    c.join(rebalance_ms=700)
    c.join(rebalance_ms=700, may_wait=True)
    x.leave((c.member_id, None))
    a.beat(instance_id="ia")
    b.join(instance_id="ia", rebalance_ms=700)
    b.sync({b: b"y"}, instance_id="ia")
