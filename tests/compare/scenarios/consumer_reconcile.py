"""Reconciliation: a partition is given back before another member gets it."""

from tests.compare.scenarios.consumer_join import joined, stable_pair
from tests.compare.script import Script, scenario


@scenario("consumers")
def a_member_that_says_nothing_of_its_partitions_keeps_them(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat()
    a.consumer_beat()
    a.describe_consumers()
    b.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat()
    a.describe_consumers()
    a.consumer_beat(owned={topic: [0]})
    a.describe_consumers()
    b.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_member_that_never_owned_gives_back_at_once(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={})
    b.consumer_beat(owned={})
    a.consumer_beat(owned={topic: [0]})
    a.describe_consumers()


@scenario("consumers")
def a_member_owns_only_what_it_keeps_already(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_member_gives_back_in_two_steps(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1, 2, 3]})
    a.consumer_beat(owned={topic: [0, 1, 2]})
    b.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1, 3]})
    a.consumer_beat(owned={topic: [1]})
    b.consumer_beat()
    b.consumer_beat(owned={topic: [2, 3]})
    a.describe_consumers()


@scenario("consumers")
def a_member_names_partitions_that_it_does_not_own(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    other = script.subscribed_topic("other")
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [77]})
    a.consumer_beat(owned={other: [0]})
    b.consumer_beat(owned={topic: [0, 1], other: [5]})
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat(owned={topic: [1]})
    a.describe_consumers()


@scenario("consumers")
def a_member_gets_what_is_free_and_waits_for_the_rest(script: Script) -> None:
    topic = script.subscribed_topic(partitions=6)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1, 2]})
    b.consumer_beat()
    (c,) = joined(script, topic, "c")
    c.describe_consumers()
    a.consumer_beat(owned={topic: [0, 1, 2]})
    a.consumer_beat(owned={topic: [0, 1]})
    c.consumer_beat()
    c.describe_consumers()
    b.consumer_beat(owned={topic: [3, 4, 5]})
    b.consumer_beat(owned={topic: [3, 4]})
    c.consumer_beat()
    c.consumer_beat()
    c.describe_consumers()


@scenario("consumers")
def a_new_target_while_a_member_gives_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=6)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat()
    (c,) = joined(script, topic, "c")
    a.consumer_beat()
    b.consumer_beat()
    a.describe_consumers()
    a.consumer_beat(owned={topic: [0, 1, 2]})
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat()
    c.consumer_beat()
    b.consumer_beat(owned={topic: [3, 4]})
    a.describe_consumers()


@scenario("consumers")
def the_other_member_leaves_while_one_gives_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat()
    a.describe_consumers()
    b.consumer_leave()
    a.consumer_beat()
    a.consumer_beat(owned={topic: [0, 1]})
    a.consumer_beat(owned={topic: [0]})
    a.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def the_member_that_gives_back_leaves(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat()
    a.consumer_leave()
    b.consumer_beat()
    b.consumer_beat()
    b.describe_consumers()


@scenario("consumers")
def a_member_joins_again_while_it_gives_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat()
    a.consumer_join(topic)
    b.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_member_joins_again_while_it_waits(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    b.consumer_join(topic)
    a.consumer_beat(owned={topic: [0]})
    b.consumer_join(topic)
    b.describe_consumers()


@scenario("consumers")
def a_partition_that_came_back_is_not_given_away(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = stable_pair(script, topic)
    b.consumer_leave()
    a.consumer_beat()
    b.consumer_join(topic)
    a.consumer_beat(owned={topic: [0, 1]})
    b.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_member_that_gives_nothing_back_is_put_out(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, rebalance_ms=1_000)
    b.consumer_join(topic)
    a.consumer_beat(owned={topic: [0, 1]})
    script.until_members("b")
    a.consumer_beat(owned={topic: [0, 1]})
    b.describe_consumers()
    b.consumer_beat()
    a.consumer_join(topic)
    b.consumer_beat(owned={topic: [0, 1]})


@scenario("consumers")
def the_time_to_give_back_begins_with_the_request_for_it(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic, rebalance_ms=1_000)
    b.consumer_join(topic)
    script.pause_ms(1_500)
    a.consumer_beat(owned={topic: [0, 1]})
    a.consumer_beat(owned={topic: [0]})
    script.pause_ms(1_500)
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat()
    a.describe_consumers()


@scenario("consumers")
def a_new_timeout_holds_from_the_next_request_to_give_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.consumer_join(topic)
    b.consumer_join(topic)
    a.consumer_beat(rebalance_ms=1_000)
    script.until_members("b")
    a.consumer_beat()
    b.consumer_beat()


@scenario("consumers")
def a_new_target_does_not_extend_the_time_to_give_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=3)
    a, b, c = script.clients("a", "b", "c")
    a.consumer_join(topic, rebalance_ms=1_000)
    b.consumer_join(topic)
    a.consumer_beat(owned={topic: [0, 1, 2]})
    c.consumer_join(topic)
    a.consumer_beat(owned={topic: [0, 1, 2]})
    script.until_members("b", "c")
    b.consumer_beat()
    c.consumer_beat()
    a.describe_consumers()
