"""Subscriptions of consumers: by names, of topics that come, grow and go."""

from tests.compare.scenarios.consumer_join import joined
from tests.compare.script import Script, scenario


@scenario("consumers")
def a_consumer_subscribes_to_other_topics(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=2)
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(t)
    a.consumer_beat(topics=(t,))
    a.consumer_beat(topics=(t, u))
    a.consumer_beat(topics=(u, t))
    a.consumer_beat(topics=(u, t, u))
    a.describe_consumers()
    a.consumer_beat(topics=(u,))
    a.consumer_beat(owned={t: [0], u: [0]})
    a.consumer_beat(owned={u: [0]})
    a.consumer_beat(topics=())
    a.consumer_beat(owned={})
    a.consumer_beat(topics=(), regex="")
    a.describe_consumers()


@scenario("consumers assigned later")
def a_consumer_drops_a_topic_before_the_next_assignment(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=2)
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(t, u)
    a.consumer_beat(topics=(u,), owned={t: [0, 1], u: [0]})
    a.describe_consumers()
    a.consumer_beat(owned={t: [0], u: [0]})
    a.consumer_beat(owned={u: [0]})
    a.consumer_beat(topics=(t, u))
    a.describe_consumers()
    script.pause_ms(1_300)
    a.consumer_beat(owned={u: [0]})
    a.describe_consumers()


@scenario("consumers")
def consumers_subscribe_to_different_topics(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=2)
    u = script.subscribed_topic("u", partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(t)
    b.consumer_join(u)
    a.consumer_beat(owned={t: [0, 1]})
    a.describe_consumers()
    a.consumer_beat(topics=(u,))
    a.consumer_beat(owned={})
    b.consumer_beat(owned={u: [0, 1]})
    b.consumer_beat(owned={u: [0]})
    a.consumer_beat(owned={})
    a.describe_consumers()


@scenario("consumers")
def a_consumer_subscribes_to_nothing(script: Script) -> None:
    t = script.subscribed_topic()
    a, b = script.clients("a", "b")
    a.consumer_join()
    a.consumer_beat()
    a.describe_consumers()
    b.consumer_join()
    b.consumer_join(t)
    a.consumer_beat()
    a.describe_consumers()
    a.consumer_leave()
    b.consumer_leave()
    a.describe_consumers()


@scenario("consumers")
def a_consumer_subscribes_to_a_topic_that_comes_later(script: Script) -> None:
    later = f"{script.group}.later"
    a = script.client("a")
    a.consumer_join(later)
    a.consumer_beat(owned={})
    a.describe_consumers()
    script.subscribed_topic("later", partitions=2)
    a.consumer_beat(owned={})
    a.consumer_beat(owned={later: [0, 1]})
    a.describe_consumers()


@scenario("consumers")
def a_topic_that_nobody_subscribes_to_changes_nothing(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    script.subscribed_topic("other")
    a.consumer_beat()
    script.grow_topic(f"{script.group}.other", 3)
    a.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_topic_grows(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat()
    script.grow_topic(topic, 4)
    b.consumer_beat(owned={topic: [1]})
    a.consumer_beat(owned={topic: [0]})
    a.describe_consumers()
    a.consumer_beat()


@scenario("consumers")
def a_topic_is_deleted(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=2)
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(t, u)
    script.delete_topic(t)
    a.describe_consumers()
    a.consumer_beat()
    a.consumer_beat(owned={u: [0]})
    a.describe_consumers()
    script.delete_topic(u)
    a.consumer_beat(owned={})
    a.describe_consumers()


@scenario("consumers")
def a_topic_is_deleted_and_created_again(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    a.consumer_join(topic)
    a.commit(topic, {0: 5})
    script.delete_topic(topic)
    script.topic(partitions=2)
    script.await_metadata()
    a.consumer_beat()
    a.consumer_beat(owned={})
    a.describe_consumers()
    a.consumer_beat()


@scenario("consumers")
def the_members_learn_of_a_grown_topic_with_their_own_heartbeats(script: Script) -> None:
    t = script.subscribed_topic("t")
    u = script.subscribed_topic("u")
    a, b = script.clients("a", "b")
    a.consumer_join(t)
    b.consumer_join(u)
    a.consumer_beat()
    script.grow_topic(t, 2)
    b.consumer_beat()
    a.describe_consumers()
    a.consumer_beat()
    script.grow_topic(u, 2)
    a.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_consumer_leaves_after_the_topic_grew(script: Script) -> None:
    topic = script.subscribed_topic()
    a, b = joined(script, topic, "a", "b")
    script.grow_topic(topic, 2)
    b.consumer_leave()
    a.describe_consumers()
    a.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_topic_may_have_any_name_in_a_subscription(script: Script) -> None:
    a = script.client("a")
    a.consumer_join("", "not/a/name", "x" * 300, "..")
    a.consumer_beat(topics=("", "not/a/name"))
    a.describe_consumers()


@scenario("consumers")
def a_consumer_without_topics_joins_before_the_next_assignment(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, _, c, d = joined(script, topic, "a", "b", "c", "d")
    a.consumer_leave()
    e = script.client("e")
    e.consumer_join()
    e.describe_consumers()
    e.consumer_beat()
    d.consumer_beat(owned={})
    c.consumer_beat(owned={})
    e.describe_consumers()


@scenario("consumers assigned once")
def a_member_drops_its_topics_before_the_next_assignment(script: Script) -> None:
    """Only one without any topic name takes a step that its epoch before does not survive."""
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic)
    b.consumer_join("none")
    b.consumer_beat(topics=("neither",))
    b.consumer_beat(0, topics=("neither",), owned={}, rebalance_ms=300_000)
    b.consumer_beat(topics=())
    b.consumer_beat(topics=("neither",))
    a.consumer_beat(topics=(topic, "none"))
    a.consumer_beat(topics=())
    a.consumer_beat(owned={})
    a.describe_consumers()
