"""OffsetFetch and OffsetDelete: what was committed, asked for in every shape, and taken away."""

from uuid import UUID

from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.names import GroupId, MemberId, TopicName
from tests.compare.client import topics
from tests.compare.scenarios.sync import completing_pair
from tests.compare.script import Script, scenario


@scenario()
def offsets_are_fetched_in_every_version(script: Script) -> None:
    first, second = script.topic("one", partitions=2), script.topic("two")
    a = script.client("a")
    a.commit_simply(first, {0: 1, 1: 2})
    a.commit_simply(second, {0: 3})
    for version in range(1, 11):
        a.fetch_offsets({first: [0, 1], second: [0]}, version=version)
        a.fetch_offsets({second: [0]}, version=version)
        if version >= 2:
            a.fetch_offsets(None, version=version)
        a.fetch_offsets({}, version=version)


@scenario()
def a_partition_without_a_commit_has_none(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.commit_simply(topic, {0: 1})
    nowhere = f"{script.group}.nowhere"
    for version in range(1, 10):
        a.fetch_offsets({topic: [1, 0, 99, -1], nowhere: [0]}, version=version)
    a.fetch_offsets({topic: [0, 0], "": [0]}, version=9)


@scenario()
def an_unknown_group_has_committed_nothing(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in range(1, 11):
        a.fetch_offsets({topic: [0]}, version=version)
        if version >= 2:
            a.fetch_offsets(None, version=version)
    a.fetch_offsets({topic: [0]}, require_stable=True, version=7)
    a.fetch_offsets({topic: [0]}, require_stable=True, version=9)
    a.fetch_offsets(None, require_stable=True, version=9)


@scenario()
def many_groups_are_fetched_at_once(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    for number in range(3):
        a.commit_simply(topic, {0: number, 1: 10 + number}, group_id=f"{script.group}.{number}")
    wanted = [OffsetFetchRequestTopics(TopicName(topic), script.topic_id(topic), [0])]
    groups = [
        OffsetFetchRequestGroup(GroupId(f"{script.group}.2"), topics=wanted),
        OffsetFetchRequestGroup(GroupId(f"{script.group}.0"), topics=None),
        OffsetFetchRequestGroup(GroupId(f"{script.group}.unknown"), topics=wanted),
        OffsetFetchRequestGroup(GroupId(f"{script.group}.1"), topics=()),
        OffsetFetchRequestGroup(GroupId(""), topics=wanted),
    ]
    for version in (8, 9, 10):
        a.ask(OffsetFetchRequest(groups=groups), version)
    a.ask(OffsetFetchRequest(groups=()), 9)


@scenario()
def topics_are_fetched_by_id(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 4})
    ids = (script.topic_id(topic), UUID(int=0), UUID("11111111-2222-4333-8444-555555555555"))
    asked = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]) for topic_id in ids]
    a.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(script.group, topics=asked)]), 10)
    a.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(script.group, topics=asked[1:])]), 10)


@scenario()
def a_classic_group_does_not_ask_who_fetches(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.enter()
    a.sync({a: b"x"})
    a.commit(topic, {0: 1})
    for member_id, epoch in ((None, 5), ("stranger", 1), ("stranger", -1), (a.member_id, 99)):
        group = OffsetFetchRequestGroup(
            script.group,
            None if member_id is None else MemberId(member_id),
            epoch,
            [OffsetFetchRequestTopics(TopicName(topic), partition_indexes=[0])],
        )
        a.ask(OffsetFetchRequest(groups=[group]), 9)
        a.ask(OffsetFetchRequest(groups=[group], require_stable=True), 9)


@scenario()
def offsets_can_be_fetched_in_every_state(script: Script) -> None:
    topic = script.topic()
    a, b = completing_pair(script)
    x = script.client("x")
    x.fetch_offsets({topic: [0]})
    b.sync(may_wait=True)
    a.sync({a: b"1", b: b"2"})
    a.commit(topic, {0: 1})
    x.fetch_offsets({topic: [0]}, require_stable=True)
    a.join(may_wait=True)
    x.fetch_offsets({topic: [0]})
    b.join()
    x.fetch_offsets(None)
    a.leave()
    b.leave()
    x.fetch_offsets({topic: [0]}, version=3)
    x.fetch_offsets({topic: [0]}, require_stable=True, version=7)


@scenario()
def a_topic_named_twice_is_answered_twice(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.commit_simply(topic, {0: 1, 1: 2})
    twice = [OffsetFetchRequestTopic(TopicName(topic), [0]) for _ in range(2)]
    a.ask(OffsetFetchRequest(group_id=GroupId(script.name), topics=twice), 5)


@scenario()
def offsets_of_a_deleted_topic_are_gone(script: Script) -> None:
    kept, gone = script.topic("kept"), script.topic("gone")
    a = script.client("a")
    a.commit_simply(kept, {0: 1})
    a.commit_simply(gone, {0: 2})
    a.ask(DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000), 5)
    script.until_no_topic(gone)
    script.until("its offset is gone", lambda: a.offsets_aside({gone: [0]}) == [-1])
    a.fetch_offsets(None)
    a.fetch_offsets({kept: [0], gone: [0]})
    a.commit_simply(gone, {0: 3})


@scenario()
def offsets_of_a_topic_made_anew_are_not_those_of_the_old(script: Script) -> None:
    gone = script.topic("gone")
    a = script.client("a")
    a.commit_simply(gone, {0: 2})
    a.ask(DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000), 5)
    script.until_no_topic(gone)
    script.until("its offset is gone", lambda: a.offsets_aside({gone: [0]}) == [-1])
    script.topic("gone")
    a.fetch_offsets({gone: [0]}, version=10)
    a.fetch_offsets({gone: [0]}, version=9)


