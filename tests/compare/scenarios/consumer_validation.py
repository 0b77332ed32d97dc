"""ConsumerGroupHeartbeat: what is refused before the group is looked at, in which order."""

from tests.compare.script import Script, scenario


@scenario("consumers")
def a_member_id_is_required(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    for epoch in (0, 1, -1, -2, -3):
        a.consumer_join(topic, member_id="", epoch=epoch, version=1)
        a.consumer_beat(epoch, member_id="", version=1)
    for epoch in (1, -1, -2, -3):
        a.consumer_beat(epoch, member_id="", version=0)
    a.consumer_join(topic, member_id="", group_id="", version=1)


@scenario("consumers")
def a_group_id_is_required(script: Script) -> None:
    a = script.client("a")
    for version in (0, 1):
        a.consumer_join("t", group_id="", version=version)
        a.consumer_join("t", group_id="", member_id="", version=version)
        a.consumer_join("t", group_id="", instance_id="", version=version)
        a.consumer_beat(3, group_id="", version=version)
        a.consumer_leave(group_id="", version=version)
    a.consumer_join("t", group_id=" ")
    a.consumer_leave(group_id=f"{script.group}.x")


@scenario("consumers")
def an_empty_instance_or_rack_is_refused(script: Script) -> None:
    a = script.client("a")
    a.consumer_join("t", instance_id="", rack_id="")
    a.consumer_join("t", rack_id="")
    a.consumer_join("t", rack_id="", rebalance_ms=-1)
    a.consumer_beat(1, instance_id="")
    a.consumer_beat(1, rack_id="")
    a.consumer_leave(rack_id="")
    a.consumer_leave(instance_id="")
    a.consumer_join("t", rack_id=" ", instance_id=" ")


@scenario("consumers")
def a_join_names_all_of_the_member(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic, rebalance_ms=-1)
    a.consumer_join(topic, rebalance_ms=-1, owned=None, topics=None)
    a.consumer_join(topic, owned=None)
    a.consumer_join(topic, owned={topic: [0]})
    a.consumer_join(topic, owned={topic: []})
    a.consumer_join(topic, owned=None, topics=None)
    a.consumer_join(topics=None)
    a.consumer_join(topics=None, version=0)
    a.consumer_join(topics=None, assignor="nobody")
    a.consumer_join(topic, rebalance_ms=0)
    a.consumer_join(topic, rebalance_ms=-2)
    a.describe_consumers()


@scenario("consumers")
def an_epoch_below_minus_two_is_refused(script: Script) -> None:
    a = script.client("a")
    a.consumer_beat(-3)
    a.consumer_beat(-3, instance_id="ia")
    a.consumer_beat(-2147483648)
    a.consumer_beat(-3, assignor="nobody")
    a.consumer_beat(-2)
    a.consumer_beat(-2, assignor="nobody")
    a.consumer_beat(-2, instance_id="ia")
    a.consumer_beat(-2, instance_id="ia", assignor="nobody")
    a.consumer_beat(-1, instance_id="ia", assignor="nobody")


@scenario("consumers")
def an_unknown_assignor_is_refused(script: Script) -> None:
    a = script.client("a")
    a.consumer_join("t", assignor="nobody")
    a.consumer_join("t", assignor="")
    a.consumer_join("t", assignor="Uniform")
    a.consumer_join("t", assignor="uniform", group_id=f"{script.group}.uniform")
    a.consumer_beat(assignor="nobody", group_id=f"{script.group}.uniform")
    a.consumer_beat(assignor="", group_id=f"{script.group}.uniform")
    a.consumer_beat(77, assignor="nobody", group_id=f"{script.group}.uniform")
    a.consumer_beat(assignor="range", group_id=f"{script.group}.uniform")
    a.describe_consumers(f"{script.group}.uniform")


@scenario("consumers")
def a_null_name_of_a_regular_expression_is_no_subscription(script: Script) -> None:
    a = script.client("a")
    a.consumer_join(topics=None, regex=None)
    a.consumer_join(topics=None, regex="")
    a.consumer_beat()
    a.describe_consumers()


@scenario("only classic groups")
def the_protocol_may_be_turned_off(script: Script) -> None:
    a = script.client("a")
    a.consumer_join("t")
    a.consumer_join("t", member_id="", group_id="")
    a.consumer_beat(1)
    a.consumer_leave()
    a.describe_consumers()
    a.describe_consumers("", script.group, version=0)
    a.list_groups(types=("consumer",))


@scenario("consumers")
def only_a_join_creates_a_group(script: Script) -> None:
    a = script.client("a")
    a.consumer_beat(1)
    a.consumer_beat(1, instance_id="ia")
    a.consumer_leave()
    a.consumer_leave(-2, instance_id="ia")
    a.consumer_leave(instance_id="ia")
    a.consumer_beat(7, topics=("t",), owned={}, rebalance_ms=1000)
    a.list_groups()
    a.describe_consumers()
