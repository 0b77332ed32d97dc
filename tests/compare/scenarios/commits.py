"""OffsetCommit: whose commit is taken, and what of it."""

from uuid import UUID

from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.names import GenerationId, GroupId, MemberId, TopicName
from tests.compare.scenarios.join import stable_pair
from tests.compare.scenarios.sync import completing_pair
from tests.compare.script import Script, scenario


@scenario()
def anybody_commits_to_a_group_without_members(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    for version in range(2, 10):
        group = f"{script.group}.{version}"
        a.commit_simply(topic, {0: version, 1: 100 + version}, group_id=group, version=version)
        a.fetch_offsets({topic: [0, 1]}, group_id=group)
        a.describe(group)
    a.list_groups()


@scenario()
def a_member_commits_in_every_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.enter()
    a.sync({a: b"x"})
    for version in range(2, 10):
        a.commit(topic, {0: version}, version=version)
        a.fetch_offsets({topic: [0]})


@scenario()
def topics_are_named_by_id_since_version_ten(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    topic_id = script.topic_id(topic)
    a.commit_simply("", {0: 5, 1: 6, 7: 8}, topic_id=topic_id, version=10)
    a.commit_simply("", {0: 5}, topic_id=UUID(int=77), version=10)
    a.commit_simply("", {0: 5}, topic_id=UUID(int=0), version=10)
    a.commit_simply("", {0: 5}, topic_id=UUID("11111111-2222-4333-8444-555555555555"), version=10)
    a.fetch_offsets({topic: [0, 1]}, version=10)
    a.fetch_offsets({topic: [0, 1]}, version=9)


@scenario()
def a_generation_without_a_group_is_illegal(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in range(2, 10):
        a.commit(topic, {0: 1}, member_id="somebody", generation_id=3, version=version)
    a.commit(topic, {0: 1}, member_id="", generation_id=0)
    a.commit(topic, {0: 1}, member_id="somebody", generation_id=-1)
    a.describe()


@scenario()
def a_group_without_members_takes_no_generation(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 1})
    a.commit(topic, {0: 2}, member_id="", generation_id=0)
    a.commit(topic, {0: 2}, member_id="somebody", generation_id=1)
    a.commit(topic, {0: 2}, member_id="somebody", generation_id=-1)
    a.commit(topic, {0: 2}, member_id="", generation_id=-1, instance_id="i")
    a.commit(topic, {0: 2}, member_id="", generation_id=-2)
    a.fetch_offsets({topic: [0]})


@scenario()
def a_commit_is_answered_in_every_state(script: Script) -> None:
    topic = script.topic()
    a, b = completing_pair(script)
    a.commit(topic, {0: 1})
    a.commit_simply(topic, {0: 2})
    b.sync(may_wait=True)
    a.sync({a: b"1", b: b"2"})
    a.commit(topic, {0: 3})
    a.commit_simply(topic, {0: 4})
    a.join(may_wait=True)
    b.commit(topic, {0: 5})
    b.commit_simply(topic, {0: 6})
    b.commit(topic, {0: 6}, generation_id=1)
    b.fetch_offsets({topic: [0]})
    b.join()
    b.leave()
    a.leave()
    b.commit(topic, {0: 7})
    b.commit_simply(topic, {0: 8})
    b.fetch_offsets({topic: [0]})


@scenario()
def a_commit_is_checked_in_order(script: Script) -> None:
    topic = script.topic()
    a, _ = stable_pair(script)
    a.commit(topic, {0: 1}, member_id="stranger")
    a.commit(topic, {0: 1}, member_id="stranger", generation_id=99)
    a.commit(topic, {0: 1}, generation_id=99)
    a.commit(topic, {0: 1}, generation_id=1)
    a.commit(topic, {0: 1}, generation_id=-1)
    a.commit(topic, {0: 1}, member_id="")
    a.commit(topic, {0: 1}, instance_id="nobody")
    a.commit(topic, {0: 1}, instance_id="nobody", member_id="", generation_id=-1)
    a.commit(topic, {0: 1}, generation_id=99, version=5)
    a.fetch_offsets({topic: [0]})


@scenario()
def a_commit_for_a_partition_that_is_not_there(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 1, 1: 2, -1: 3})
    a.commit_simply(f"{script.group}.nowhere", {0: 1})
    a.commit_simply("", {0: 1})
    a.commit_simply("not/a/name", {0: 1})
    a.commit(f"{script.group}.nowhere", {0: 1}, member_id="somebody", generation_id=5)
    a.describe()
    mixed = [
        OffsetCommitRequestTopic(TopicName(name), partitions=[OffsetCommitRequestPartition(0, 9)])
        for name in (f"{script.group}.nowhere", topic, f"{script.group}.nowhere.either")
    ]
    for version in (2, 9):
        a.ask(OffsetCommitRequest(GroupId(script.name), topics=mixed), version)
    a.fetch_offsets(None)


@scenario()
def a_commit_of_nothing_is_fine(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.ask(OffsetCommitRequest(GroupId(script.name)), 9)
    a.ask(OffsetCommitRequest(GroupId(script.name), GenerationId(5), MemberId("somebody")), 9)
    a.commit_simply(topic, {})
    a.describe()


@scenario()
def an_empty_group_id_can_commit(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 1}, group_id="")
    a.commit(topic, {0: 1}, group_id="", member_id="x", generation_id=1)
    a.fetch_offsets({topic: [0]}, group_id="")
    a.fetch_offsets({topic: [0]}, group_id="", version=5)
    a.describe("")
    a.delete_groups("")


@scenario()
def metadata_that_is_too_long_is_refused_alone(script: Script) -> None:
    topic = script.topic(partitions=4)
    a = script.client("a")
    texts = ("x" * 4096, "x" * 4097, "☃" * 4096, "\N{GRINNING FACE}" * 2049)
    a.commit_simply(
        topic,
        {
            number: OffsetCommitRequestPartition(number, 1, committed_metadata=text)
            for number, text in enumerate(texts)
        },
    )
    a.fetch_offsets({topic: [1, 3]})


@scenario()
def metadata_and_leader_epochs_are_kept(script: Script) -> None:
    topic = script.topic(partitions=4)
    a = script.client("a")
    a.commit_simply(
        topic,
        {
            0: OffsetCommitRequestPartition(0, 10, 3, "a note"),
            1: OffsetCommitRequestPartition(1, 11, -1, None),
            2: OffsetCommitRequestPartition(2, 12, 0, ""),
            3: OffsetCommitRequestPartition(3, 13, -7, "größer ☃"),
        },
    )
    for version in (1, 2, 4, 5, 7, 8, 9):
        a.fetch_offsets({topic: [0, 1, 2, 3]}, version=version)
    a.commit_simply(topic, {0: OffsetCommitRequestPartition(0, 20, 3, "a note")}, version=5)
    a.fetch_offsets({topic: [0]})


@scenario()
def any_number_is_an_offset(script: Script) -> None:
    topic = script.topic(partitions=4)
    a = script.client("a")
    a.commit_simply(topic, {0: 5, 1: -1, 2: 2**63 - 1, 3: -(2**63)})
    a.commit_simply(topic, {0: 3})
    a.fetch_offsets({topic: [0, 1, 2, 3]})


@scenario()
def the_last_of_two_commits_in_one_request_stands(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    twice = [OffsetCommitRequestPartition(0, 1), OffsetCommitRequestPartition(0, 2)]
    named = OffsetCommitRequestTopic(TopicName(topic), partitions=twice)
    a.ask(OffsetCommitRequest(GroupId(script.name), topics=[named, named]), 9)
    a.fetch_offsets({topic: [0]})


@scenario("forgetful")
def an_offset_with_its_own_retention_expires(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.commit_simply(topic, {0: 1}, retention_ms=1, version=2)
    a.commit_simply(topic, {1: 2}, retention_ms=3_600_000, version=4)
    script.until(
        "one offset is gone",
        lambda: a.offsets_aside({topic: [0]}) == [-1],
    )
    a.fetch_offsets(None)
    a.describe()


@scenario("forgetful")
def a_group_goes_with_its_last_offset(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 1}, retention_ms=1, version=4)
    script.until_state("Dead")
    a.describe()
    a.list_groups()
    a.fetch_offsets({topic: [0]})


@scenario("forgetful")
def an_empty_group_without_offsets_is_forgotten(script: Script) -> None:
    a = script.client("a")
    a.join(version=3)  # in one step: between two the group might be forgotten already
    a.leave()
    script.until_state("Dead")
    a.join()
    a.describe()
