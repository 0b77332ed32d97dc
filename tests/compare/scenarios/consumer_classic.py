"""Classic members of consumer groups: their joins, syncs, heartbeats, and the downgrade."""

from protocol.names import UNKNOWN_MEMBER_ID
from tests.compare.client import topics
from tests.compare.scenarios.consumer_migration import mixed_pair, ranged, subscribed
from tests.compare.script import Script, scenario


@scenario("consumers")
def a_classic_member_joins_a_consumer_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.join(protocols=ranged(topic))
    a.join(protocols=ranged(topic))
    a.sync()
    a.beat()
    c.consumer_beat(owned={topic: [0, 1]})
    c.consumer_beat(owned={topic: [0]})
    a.beat()
    a.join(protocols=ranged(topic))
    a.sync()
    a.beat()
    c.describe_consumers()


@scenario("consumers")
def a_classic_member_joins_a_consumer_group_in_every_version(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    c = script.client("c")
    for version in range(10):
        group = f"{script.group}.{version}"
        c.consumer_join(topic, group_id=group)
        a = script.client(f"a{version}")
        a.join(group_id=group, version=version, protocols=ranged(topic))
        if version >= 4:
            a.join(group_id=group, version=version, protocols=ranged(topic))
        a.sync(group_id=group, version=min(version, 5))
        a.beat(group_id=group, version=min(version, 4))
        a.leave(group_id=group, version=min(version, 5))


@scenario("consumers")
def a_classic_member_knows_several_assignors(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b, c = script.clients("a", "b", "c")
    c.consumer_join(topic)
    a.join(version=3, protocols=(("sticky", topics(topic)), ("range", subscribed(topic))))
    a.sync(protocol_name="sticky")
    a.sync(protocol_name="range")
    a.sync(protocol_type="connect")
    b.join(version=3, protocols=(("roundrobin", topics(topic)),))
    b.join(version=3, protocols=(("roundrobin", topics(topic)), ("range", topics(topic))))
    c.describe_consumers()


@scenario("consumers")
def classic_joins_that_a_consumer_group_refuses(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.join(protocol_type="connect", protocols=ranged(topic))
    a.join(protocol_type="", protocols=ranged(topic))
    a.join(protocols=())
    a.join(version=3, protocols=(("range", b"unreadable"),))
    a.join(version=3, protocols=(("range", b""),))
    a.join(version=3, session_ms=0, protocols=ranged(topic))
    a.join(version=3, session_ms=100_000_000, protocols=ranged(topic))
    a.join(member_id="stranger", protocols=ranged(topic))
    a.join(member_id="stranger", instance_id="nobody", protocols=ranged(topic))
    c.describe_consumers()


@scenario("consumers")
def classic_requests_of_nobody_to_a_consumer_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.sync(member_id="stranger", generation_id=2)
    a.sync(member_id="stranger", generation_id=2, version=0)
    a.sync(member_id="c", generation_id=2)
    a.sync(member_id="c", generation_id=2, instance_id="ic")
    a.beat(member_id="stranger", generation_id=2)
    a.beat(member_id="c", generation_id=2)
    a.beat(member_id="c", generation_id=2, instance_id="ic")
    a.leave(("stranger", None))
    a.leave(("c", None))
    a.leave(("c", "ic"))
    a.leave(("", "ic"))
    a.leave(("c", None), version=2)
    c.consumer_beat()


@scenario("consumers")
def a_static_consumer_is_no_classic_member(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic, instance_id="ic")
    a.sync(member_id="c", generation_id=2, instance_id="ic")
    a.beat(member_id="c", generation_id=2, instance_id="ic")
    a.beat(member_id="stranger", generation_id=2, instance_id="ic")
    a.leave(("c", "ic"))
    a.leave(("stranger", "ic"))
    a.leave(("", "ic"))
    c.consumer_beat(2, instance_id="ic")
    c.describe_consumers()


@scenario("consumers")
def a_classic_member_of_a_consumer_group_is_checked(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, _ = mixed_pair(script, topic)
    a.beat()
    a.beat(generation_id=99)
    a.beat(generation_id=1)
    a.beat(generation_id=0)
    a.beat(instance_id="ia")
    a.sync(generation_id=99)
    a.sync(generation_id=1)
    a.sync(protocol_name="sticky")
    a.sync(protocol_type="connect")
    a.sync(protocol_name=None, protocol_type=None)
    a.sync(version=3)
    a.sync({a: b"mine"})
    a.consumer_beat()
    a.consumer_leave()


@scenario("consumers")
def a_consumer_leaves_and_the_classic_member_gets_all(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    d = script.client("d")
    d.consumer_join(topic)
    c.consumer_leave()
    a.beat()
    a.join(protocols=(("range", subscribed(topic, owned={topic: [1]})),))
    a.sync()
    a.beat()
    d.describe_consumers()


@scenario("consumers")
def a_classic_member_leaves_a_consumer_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    a.leave()
    a.beat()
    c.consumer_beat(owned={topic: [0]})
    c.describe_consumers()


@scenario("consumers")
def a_classic_member_changes_its_topics(script: Script) -> None:
    t = script.subscribed_topic("t", partitions=2)
    u = script.subscribed_topic("u")
    a, c = mixed_pair(script, t)
    a.join(protocols=ranged(t, u))
    a.sync()
    a.join(protocols=ranged(t, u))
    a.sync()
    c.describe_consumers()
    a.join(protocols=ranged(u))
    a.sync()
    c.consumer_beat(owned={t: [0]})
    c.describe_consumers()


@scenario("consumers")
def the_last_consumer_leaves_a_mixed_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    a.commit(topic, {0: 5})
    c.consumer_leave()
    c.describe()
    c.describe_consumers()
    a.beat()
    a.join(protocols=ranged(topic), may_wait=True)
    a.sync({a: b"x"})
    a.beat()
    a.fetch_offsets({topic: [0]})
    a.list_groups()


@scenario("consumers")
def two_classic_members_after_a_downgrade(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    b = script.client("b")
    b.join(member_id="b", protocols=ranged(topic))
    b.sync()
    c.consumer_leave()
    a.beat()
    b.beat()
    a.join(protocols=ranged(topic), may_wait=True)
    b.join(protocols=ranged(topic))
    a.describe()


@scenario("consumers")
def a_static_consumer_is_replaced_by_a_classic_member(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    c, d, new = script.clients("c", "d", "new")
    c.consumer_join(topic, instance_id="ic")
    d.consumer_join(topic, instance_id="id")
    c.consumer_beat(instance_id="ic", owned={topic: [0]})
    d.consumer_beat(instance_id="id")
    new.join(protocols=ranged(topic), instance_id="ic")
    new.sync(instance_id="ic")
    new.describe_consumers()
    c.consumer_beat(3, instance_id="ic")
    new.beat(instance_id="ic")
    new.consumer_leave(member_id="d", instance_id="id")
    new.describe()


@scenario("consumers")
def a_classic_member_replaces_the_only_consumer(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    c, new = script.clients("c", "new")
    c.consumer_join(topic, instance_id="ic")
    new.join(protocols=ranged(topic), instance_id="ic", may_wait=True)
    c.consumer_beat(2, instance_id="ic")
    new.describe_consumers()
    new.describe()
    new.beat(instance_id="ic")


@scenario("consumers")
def a_static_classic_member_of_a_consumer_group_returns(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c, new = script.clients("a", "c", "new")
    c.consumer_join(topic)
    a.join(protocols=ranged(topic), instance_id="ia")
    a.sync(instance_id="ia")
    new.join(protocols=ranged(topic), instance_id="ia")
    new.sync(instance_id="ia")
    a.beat(instance_id="ia")
    a.sync(instance_id="ia")
    a.join(protocols=ranged(topic), instance_id="ia")
    a.leave((a.member_id, "ia"))
    new.describe_consumers()
    new.leave(("", "ia"))
    new.describe_consumers()


@scenario("consumers")
def a_consumer_becomes_a_classic_member_with_its_id(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    c, d = script.clients("c", "d")
    c.consumer_join(topic)
    d.consumer_join(topic)
    c.join(protocols=ranged(topic), member_id="c")
    c.sync(member_id="c")
    d.describe_consumers()
    c.consumer_beat(2, member_id="c")


@scenario("small classic groups")
def a_large_consumer_group_is_not_downgraded(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    b = script.client("b")
    b.join(member_id="b", protocols=ranged(topic))
    c.consumer_leave()
    c.describe_consumers()
    a.beat()
    b.leave()
    c.describe_consumers()
    a.beat()


@scenario("consumers")
def a_classic_member_joins_an_empty_consumer_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    c.commit(topic, {0: 5})
    c.consumer_leave()
    a.sync(member_id="stranger", generation_id=2)
    a.beat(member_id="stranger", generation_id=2)
    a.leave(("stranger", None))
    a.join(protocols=ranged(topic))
    a.describe_consumers()
    a.join(protocols=ranged(topic))
    a.sync({a: b"x"})
    a.describe()
    a.fetch_offsets({topic: [0]})


@scenario("consumers")
def a_classic_member_commits_to_a_consumer_group(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = mixed_pair(script, topic)
    for version in (2, 5, 8, 9):
        a.commit(topic, {0: version}, version=version)
    a.commit(topic, {0: 20}, generation_id=99)
    a.commit(topic, {0: 21}, generation_id=1)
    a.commit(topic, {0: 22}, generation_id=2)
    a.commit(topic, {1: 23}, generation_id=2)
    a.commit(topic, {0: 24}, generation_id=-1)
    a.commit(topic, {0: 25}, generation_id=99, version=8)
    a.commit(topic, {0: 26}, instance_id="ia")
    c.commit(topic, {1: 27})
    a.fetch_offsets({topic: [0, 1]}, member_id=a.member_id, member_epoch=a.generation_id)
    a.fetch_offsets({topic: [0, 1]}, member_id=a.member_id, member_epoch=1)
    a.fetch_offsets({topic: [0, 1]}, version=8)


@scenario("consumers")
def a_silent_classic_member_of_a_consumer_group_is_put_out(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.join(version=3, session_ms=1_000, protocols=ranged(topic))
    a.sync()
    script.until_members("c")
    a.beat()
    c.describe_consumers()


@scenario("consumers")
def a_classic_member_that_does_not_sync_is_put_out(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    a.join(version=3, rebalance_ms=1_000, protocols=ranged(topic))
    a.beat()
    script.until_members("c")
    a.sync()


@scenario("consumers")
def a_classic_member_that_does_not_rejoin_is_put_out(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, c, d = script.clients("a", "c", "d")
    c.consumer_join(topic)
    a.join(version=3, rebalance_ms=1_000, protocols=ranged(topic))
    a.sync()
    d.consumer_join(topic)
    a.beat()
    a.beat()
    script.until_members("c", "d")
    a.beat()


@scenario("consumers of short sessions")
def the_last_consumer_of_a_mixed_group_falls_silent(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, _ = mixed_pair(script, topic)
    script.until_state("PreparingRebalance")
    a.beat()
    a.describe()
    a.describe_consumers()


@scenario("consumers")
def an_unknown_classic_member_joins_an_empty_consumer_group(script: Script) -> None:
    topic = script.subscribed_topic()
    a, c = script.clients("a", "c")
    c.consumer_join(topic)
    c.consumer_leave()
    a.join(member_id="stranger", protocols=ranged(topic))
    c.describe_consumers()
    c.list_groups()
    c.consumer_join(topic)


@scenario("consumers")
def a_protocol_without_a_name(script: Script) -> None:
    """Of members of both kinds of groups; an empty name is answered as null."""
    topic = script.subscribed_topic(partitions=2)
    a, b, c = script.clients("a", "b", "c")
    classic = f"{script.group}.classic"
    protocols = (("", subscribed(topic)),)
    for version in (5, 9):
        a.enter(group_id=classic, protocols=protocols, version=version)
        a.leave(group_id=classic)
        a.member_id = UNKNOWN_MEMBER_ID
    c.consumer_join(topic)
    b.join(member_id="b", protocols=protocols, version=5)
    b.join(member_id="b", protocols=protocols)
    b.sync(protocol_name="")
    b.sync(protocol_name=None)


@scenario("consumers")
def a_join_without_a_rebalance_timeout(script: Script) -> None:
    """The member is to sync at once, and is removed."""
    topic = script.subscribed_topic(partitions=2)
    b, c = script.clients("b", "c")
    c.consumer_join(topic)
    b.join(member_id="b", protocols=(("range", subscribed(topic)),))
    b.sync()
    b.join(member_id="b", protocols=(("range", subscribed(topic)),), rebalance_ms=-1)
    script.until_group_epoch(4)
    b.beat()
    c.describe_consumers()
