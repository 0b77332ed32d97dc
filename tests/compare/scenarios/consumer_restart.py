"""Restarts: what a consumer group is after its coordinator has read its log again."""

from tests.compare.scenarios.consumer_join import joined, stable_pair
from tests.compare.scenarios.consumer_migration import classic_pair, mixed_pair, ranged
from tests.compare.script import Script, scenario


@scenario("consumers and restarts")
def a_stable_group_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = stable_pair(script, topic)
    a.commit(topic, {0: 5})
    script.restart_broker()
    a.describe_consumers()
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat(owned={topic: [2, 3]})
    a.consumer_beat(2, owned={topic: [0]})
    a.commit(topic, {0: 6})
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=3)
    b.consumer_leave()
    a.consumer_beat()


@scenario("consumers and restarts")
def partitions_move_during_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1]})
    script.restart_broker()
    a.describe_consumers()
    b.consumer_beat(owned={})
    a.consumer_beat(owned={topic: [0, 1]})
    a.commit(topic, {1: 5}, generation_id=2)
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat(owned={})
    a.describe_consumers()


@scenario("consumers and restarts")
def a_member_is_late_during_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, rebalance_ms=1_000)
    b.consumer_join(topic)
    a.consumer_beat(owned={topic: [0, 1]})
    script.restart_broker()
    script.until_members("b")
    b.consumer_beat(owned={})
    a.consumer_beat(owned={topic: [0]})


@scenario("consumers and restarts")
def a_static_consumer_is_away_during_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, instance_id="ia")
    b.consumer_join(topic, instance_id="ib")
    a.consumer_beat(instance_id="ia", owned={topic: [0]})
    b.consumer_beat(instance_id="ib")
    a.consumer_leave(-2, instance_id="ia")
    script.restart_broker()
    b.describe_consumers()
    b.consumer_beat(instance_id="ib", owned={topic: [1]})
    new = script.client("new")
    new.consumer_join(topic, instance_id="ia")
    new.describe_consumers()


@scenario("consumers and restarts")
def an_empty_group_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    a.commit(topic, {0: 5})
    a.consumer_leave()
    script.restart_broker()
    a.describe_consumers()
    a.list_groups()
    a.consumer_join(topic)
    a.describe_consumers()


@scenario("consumers and restarts")
def a_deleted_group_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    a.consumer_leave()
    a.delete_groups()
    script.restart_broker()
    a.describe_consumers()
    a.list_groups()
    a.consumer_join(topic)


@scenario("consumers and restarts")
def a_topic_grows_before_a_restart(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    script.grow_topic(topic, 2)
    script.restart_broker()
    a.describe_consumers()
    a.consumer_beat(owned={topic: [0]})
    a.describe_consumers()


@scenario("consumers and restarts")
def a_regular_expression_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\..")
    script.until_group_epoch(2)
    a.consumer_beat()
    script.restart_broker()
    a.describe_consumers()
    a.consumer_beat(owned={topic: [0]})
    a.describe_consumers()


@scenario("consumers and restarts")
def a_mixed_group_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    script.restart_broker()
    c.describe_consumers()
    a.beat()
    a.sync()
    c.consumer_beat(owned={topic: [0]})
    a.commit(topic, {1: 5})
    c.consumer_leave()
    a.beat()
    a.join(protocols=ranged(topic))
    a.describe()


@scenario("consumers and restarts")
def an_upgraded_group_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    c = script.client("c")
    c.consumer_join(topic)
    script.restart_broker()
    c.describe_consumers()
    a.beat()
    b.beat()
    c.consumer_beat()
    b.leave()
    c.consumer_beat()


@scenario("consumers and restarts")
def a_downgraded_group_after_a_restart(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    c.consumer_leave()
    script.restart_broker()
    a.describe()
    a.beat()
    a.leave()
    c.consumer_join(topic)
    c.describe_consumers()
