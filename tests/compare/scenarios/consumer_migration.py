"""Migration to the consumer group protocol: upgrades, mixed groups, and what forbids them."""

import struct
from collections.abc import Mapping, Sequence

from tests.compare.client import Client, topics
from tests.compare.script import Script, scenario


def assigned(topic: str, *partitions: int, user_data: bytes | None = None) -> bytes:
    """An assignment (v0) of the consumer protocol."""
    name = topic.encode()
    data = struct.pack(">hih", 0, 1, len(name)) + name
    data += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    if user_data is None:
        return data + struct.pack(">i", -1)
    return data + struct.pack(">i", len(user_data)) + user_data


def subscribed(*names: str, owned: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """A subscription (v1) of the consumer protocol, with the partitions that the member owns."""
    data = b"\x00\x01" + topics(*names)[2:] + struct.pack(">i", len(owned or {}))
    for name, partitions in (owned or {}).items():
        encoded = name.encode()
        data += struct.pack(">h", len(encoded)) + encoded
        data += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return data


def ranged(*names: str) -> Sequence[tuple[str, bytes]]:
    return (("range", topics(*names)),)


def classic_pair(script: Script, topic: str) -> Sequence[Client]:
    """A stable classic group: a leads it and owns partition 0, b owns 1; generation 2."""
    a, b = script.clients("a", "b")
    a.join(version=3, protocols=ranged(topic))
    a.sync({a: assigned(topic, 0, 1)})
    b.join(version=3, protocols=ranged(topic), may_wait=True)
    a.join(protocols=ranged(topic))
    b.sync(may_wait=True)
    a.sync({a: assigned(topic, 0), b: assigned(topic, 1)})
    return a, b


def mixed_pair(script: Script, topic: str) -> Sequence[Client]:
    """A consumer group: a speaks the classic protocol and owns partition 1, c the new one and 0."""
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.join(member_id="a", protocols=ranged(topic))
    a.sync()
    c.consumer_beat(owned={topic: [0]})
    a.beat()
    a.join(protocols=ranged(topic))
    a.sync()
    return a, c


@scenario("consumers")
def a_consumer_joins_an_empty_classic_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    a.join(version=3, protocols=ranged(topic))
    a.sync({a: assigned(topic, 0, 1)})
    a.commit(topic, {0: 5})
    a.leave()
    c.consumer_beat(1)
    c.consumer_leave()
    c.consumer_leave(-2, instance_id="ic")
    c.describe_consumers()
    c.consumer_join(topic)
    c.describe_consumers()
    c.fetch_offsets({topic: [0]})
    c.list_groups()


@scenario("consumers")
def a_consumer_joins_a_live_classic_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    a.commit(topic, {0: 5})
    c = script.client("c")
    c.consumer_beat(1)
    c.consumer_leave()
    c.consumer_join(topic)
    c.describe_consumers()
    c.describe_consumers(version=0)
    c.describe()
    c.list_groups()
    a.beat()
    b.beat()
    a.commit(topic, {0: 6})
    c.fetch_offsets({topic: [0]})


@scenario("consumers")
def a_group_is_upgraded_member_by_member(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    c, d = script.clients("c", "d")
    b.leave()
    a.beat()
    a.join(protocols=ranged(topic))
    a.sync({a: assigned(topic, 0, 1)})
    c.consumer_join(topic)
    a.beat()
    a.join(protocols=(("range", subscribed(topic, owned={topic: [0, 1]})),))
    a.sync()
    a.beat()
    a.join(protocols=(("range", subscribed(topic, owned={topic: [0]})),))
    a.sync()
    a.beat()
    c.consumer_beat(owned={})
    c.consumer_beat(owned={topic: [1]})
    c.describe_consumers()
    a.leave()
    d.consumer_join(topic)
    c.consumer_beat(owned={topic: [1]})
    d.consumer_beat(owned={})
    d.describe_consumers()


@scenario("consumers")
def a_consumer_joins_while_classic_members_rejoin(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    a.join(protocols=ranged(topic), may_wait=True)
    c = script.client("c")
    c.consumer_join(topic)
    c.describe_consumers()
    a.beat()
    b.beat()
    a.join(protocols=ranged(topic))
    a.sync()


@scenario("consumers")
def a_consumer_joins_while_classic_members_sync(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    a.join(protocols=ranged(topic), may_wait=True)
    b.join(protocols=ranged(topic))
    b.sync(may_wait=True)
    c = script.client("c")
    c.consumer_join(topic)
    c.describe_consumers()
    a.sync({a: assigned(topic, 0), b: assigned(topic, 1)})
    b.beat()


@scenario("consumers")
def a_member_upgrades_with_its_own_id(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    a.consumer_join(topic)
    a.describe_consumers()
    b.beat()
    a.consumer_beat(owned={})
    a.beat()


@scenario("consumers")
def a_static_member_upgrades(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = script.clients("a", "b")
    a.join(protocols=ranged(topic), instance_id="ia")
    a.sync({a: assigned(topic, 0, 1)}, instance_id="ia")
    b.join(protocols=ranged(topic), instance_id="ib", may_wait=True)
    a.join(protocols=ranged(topic), instance_id="ia")
    b.sync(instance_id="ib", may_wait=True)
    a.sync({a: assigned(topic, 0), b: assigned(topic, 1)}, instance_id="ia")
    new = script.client("new")
    new.consumer_join(topic, instance_id="ia")
    new.describe_consumers()
    a.beat(instance_id="ia")
    b.beat(instance_id="ib")
    new.consumer_beat(instance_id="ia", owned={topic: [0]})
    newer = script.client("newer")
    newer.consumer_join(topic, instance_id="ib")
    newer.describe_consumers()
    b.beat(instance_id="ib")


@scenario("consumers")
def groups_that_cannot_be_upgraded(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    connect, unreadable, custom = (
        f"{script.group}.{n}" for n in ("connect", "unreadable", "custom")
    )
    a, c = script.clients("a", "c")
    a.join(version=3, group_id=connect, protocol_type="connect", protocols=ranged(topic))
    a.sync({a: b"x"}, group_id=connect, protocol_type="connect")
    c.consumer_join(topic, group_id=connect)
    a.join(version=3, group_id=custom, member_id="", protocols=ranged(topic))
    a.sync({a: assigned(topic, 0, user_data=b"mine")}, group_id=custom)
    c.consumer_join(topic, group_id=custom)
    a.beat(group_id=custom)
    a.join(version=3, group_id=unreadable, member_id="", protocols=ranged(topic))
    a.sync({a: b"x"}, group_id=unreadable)
    c.consumer_join(topic, group_id=unreadable)
    a.beat(group_id=unreadable)


@scenario("consumers")
def a_group_without_an_assignment_is_upgraded(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    other = script.subscribed_topic("other")
    a, c = script.clients("a", "c")
    a.join(version=3, protocols=ranged(topic))
    c.consumer_join(other)
    c.describe_consumers()
    a.sync({a: assigned(topic, 0, 1)})
    a.beat()


@scenario("consumers")
def an_assignment_of_other_topics_is_upgraded(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    other = script.subscribed_topic("other")
    a, c = script.clients("a", "c")
    a.join(version=3, protocols=(*ranged(topic), ("sticky", topics(topic))))
    a.sync({a: assigned(f"{script.group}.nowhere", 0, 1)})
    c.consumer_join(other)
    c.describe_consumers()


@scenario("small consumer groups")
def a_large_classic_group_is_not_upgraded(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b, d = script.clients("a", "b", "d")
    a.join(version=3, protocols=ranged(topic))
    a.sync({a: assigned(topic, 0, 1)})
    b.join(version=3, protocols=ranged(topic), may_wait=True)
    d.join(version=3, protocols=ranged(topic), may_wait=True)
    a.join(protocols=ranged(topic))
    c = script.client("c")
    c.consumer_join(topic)
    d.leave()
    c.consumer_join(topic)
    a.beat()


@scenario("only downgrades")
def a_policy_forbids_upgrades(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    c = script.client("c")
    c.consumer_join(topic)
    a.beat()
    a.leave()
    b.leave()
    c.consumer_join(topic)


@scenario("only downgrades")
def a_classic_member_joins_where_downgrades_are_allowed(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.join(version=3, protocols=ranged(topic))
    c.consumer_leave()
    a.describe()
    a.beat()


@scenario("only upgrades")
def a_policy_forbids_downgrades(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    c.consumer_leave()
    c.describe_consumers()
    a.beat()
    a.join(protocols=ranged(topic))
    a.sync()
    a.describe()
    a.leave()
    a.describe_consumers()
    a.join(version=3, member_id="", protocols=ranged(topic))
    a.describe()


@scenario("no migration")
def no_migration_at_all(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = classic_pair(script, topic)
    c, d = script.clients("c", "d")
    c.consumer_join(topic)
    c.consumer_join(topic, group_id=f"{script.group}.new")
    d.join(version=3, group_id=f"{script.group}.new", protocols=ranged(topic))
    d.join(version=9, group_id=f"{script.group}.new", protocols=ranged(topic))
    d.join(instance_id="id", group_id=f"{script.group}.new", protocols=ranged(topic))
    c.consumer_leave(group_id=f"{script.group}.new")
    d.join(version=3, group_id=f"{script.group}.new", protocols=ranged(topic))
    a.leave()
    b.leave()
    c.consumer_join(topic)


@scenario("consumers")
def a_static_consumer_becomes_classic_without_its_instance_id(script: Script) -> None:
    """Only a JoinGroup that names the instance id takes the place of the last consumer."""
    topic = script.subscribed_topic(partitions=2)
    c = script.client("c")
    c.consumer_join(topic, instance_id="ic")
    c.join(member_id="c", protocols=ranged(topic))
    c.describe_consumers()
    c.describe()
    c.join(member_id="c", instance_id="ic", protocols=ranged(topic))
    c.describe_consumers()


@scenario("consumers")
def a_static_consumer_that_becomes_classic_does_not_lead(script: Script) -> None:
    """It is added behind the others, although its id comes first in Kafka's map of members."""
    topic = script.subscribed_topic(partitions=2)
    b, c = script.clients("b", "c")
    b.consumer_join(topic, instance_id="ib")
    c.consumer_join(topic, instance_id="ic")
    b.join(member_id="b", instance_id="ib", protocols=ranged(topic))
    c.join(member_id="c", instance_id="ic", protocols=ranged(topic))
    c.describe()
    c.join(instance_id="ic", protocols=ranged(topic, "other"), may_wait=True)
    b.join(instance_id="ib", protocols=ranged(topic))


@scenario("consumers")
def who_leads_after_an_upgrade_and_a_downgrade(script: Script) -> None:
    """Two ids share a place in Kafka's map of members: an upgrade changes their order."""
    topic = script.subscribed_topic(partitions=2)
    for first, second in ("ad", "da"):
        group = f"{script.group}.{first}"
        c = script.client("c")
        for name in (first, second, "c"):
            script.client(name).consumer_join(topic, group_id=group)
        for name in (first, second):
            script.client(name).join(
                group_id=group, member_id=name, protocols=ranged(topic), may_wait=True
            )
        c.consumer_leave(group_id=group)
        c.consumer_join(topic, group_id=group)
        c.consumer_leave(group_id=group)
        for name in (first, second):
            script.client(name).join(
                group_id=group, member_id=name, protocols=ranged(topic), may_wait=True
            )
