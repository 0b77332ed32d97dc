"""Administration of consumer groups: described, listed and deleted in each of their states."""

from tests.compare.scenarios.consumer_join import joined
from tests.compare.script import Script, scenario


@scenario("consumers assigned later")
def a_consumer_group_is_described_in_each_state(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b, x = script.clients("a", "b", "x")
    x.describe_consumers()
    a.consumer_join(topic)
    x.describe_consumers()
    x.describe_consumers(version=0)
    b.consumer_join(topic)
    x.describe_consumers()
    script.pause_ms(1_300)
    b.consumer_beat()
    x.describe_consumers()
    a.consumer_beat()
    x.describe_consumers()
    a.consumer_leave()
    b.consumer_leave()
    x.describe_consumers()
    x.describe_consumers(version=0)
    x.delete_groups()
    x.describe_consumers()


@scenario("consumers")
def groups_of_other_types_are_not_consumer_groups(script: Script) -> None:
    topic = script.subscribed_topic()
    classic, offsets = f"{script.group}.classic", f"{script.group}.offsets"
    a, b = script.clients("a", "b")
    a.join(group_id=classic, version=3)
    b.commit_simply(topic, {0: 1}, group_id=offsets)
    b.consumer_join(topic)
    for version in (0, 1):
        b.describe_consumers(classic, offsets, script.group, "", "~", script.group, version=version)
    b.describe_consumers(operations=True)
    b.describe_consumers(classic, operations=True)


@scenario("consumers")
def a_consumer_group_is_dead_to_classic_describes(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    for version in range(7):
        a.describe(version=version)
    a.describe(operations=True)
    a.consumer_leave()
    a.describe(version=5)
    a.describe(version=6)


@scenario("consumers assigned later")
def consumer_groups_are_listed_by_state_and_type(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b, x = script.clients("a", "b", "x")
    empty, assigning, classic = (f"{script.group}.{n}" for n in ("empty", "assigning", "classic"))
    a.consumer_join(topic, group_id=empty)
    a.consumer_leave(group_id=empty)
    a.consumer_join(topic, group_id=assigning)
    b.consumer_join(topic, group_id=assigning)
    script.client("c").join(group_id=classic, version=3)
    a.consumer_join(topic)
    for version in range(6):
        x.list_groups(version=version)
    for states in (
        ("Stable",),
        ("stable",),
        ("Empty",),
        ("Assigning",),
        ("Reconciling",),
        ("Dead",),
    ):
        x.list_groups(states)
    x.list_groups(("assigning", "EMPTY"), version=4)
    x.list_groups(("CompletingRebalance",))
    x.list_groups(("NotReady",))
    for types in (
        ("consumer",),
        ("Consumer",),
        ("CONSUMER",),
        ("classic",),
        ("share",),
        ("streams",),
    ):
        x.list_groups(types=types)
    x.list_groups(types=("classic", "consumer"))
    x.list_groups(types=("unknown",))
    x.list_groups(("Stable",), ("consumer",))
    x.list_groups(("Stable",), ("classic",))
    script.pause_ms(1_300)
    b.consumer_beat(2, group_id=assigning)
    x.list_groups(("Reconciling",))


@scenario("consumers assigned later")
def a_consumer_group_is_deleted_in_each_state(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b, x = script.clients("a", "b", "x")
    a.consumer_join(topic)
    a.commit(topic, {0: 1})
    x.delete_groups()
    b.consumer_join(topic)
    x.delete_groups()
    script.pause_ms(1_300)
    b.consumer_beat()
    x.delete_groups()
    a.consumer_leave()
    x.delete_groups()
    b.consumer_leave()
    x.delete_groups()
    x.delete_groups()
    x.fetch_offsets({topic: [0]})
    a.consumer_beat(2)
    x.list_groups()
    a.consumer_join(topic)
    x.describe_consumers()


@scenario("consumers")
def a_deleted_consumer_group_leaves_tombstones(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.commit(topic, {0: 1, 1: 2})
    a.consumer_leave()
    b.consumer_leave()
    a.delete_groups()
    a.commit_simply(topic, {0: 3})
    a.list_groups()


@scenario("consumers")
def a_group_with_a_regular_expression_is_deleted(script: Script) -> None:
    script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\..*")
    script.until_group_epoch(2)
    a.consumer_leave()
    a.delete_groups()
