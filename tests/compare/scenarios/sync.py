"""SyncGroup: who hands out the assignment, who waits for it, who is refused."""

from tests.compare.client import Client
from tests.compare.scenarios.join import stable_pair
from tests.compare.script import Script, scenario


def completing_pair(script: Script, *, version: int = 9) -> tuple[Client, Client]:
    """A group whose join phase is over: a leads, b follows, nobody has synced."""
    a, b = script.clients("a", "b")
    a.enter(version=version)
    b.join(version=version)
    b.join(may_wait=True, version=version)
    a.join(version=version)
    return a, b


@scenario()
def a_sync_without_a_group_id_is_invalid(script: Script) -> None:
    a = script.client("a")
    for version in range(6):
        a.sync(group_id="", member_id="somebody", generation_id=1, version=version)


@scenario()
def a_sync_with_an_unknown_group_is_a_sync_of_nobody(script: Script) -> None:
    a = script.client("a")
    for version in range(6):
        a.sync(member_id="somebody", generation_id=1, version=version)
    a.sync(member_id="somebody", instance_id="i", generation_id=1)


@scenario()
def a_sync_must_name_the_protocol_since_version_five(script: Script) -> None:
    a, b = completing_pair(script)
    a.sync(protocol_type=None)
    a.sync(protocol_name=None)
    a.sync(protocol_type=None, protocol_name=None, group_id="")
    a.sync(protocol_type="connect")
    a.sync(protocol_name="roundrobin")
    b.sync(protocol_name="", may_wait=True)
    a.sync({a: b"x", b: b"y"})
    b.sync(protocol_name="roundrobin")
    b.sync()


@scenario()
def a_sync_is_checked_in_order(script: Script) -> None:
    a, _ = completing_pair(script)
    a.sync(member_id="stranger", generation_id=7, protocol_name="other")
    a.sync(generation_id=7, protocol_name="other")
    a.sync(generation_id=0)
    a.sync(generation_id=-1)
    a.sync(instance_id="i", generation_id=7)
    a.sync(member_id="", generation_id=7)
    a.sync(protocol_name="other")


@scenario()
def a_sync_of_an_empty_group_is_a_sync_of_nobody(script: Script) -> None:
    a = script.client("a")
    a.enter()
    a.leave()
    a.sync(generation_id=2)
    a.sync(generation_id=1)
    a.sync(member_id="stranger")


@scenario()
def a_sync_while_others_still_join_is_told_to_join(script: Script) -> None:
    a, b = stable_pair(script)
    a.join(may_wait=True)
    b.sync()
    b.sync(generation_id=7)
    b.sync(protocol_name="other")


@scenario()
def followers_wait_for_the_leader(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.enter()
    b.join()
    c.join()
    b.join(may_wait=True)
    c.join(may_wait=True)
    a.join()
    b.sync(may_wait=True)
    c.sync(may_wait=True)
    a.describe()
    a.sync({a: b"1", b: b"2", c: b"3"})
    a.describe()


@scenario()
def a_follower_may_come_after_the_leader(script: Script) -> None:
    a, b = completing_pair(script)
    a.sync({a: b"1", b: b"2"})
    b.sync()
    b.sync()
    a.sync()
    a.sync({a: b"changed", b: b"changed"})
    for version in range(6):
        b.sync(version=version)


@scenario()
def members_that_the_leader_forgot_get_nothing(script: Script) -> None:
    a, b = completing_pair(script)
    b.sync(may_wait=True)
    a.sync({a: b"1", "stranger": b"2"})
    a.describe()


@scenario()
def a_leader_may_assign_nothing_at_all(script: Script) -> None:
    a, b = completing_pair(script)
    b.sync(may_wait=True)
    a.sync()
    a.describe()


@scenario()
def what_a_follower_assigns_is_not_heard(script: Script) -> None:
    a, b = completing_pair(script)
    b.sync({a: b"mine", b: b"mine"}, may_wait=True)
    a.sync({a: b"1", b: b"2"})


@scenario()
def a_follower_that_syncs_twice_is_answered_once(script: Script) -> None:
    a, b = completing_pair(script)
    again = script.client("b-again")
    b.sync(may_wait=True)
    again.sync(member_id=b.member_id, generation_id=b.generation_id, may_wait=True)
    a.sync({a: b"1", b: b"2"})


@scenario()
def a_member_that_leaves_interrupts_the_waiting_syncs(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.enter()
    b.join()
    c.join()
    b.join(may_wait=True)
    c.join(may_wait=True)
    a.join()
    b.sync(may_wait=True)
    c.leave()
    a.join(may_wait=True)
    b.join()


@scenario()
def the_leader_that_leaves_interrupts_the_waiting_syncs(script: Script) -> None:
    a, b = completing_pair(script)
    b.sync(may_wait=True)
    a.leave()
    b.join()
    b.sync({b: b"all"})


@scenario()
def a_member_that_leaves_while_its_sync_waits(script: Script) -> None:
    a, b = completing_pair(script)
    elsewhere = script.client("elsewhere")
    b.sync(may_wait=True)
    elsewhere.leave((b.member_id, None))
    a.join()


@scenario()
def a_generation_of_the_past_cannot_sync(script: Script) -> None:
    a, b = stable_pair(script)
    a.join(may_wait=True)
    b.join()
    b.sync(generation_id=2)
    a.sync({a: b"1", b: b"2"}, generation_id=2)
    b.sync(may_wait=True)
    a.sync({a: b"1", b: b"2"})


@scenario()
def a_pair_syncs_in_every_version(script: Script) -> None:
    a, b = completing_pair(script, version=6)
    for version in range(6):
        b.sync(version=version, may_wait=True)
        a.sync({a: b"1", b: b"2"}, version=version)
        a.join(version=6, may_wait=True)
        b.join(version=6)
