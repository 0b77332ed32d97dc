"""DescribeGroups, ListGroups, DeleteGroups: what an operator sees of groups and may do to them."""

from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.names import GroupId
from tests.compare.client import topics
from tests.compare.scenarios.join import stable_pair
from tests.compare.scenarios.sync import completing_pair
from tests.compare.script import Script, scenario


@scenario()
def a_group_is_described_in_every_state_and_version(script: Script) -> None:
    x = script.client("x")
    for version in range(7):
        x.describe(version=version)
    a, b = completing_pair(script)
    for version in range(7):
        x.describe(version=version)
    b.sync(may_wait=True)
    a.sync({a: b"1", b: b"2"})
    for version in range(7):
        x.describe(version=version)
    a.join(may_wait=True)
    for version in range(7):
        x.describe(version=version)
    b.join()
    a.leave()
    b.leave()
    for version in range(7):
        x.describe(version=version)


@scenario()
def many_groups_are_described_at_once(script: Script) -> None:
    a = script.client("a")
    a.enter()
    names = (script.group, f"{script.group}.nowhere", "", script.group)
    for version in (0, 3, 5, 6):
        a.describe(*names, version=version)
    a.ask(DescribeGroupsRequest(()), 6)


@scenario()
def what_one_may_do_to_a_group_is_told_on_request(script: Script) -> None:
    a = script.client("a")
    a.enter()
    for version in (3, 5, 6):
        a.describe(script.group, f"{script.group}.nowhere", operations=True, version=version)


@scenario()
def assignments_stay_visible_while_the_group_rebalances(script: Script) -> None:
    a, b = stable_pair(script)
    a.describe()
    a.join(may_wait=True)
    b.describe()
    b.join()
    b.describe()
    b.sync(may_wait=True)
    a.sync({a: b"new"})
    b.describe()


@scenario()
def groups_are_listed_in_every_version(script: Script) -> None:
    topic = script.topic()
    a, b, c, x = script.clients("a", "b", "c", "x")
    a.commit_simply(topic, {0: 1}, group_id=f"{script.group}.simple")
    a.enter(group_id=f"{script.group}.completing")
    b.enter(group_id=f"{script.group}.stable")
    b.sync({b: b"x"}, group_id=f"{script.group}.stable")
    c.enter(group_id=f"{script.group}.empty")
    c.leave(group_id=f"{script.group}.empty")
    for version in range(6):
        x.list_groups(version=version)


@scenario()
def groups_are_listed_by_state_and_type(script: Script) -> None:
    topic = script.topic()
    a, b, c = script.clients("a", "b", "c")
    a.commit_simply(topic, {0: 1}, group_id=f"{script.group}.simple")
    a.enter(group_id=f"{script.group}.completing")
    b.enter(group_id=f"{script.group}.stable")
    b.sync({b: b"x"}, group_id=f"{script.group}.stable")
    stable = f"{script.group}.stable"
    for states in (["Stable"], ["stable", "EMPTY"], [" completingRebalance "], ["no state"], [""]):
        a.list_groups(states, version=4)
        a.list_groups(states, version=5)
    for types in (["classic"], ["CLASSIC"], ["consumer"], ["share"], ["streams"], ["x"], [""]):
        a.list_groups((), types)
    a.list_groups(["Stable"], ["classic", "consumer"])
    c.join(group_id=stable, version=3, may_wait=True)
    a.list_groups(["PreparingRebalance"])


@scenario()
def only_empty_groups_are_deleted(script: Script) -> None:
    topic = script.topic()
    a, x = script.clients("a", "x")
    x.delete_groups()
    a.enter()
    x.delete_groups()
    a.sync({a: b"x"})
    a.commit(topic, {0: 1})
    for version in range(3):
        x.delete_groups(version=version)
    b = script.client("b")
    b.join(version=3, may_wait=True)
    x.delete_groups()
    a.leave()
    b.leave()
    x.delete_groups()
    x.delete_groups()
    x.describe()
    x.fetch_offsets({topic: [0]})
    a.join()
    b.join(member_id="")


@scenario()
def many_groups_are_deleted_at_once(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    names = [f"{script.group}.{number}" for number in range(4)]
    for version in range(3):
        for name in names[:3]:
            a.commit_simply(topic, {0: 1}, group_id=name)
        a.delete_groups(*names, names[0], version=version)
        a.list_groups()
    a.delete_groups("")
    a.delete_groups(names[0], "", names[0])


@scenario()
def a_group_that_waits_for_a_pending_member_can_be_deleted(script: Script) -> None:
    a, x = script.clients("a", "x")
    a.join()
    x.delete_groups()
    x.describe()
    a.join()


@scenario()
def a_deleted_group_begins_anew(script: Script) -> None:
    a = script.client("a")
    a.enter()
    a.leave()
    a.delete_groups()
    a.join(member_id="")
    a.join()


@scenario()
def a_group_of_another_type_is_served_and_never_read(script: Script) -> None:
    """Kafka Connect's workers, the schema registry and others bring their own protocols."""
    topic = script.topic()
    a, b = script.clients("a", "b")
    kind = "connect"
    offers = (("sessioned", b"\xff\x00not a subscription"), ("compatible", b"\x7f\xff\xff\xff"))
    a.enter(protocol_type=kind, protocols=offers)
    a.sync({a: b"\xff"}, protocol_type=kind, protocol_name="sessioned")
    b.join(protocol_type=kind, protocols=offers[::-1])
    b.join(protocol_type=kind, protocols=offers[1:], may_wait=True)
    a.join(protocol_type=kind, protocols=offers)
    b.sync(protocol_type=kind, protocol_name="compatible", may_wait=True)
    a.sync({a: b"\x01", b: b"\x02"}, protocol_type=kind, protocol_name="compatible")
    a.describe()
    a.describe(version=0)
    a.list_groups()
    a.beat()
    a.commit(topic, {0: 1})
    a.delete_offsets({topic: [0]})
    a.delete_groups()
    a.leave()
    b.leave()
    a.describe()
    a.list_groups()
    b.enter(member_id="", protocols=(("range", topics("t")),))


@scenario()
def a_group_name_may_be_anything(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for name in ("with space", "größer ☃", "a/b", "\N{GRINNING FACE}", "x" * 300):
        group = GroupId(f"{script.group}.{name}")
        a.enter(group_id=group, member_id="")
        a.sync({a: b"x"}, group_id=group)
        a.commit(topic, {0: 1}, group_id=group)
        a.fetch_offsets(None, group_id=group)
        a.leave(group_id=group)
        a.delete_groups(group)
