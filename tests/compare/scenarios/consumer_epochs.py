"""Member epochs: which heartbeats are taken, after a lost answer, twice, too old, too new."""

from tests.compare.scenarios.consumer_join import joined, stable_pair
from tests.compare.script import Script, scenario


@scenario("consumers")
def an_epoch_of_the_future_is_fenced(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = stable_pair(script, topic)
    a.consumer_beat(4)
    a.consumer_beat(99, owned={topic: [0, 1]})
    a.consumer_beat(99, topics=("new",))
    a.describe_consumers()
    a.consumer_beat(3)


@scenario("consumers")
def an_answer_that_was_lost_is_asked_for_again(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = stable_pair(script, topic)
    a.consumer_beat(2, owned={topic: [0, 1]})
    a.consumer_beat(2, owned={topic: [0]})
    a.consumer_beat(2, owned={})
    a.consumer_beat(2, owned={topic: [0, 1, 2]})
    a.consumer_beat(2, owned={topic: [2]})
    a.consumer_beat(2)
    a.consumer_beat(1, owned={})
    a.consumer_beat(1)
    a.consumer_beat(2, owned={topic: [0, 1]}, topics=(topic,), rebalance_ms=300_000)


@scenario("consumers")
def the_answer_to_a_join_was_lost(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a = script.client("a")
    a.consumer_join(topic)
    a.consumer_join(topic)
    a.consumer_beat(1, owned={})
    a.consumer_beat(1, owned={topic: [0]})
    a.consumer_beat(1)


@scenario("consumers")
def the_answer_with_new_partitions_was_lost(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    b.consumer_leave()
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_join(topic)
    a.consumer_beat()
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat()
    b.consumer_beat(b.generation_id - 1, owned={})
    b.consumer_beat(b.generation_id - 1, owned={topic: [1]})
    b.consumer_beat(b.generation_id - 1, owned={topic: [0, 1]})
    b.consumer_beat(owned={topic: [1]})


@scenario("consumers")
def the_answer_that_takes_partitions_away_was_lost(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1]})
    a.consumer_beat(owned={topic: [0, 1]})
    a.consumer_beat(owned={topic: [0, 1]}, topics=(topic,), rebalance_ms=300_000)
    a.consumer_beat(owned={topic: [0]})
    a.consumer_beat(2, owned={topic: [0]})
    a.consumer_beat(2, owned={topic: [0, 1]})
    b.consumer_beat()


@scenario("consumers")
def a_heartbeat_comes_twice(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = joined(script, topic, "a", "b")
    for _ in range(2):
        a.consumer_beat(2, owned={topic: [0, 1, 2, 3]})
    for _ in range(2):
        a.consumer_beat(2, owned={topic: [0, 1]})
    for _ in range(2):
        b.consumer_beat(3, owned={})
    for _ in range(2):
        a.consumer_beat(-1)


@scenario("consumers")
def epoch_zero_is_always_taken(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = stable_pair(script, topic)
    a.consumer_join(topic)
    a.consumer_beat(2, owned={topic: [0, 1]})
    a.consumer_beat(3, owned={topic: [0, 1]})
    a.consumer_beat(0, owned={})
    a.describe_consumers()


@scenario("consumers")
def two_epochs_ago_is_fenced(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = stable_pair(script, topic)
    joined(script, topic, "c")
    a.consumer_beat(owned={topic: [0]})
    a.consumer_beat(2, owned={})
    a.consumer_beat(3, owned={})
    a.consumer_beat(4, owned={})


@scenario("consumers")
def an_unknown_consumer_is_refused(script: Script) -> None:
    topic = script.subscribed_topic()
    a, b = script.clients("a", "b")
    a.consumer_join(topic)
    b.consumer_beat(1)
    b.consumer_beat(2, topics=(topic,), owned={}, rebalance_ms=1_000)
    b.consumer_beat(2, instance_id="ib")
    b.consumer_leave()
    b.consumer_leave(instance_id="ib")
    b.consumer_leave(-2, instance_id="ib")
    a.consumer_beat(2, instance_id="ib")
    a.consumer_leave(instance_id="ib")
    a.consumer_leave(-2, instance_id="ib")
    a.consumer_leave()
    a.consumer_beat(2)
    a.consumer_leave()
    a.describe_consumers()
