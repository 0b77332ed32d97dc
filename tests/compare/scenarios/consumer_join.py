"""Consumers join: the epochs and assignments of one, two and three members, and full requests."""

from collections.abc import Sequence

from tests.compare.client import Client
from tests.compare.script import Script, scenario


def joined(script: Script, topic: str, *names: str, **options: object) -> Sequence[Client]:
    """Members that joined one after the other, and not one more heartbeat."""
    clients = script.clients(*names)
    for client in clients:
        client.consumer_join(topic, **options)
    return clients


def stable_pair(script: Script, topic: str, **options: object) -> Sequence[Client]:
    """a owns partitions 0 and 1 of the four of this topic, b owns 2 and 3; their epoch is 3."""
    a, b = joined(script, topic, "a", "b", **options)
    a.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat()
    return a, b


@scenario("consumers")
def a_member_joins_alone(script: Script) -> None:
    topic = script.subscribed_topic(partitions=3)
    a = script.client("a")
    a.consumer_join(topic)
    a.describe_consumers()
    a.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1, 2]})
    a.describe_consumers(version=0)
    a.consumer_leave()
    a.describe_consumers()
    a.consumer_join(topic)


@scenario("consumers")
def the_broker_names_a_member_of_version_zero(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, member_id="", version=0)
    a.consumer_beat(version=0)
    a.consumer_join(topic, version=0)
    b.consumer_join(topic, member_id="", version=0)
    a.describe_consumers(version=0)
    a.consumer_leave(version=0)


@scenario("consumers")
def a_member_of_version_zero_may_name_itself(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic, member_id="my own id", version=0)
    a.consumer_beat(version=0)
    a.consumer_beat(version=1)


@scenario("consumers")
def two_members_share_the_partitions(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = stable_pair(script, topic)
    a.describe_consumers()
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat(owned={topic: [2, 3]})


@scenario("consumers")
def three_members_share_the_partitions(script: Script) -> None:
    topic = script.subscribed_topic(partitions=6)
    a, b, c = joined(script, topic, "a", "b", "c")
    a.describe_consumers()
    a.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat()
    c.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def more_members_than_partitions(script: Script) -> None:
    topic = script.subscribed_topic()
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat(owned={})
    a.describe_consumers()
    a.consumer_leave()
    b.consumer_beat(owned={})
    b.consumer_beat(owned={topic: [0]})


@scenario("consumers assigned later")
def the_assignment_of_a_second_member_comes_later(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat(owned={})
    a.describe_consumers()
    script.pause_ms(1_300)
    b.consumer_beat(owned={})
    a.consumer_beat(owned={topic: [0, 1]})
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat(owned={})
    a.describe_consumers()


@scenario("consumers assigned later")
def many_changes_are_one_assignment(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b, c, d = joined(script, topic, "a", "b", "c", "d")
    c.consumer_leave()
    b.consumer_leave()
    a.describe_consumers()
    script.pause_ms(1_300)
    a.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1]})
    d.consumer_beat()
    a.describe_consumers()


@scenario("consumers assigned later")
def a_group_that_became_empty_is_assigned_at_once(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic)
    a.consumer_leave()
    a.describe_consumers()
    b.consumer_join(topic)
    b.describe_consumers()
    script.pause_ms(1_300)
    b.consumer_beat()


@scenario("consumers")
def a_full_request_is_answered_with_the_assignment(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    full = {"topics": (topic,), "owned": {topic: [0, 1]}, "rebalance_ms": 300_000}
    a.consumer_join(topic)
    a.consumer_beat(**full)
    for missing in full:
        a.consumer_beat(**{name: value for name, value in full.items() if name != missing})
    a.consumer_beat(**{**full, "owned": {}})
    a.consumer_beat(**{**full, "owned": {topic: [1]}})
    a.consumer_beat(**{**full, "regex": ""})
    a.consumer_beat(**{**full, "topics": None, "regex": ""})
    a.consumer_beat(**full, version=0)
    a.consumer_beat(**full, assignor="uniform")


@scenario("consumers")
def a_member_changes_what_it_said(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    again = script.client("again")
    a.consumer_join(topic, rack_id="r1", rebalance_ms=1_000)
    a.consumer_beat(rack_id="r1")
    a.consumer_beat(rack_id="r2")
    a.consumer_beat(rebalance_ms=2_000)
    a.consumer_beat(rebalance_ms=2_000)
    a.consumer_beat(assignor="uniform")
    a.consumer_beat(assignor="uniform")
    again.consumer_beat(3, member_id="a")
    again.consumer_beat(2, member_id="a")
    a.consumer_beat(instance_id="ia")
    a.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_member_joins_again_with_epoch_zero(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    other = script.subscribed_topic("other")
    a, b = joined(script, topic, "a", "b")
    a.consumer_join(topic)
    a.consumer_join(topic)
    b.consumer_join(topic)
    b.consumer_join(topic, other)
    a.consumer_beat()
    a.describe_consumers()
    b.consumer_join(topic, rebalance_ms=7)
    a.consumer_join(other)
    b.consumer_beat()


@scenario("consumers")
def a_member_id_may_be_any_text(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    for number, member_id in enumerate((" ", "ä", "x" * 300, "a/b c")):
        group = f"{script.group}.{number}"
        a.consumer_join(topic, member_id=member_id, group_id=group)
        a.consumer_beat(member_id=member_id, group_id=group)


@scenario("small consumer groups")
def a_consumer_group_has_room_for_so_many_members(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b, c = script.clients("a", "b", "c")
    a.consumer_join(topic)
    b.consumer_join(topic, instance_id="ib")
    c.consumer_join(topic)
    c.consumer_join(topic, instance_id="ib")
    c.consumer_join(topic, instance_id="ic")
    c.consumer_beat(5)
    c.consumer_leave()
    a.consumer_join(topic)
    c.consumer_join(topic, member_id="", version=0)
    b.consumer_leave(-2, instance_id="ib")
    c.consumer_join(topic, instance_id="ib")
    c.consumer_join(topic)
    c.join(version=3)
    c.join(instance_id="ib")
    a.consumer_leave()
    c.consumer_join(topic)
    c.describe_consumers()
