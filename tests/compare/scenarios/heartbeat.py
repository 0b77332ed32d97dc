"""Heartbeat: does a member's claim to its generation still stand?"""

from tests.compare.scenarios.join import stable_pair
from tests.compare.scenarios.sync import completing_pair
from tests.compare.script import Script, scenario


@scenario()
def a_beat_without_a_group_id_is_invalid(script: Script) -> None:
    a = script.client("a")
    for version in range(5):
        a.beat(group_id="", member_id="somebody", version=version)


@scenario()
def a_beat_to_an_unknown_group_is_from_nobody(script: Script) -> None:
    a = script.client("a")
    for version in range(5):
        a.beat(member_id="somebody", generation_id=1, version=version)
    a.beat(member_id="")


@scenario()
def a_beat_to_an_empty_group_is_from_nobody(script: Script) -> None:
    a = script.client("a")
    a.enter()
    a.leave()
    a.beat()
    a.beat(generation_id=2)
    a.beat(member_id="")
    a.beat(instance_id="i")


@scenario()
def a_beat_is_answered_in_every_state(script: Script) -> None:
    a, b = completing_pair(script)
    a.beat()
    b.beat()
    b.beat(generation_id=1)
    b.sync(may_wait=True)
    a.sync({a: b"1", b: b"2"})
    a.beat()
    b.beat()
    a.join(may_wait=True)
    b.beat()
    b.beat(generation_id=1)
    b.beat(generation_id=3)


@scenario()
def a_beat_is_checked_in_order(script: Script) -> None:
    a, b = stable_pair(script)
    for version in range(5):
        a.beat(version=version)
        a.beat(generation_id=99, version=version)
        a.beat(member_id="stranger", generation_id=99, version=version)
    a.beat(generation_id=-1)
    a.beat(generation_id=1)
    a.beat(member_id="")
    a.beat(instance_id="i", generation_id=99)
    a.beat(instance_id="i", member_id="stranger")
    b.beat()


@scenario()
def a_member_that_has_left_beats_in_vain(script: Script) -> None:
    a, b = stable_pair(script)
    b.leave()
    b.beat()
    a.beat()
    a.join()
    a.beat()
