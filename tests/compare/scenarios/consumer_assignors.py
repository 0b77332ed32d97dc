"""Assignors of consumer groups: who chooses, and what uniform and range hand out."""

from tests.compare.scenarios.consumer_join import joined
from tests.compare.script import Script, scenario


@scenario("consumers")
def the_assignor_with_most_votes_is_used(script: Script) -> None:
    topic = script.subscribed_topic(partitions=3)
    a, b, c = script.clients("a", "b", "c")
    a.consumer_join(topic)
    a.describe_consumers()
    b.consumer_join(topic, assignor="range")
    b.describe_consumers()
    c.consumer_join(topic, assignor="uniform")
    c.describe_consumers()
    a.consumer_beat(assignor="range")
    a.describe_consumers()
    b.consumer_beat(assignor="uniform")
    a.describe_consumers()


@scenario("consumers")
def a_tie_of_assignors(script: Script) -> None:
    topic = script.subscribed_topic(partitions=3)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, assignor="range")
    b.consumer_join(topic, assignor="uniform")
    a.describe_consumers()
    b.consumer_leave()
    b.consumer_join(topic, assignor="range")
    a.consumer_beat(assignor="uniform")
    a.describe_consumers()


@scenario("consumers")
def range_hands_out_neighbours_of_each_topic(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=5)
    u = script.subscribed_topic("u", partitions=4)
    clients = script.clients("c", "a", "b")
    for client in clients:
        client.consumer_join(t, u, assignor="range")
    clients[0].describe_consumers()


@scenario("consumers")
def range_takes_static_members_first(script: Script) -> None:
    topic = script.subscribed_topic(partitions=6)
    a, b, c, d = script.clients("a", "b", "c", "d")
    a.consumer_join(topic, assignor="range")
    c.consumer_join(topic, assignor="range", instance_id="2")
    d.consumer_join(topic, assignor="range", instance_id="1")
    b.consumer_join(topic, assignor="range")
    a.describe_consumers()


@scenario("consumers")
def range_with_different_subscriptions(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=3)
    u = script.subscribed_topic("u", partitions=3)
    a, b, c = script.clients("a", "b", "c")
    a.consumer_join(t, assignor="range")
    b.consumer_join(u, assignor="range")
    c.consumer_join(t, u, assignor="range")
    a.describe_consumers()


@scenario("consumers")
def uniform_takes_little_away(script: Script) -> None:
    topic = script.subscribed_topic(partitions=7)
    clients = joined(script, topic, "a", "b", "c")
    clients[0].describe_consumers()
    d = script.client("d")
    d.consumer_join(topic)
    d.describe_consumers()
    clients[1].consumer_leave()
    d.consumer_beat()
    d.describe_consumers()


@scenario("consumers")
def uniform_with_different_subscriptions(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=4)
    u = script.subscribed_topic("u", partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(t)
    b.consumer_join(t, u)
    a.describe_consumers()


@scenario("consumers")
def a_tie_is_decided_by_the_member_that_votes(script: Script) -> None:
    """Static members are first only for `range`."""
    topic = script.subscribed_topic(partitions=4)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, assignor="uniform")
    b.consumer_join(topic, assignor="uniform", instance_id="ib")
    a.consumer_beat(assignor="range", topics=[topic, "u"])
    a.describe_consumers()
    a.consumer_beat(assignor="uniform", topics=[topic])
    a.describe_consumers()
    b.consumer_beat(assignor="range", instance_id="ib", topics=[topic, "u"])
    a.describe_consumers()
    a.consumer_beat(topics=[topic, "u"])
    a.describe_consumers()