@scenario()
def offsets_of_an_empty_group_are_deleted(script: Script) -> None:
    topic = script.topic(partitions=3)
    a = script.client("a")
    a.commit_simply(topic, {0: 1, 1: 2})
    a.delete_offsets({topic: [0, 2]})
    a.fetch_offsets(None)
    a.delete_offsets({topic: [0, 99], f"{script.group}.nowhere": [0]})
    a.delete_offsets({})
    a.delete_offsets({topic: []})
    a.delete_offsets({topic: [1]})
    a.fetch_offsets(None)
    a.describe()


@scenario()
def offsets_of_unknown_groups_cannot_be_deleted(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.delete_offsets({topic: [0]})
    a.delete_offsets({topic: [0]}, group_id="")
    a.delete_offsets({f"{script.group}.nowhere": [0]})
    a.delete_offsets({f"{script.group}.nowhere": [0]}, group_id="")
    a.delete_offsets({})


@scenario()
def offsets_of_subscribed_topics_are_not_deleted(script: Script) -> None:
    subscribed_topic, other = script.topic("mine"), script.topic("other")
    a = script.client("a")
    a.commit_simply(other, {0: 1})
    subscribed = (("range", topics(subscribed_topic)),)
    a.join(protocols=subscribed)
    a.join(protocols=subscribed)
    a.delete_offsets({subscribed_topic: [0], other: [0]})
    a.sync({a: b"x"})
    a.commit(subscribed_topic, {0: 5})
    a.delete_offsets({subscribed_topic: [0, 1], other: [0]})
    a.fetch_offsets(None)
    b = script.client("b")
    b.join(protocols=subscribed)
    b.join(protocols=subscribed, may_wait=True)
    a.delete_offsets({subscribed_topic: [0], other: [0]})
    a.leave()
    b.leave()
    a.delete_offsets({subscribed_topic: [0]})
    a.fetch_offsets(None)


@scenario()
def what_cannot_be_read_counts_as_subscribed_to_everything(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.enter(protocols=(("range", b""),))
    a.sync({a: b"x"})
    a.commit(topic, {0: 1})
    a.delete_offsets({topic: [0]})
    a.fetch_offsets(None)


@scenario()
def offsets_of_a_working_group_of_another_type_are_not_deleted(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.enter(protocol_type="custom", protocols=(("p", topics(topic)),))
    a.delete_offsets({topic: [0], f"{script.group}.nowhere": [0]})
    a.sync({a: b"x"}, protocol_type="custom", protocol_name="p")
    a.delete_offsets({topic: [0]})
    a.commit(topic, {0: 1})
    a.leave()
    a.delete_offsets({topic: [0]})


@scenario()
def a_group_tells_its_subscription_from_the_chosen_protocol(script: Script) -> None:
    first, second = script.topic("one"), script.topic("two")
    a, b = script.clients("a", "b")
    offered = (("range", topics(first)), ("roundrobin", topics(second)))
    a.enter(protocols=offered)
    a.sync({a: b"x"})
    a.commit(first, {0: 1})
    a.commit(second, {0: 2})
    a.delete_offsets({first: [0], second: [0]})
    b.join(protocols=(("range", topics(second)),), version=3, may_wait=True)
    a.join(protocols=offered)
    a.delete_offsets({first: [0], second: [0]})
