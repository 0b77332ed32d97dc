"""Consumers leave or fall silent: what the others get, and what is left of the group."""

from tests.compare.scenarios.consumer_join import joined, stable_pair
from tests.compare.script import Script, scenario


@scenario("consumers")
def the_last_consumer_leaves(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    a.consumer_join(topic)
    a.consumer_leave()
    a.describe_consumers()
    a.describe()
    a.list_groups()
    a.consumer_leave()
    a.consumer_beat(2)
    a.consumer_join(topic)
    a.describe_consumers()


@scenario("consumers")
def a_consumer_leaves_and_the_other_gets_all(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = stable_pair(script, topic)
    a.consumer_leave(owned={topic: [0, 1]}, topics=("new",), rebalance_ms=5)
    b.describe_consumers()
    b.consumer_beat(owned={topic: [2, 3]})
    b.consumer_beat(owned={topic: [0, 1, 2, 3]})
    b.describe_consumers()


@scenario("consumers")
def a_consumer_leaves_whatever_epoch_it_had(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = joined(script, topic, "a", "b")
    b.consumer_leave()
    a.consumer_beat(owned={topic: [0, 1, 2, 3]})
    b.consumer_join(topic, version=0)
    a.consumer_leave(version=0)
    b.consumer_leave(version=0)


@scenario("consumers of short sessions")
def a_silent_consumer_is_put_out(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic)
    script.until_members()
    a.describe_consumers()
    a.consumer_beat(2)
    b.consumer_join(topic)
    b.describe_consumers()


@scenario("consumers of short sessions")
def a_heartbeat_begins_the_session_again(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, _ = joined(script, topic, "a", "b")
    for _ in range(3):
        script.pause_ms(600)
        a.consumer_beat(owned={topic: [0]})
        script.describe_consumers()
    script.until_members("a")
    a.describe_consumers()


@scenario("consumers of short sessions")
def a_refused_heartbeat_does_not_begin_the_session_again(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    for _ in range(3):
        script.pause_ms(600)
        a.consumer_beat(2, owned={topic: [0]})
        b.consumer_beat(77)
    script.until_members("a")
    a.describe_consumers()


@scenario("consumers of short sessions")
def all_consumers_fall_silent(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    a.consumer_join(topic)
    a.consumer_beat(owned={topic: [0, 1]})
    script.until_members()
    a.commit_simply(topic, {0: 5})
    a.describe_consumers()
    a.delete_groups()
    a.describe_consumers()
