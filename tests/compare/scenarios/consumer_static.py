"""Static consumers (group.instance.id): they go for a while, return, and are fenced."""

from collections.abc import Sequence

from tests.compare.client import Client
from tests.compare.script import Script, scenario


def static_pair(script: Script, topic: str) -> Sequence[Client]:
    """Instance ia owns partitions 0 and 1, instance ib owns 2 and 3; their epoch is 3."""
    a, b = script.clients("a", "b")
    a.consumer_join(topic, instance_id="ia")
    b.consumer_join(topic, instance_id="ib")
    a.consumer_beat(instance_id="ia", owned={topic: [0, 1]})
    b.consumer_beat(instance_id="ib")
    return a, b


@scenario("consumers")
def static_consumers_join(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = static_pair(script, topic)
    a.describe_consumers()
    a.consumer_beat()
    a.consumer_beat(instance_id="ia", owned={topic: [0, 1]})


@scenario("consumers")
def an_instance_id_that_is_in_use_is_refused(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = static_pair(script, topic)
    new = script.client("new")
    new.consumer_join(topic, instance_id="ia")
    new.consumer_join(topic, instance_id="ia", member_id="", version=0)
    a.consumer_join(topic, instance_id="ia")
    b.consumer_join(topic, instance_id="ia")
    a.consumer_join(topic)
    a.describe_consumers()
    a.consumer_beat(instance_id="ia")


@scenario("consumers")
def a_static_consumer_goes_for_a_while_and_returns(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = static_pair(script, topic)
    a.consumer_leave(-2, instance_id="ia")
    a.describe_consumers()
    b.consumer_beat(instance_id="ib", owned={topic: [2, 3]})
    a.consumer_beat(3, instance_id="ia")
    a.consumer_beat(-2, instance_id="ia")
    new = script.client("new")
    new.consumer_join(topic, instance_id="ia")
    new.describe_consumers()
    b.consumer_beat(instance_id="ib")
    a.consumer_beat(3, instance_id="ia")
    new.consumer_beat(instance_id="ia")
    new.consumer_beat()


@scenario("consumers")
def a_static_consumer_returns_with_the_same_member_id(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = static_pair(script, topic)
    a.consumer_leave(-2, instance_id="ia")
    a.consumer_join(topic, instance_id="ia")
    a.consumer_beat(instance_id="ia", owned={topic: [0, 1]})
    a.describe_consumers()


@scenario("consumers")
def a_static_consumer_returns_with_other_topics(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    other = script.subscribed_topic("other", partitions=2)
    a, b = static_pair(script, topic)
    a.consumer_leave(-2, instance_id="ia")
    new = script.client("new")
    new.consumer_join(other, instance_id="ia", rack_id="r", assignor="range", rebalance_ms=1)
    b.consumer_beat(instance_id="ib", owned={topic: [2, 3]})
    new.describe_consumers()


@scenario("consumers")
def a_static_consumer_goes_while_it_gives_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, instance_id="ia")
    b.consumer_join(topic, instance_id="ib")
    a.consumer_beat(instance_id="ia", owned={topic: [0, 1]})
    a.consumer_leave(-2, instance_id="ia")
    b.consumer_beat(instance_id="ib", owned={})
    a.describe_consumers()
    new = script.client("new")
    new.consumer_join(topic, instance_id="ia")
    b.consumer_beat(instance_id="ib", owned={})
    new.describe_consumers()


@scenario("consumers")
def the_group_changes_while_a_static_consumer_is_away(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = static_pair(script, topic)
    a.consumer_leave(-2, instance_id="ia")
    c, new = script.clients("c", "new")
    c.consumer_join(topic)
    b.consumer_beat(instance_id="ib", owned={topic: [2, 3]})
    c.consumer_beat(owned={})
    c.describe_consumers()
    new.consumer_join(topic, instance_id="ia")
    c.consumer_beat(owned={})
    new.describe_consumers()


@scenario("consumers")
def an_instance_id_of_another_member_is_fenced(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = static_pair(script, topic)
    b.consumer_beat(instance_id="ia")
    b.consumer_beat(99, instance_id="ia")
    b.consumer_beat(instance_id="nobody")
    b.consumer_leave(instance_id="ia")
    b.consumer_leave(-2, instance_id="ia")
    b.consumer_leave(-2, instance_id="nobody")
    b.consumer_leave(instance_id="nobody")
    b.consumer_beat(1, member_id="stranger", instance_id="ia")
    a.describe_consumers()


@scenario("consumers")
def a_past_life_is_fenced(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = static_pair(script, topic)
    a.consumer_leave(-2, instance_id="ia")
    new = script.client("new")
    new.consumer_join(topic, instance_id="ia")
    a.consumer_beat(3, instance_id="ia")
    a.consumer_beat(3)
    a.consumer_leave(instance_id="ia")
    a.consumer_leave(-2, instance_id="ia")
    a.consumer_leave()
    a.consumer_join(topic)
    a.consumer_join(topic, instance_id="ia")
    a.commit(topic, {0: 1}, generation_id=3)
    new.commit(topic, {0: 1}, instance_id="ia")
    new.commit(topic, {0: 2}, instance_id="nobody")


@scenario("consumers")
def a_static_consumer_leaves_for_good(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = static_pair(script, topic)
    a.consumer_leave(instance_id="ia")
    b.consumer_beat(instance_id="ib")
    b.consumer_leave()
    b.describe_consumers()
    a.consumer_join(topic, instance_id="ia")


@scenario("consumers")
def a_static_consumer_that_is_away_leaves_for_good(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = static_pair(script, topic)
    a.consumer_leave(-2, instance_id="ia")
    a.consumer_leave(instance_id="ia")
    b.consumer_beat(instance_id="ib")
    b.describe_consumers()


@scenario("consumers")
def a_dynamic_consumer_cannot_go_for_a_while(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    a.consumer_leave(-2)
    a.consumer_leave(-2, instance_id="ia")
    a.consumer_join(topic, instance_id="ia")
    a.describe_consumers()
    a.consumer_leave(-2, instance_id="ia")


@scenario("consumers of short sessions")
def a_static_consumer_never_returns(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    a.consumer_join(topic, instance_id="ia")
    a.consumer_leave(-2, instance_id="ia")
    script.until_members()
    a.describe_consumers()
    a.consumer_join(topic, instance_id="ia")
