"""Offsets of consumer groups: commits and fetches with member epochs, and their deletion."""

from tests.compare.scenarios.consumer_join import joined, stable_pair
from tests.compare.script import Script, scenario


@scenario("consumers")
def a_consumer_commits_in_every_version(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    for version in range(2, 10):
        a.commit(topic, {0: version}, version=version)
    a.commit("", {0: 10}, topic_id=script.topic_id(topic), version=10)
    for version in range(2, 10):
        a.commit_simply(topic, {0: version}, version=version)
    a.fetch_offsets({topic: [0]})


@scenario("consumers")
def a_commit_with_another_epoch(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, b = stable_pair(script, topic)
    a.commit(topic, {0: 1})
    a.commit(topic, {0: 2}, generation_id=4)
    a.commit(topic, {0: 2}, generation_id=99)
    a.commit(topic, {0: 3}, generation_id=2)
    a.commit(topic, {0: 4, 1: 4}, generation_id=2)
    a.commit(topic, {2: 5}, generation_id=2)
    a.commit(topic, {0: 6, 2: 6}, generation_id=2)
    a.commit(topic, {2: 7})
    a.commit(topic, {0: 8}, generation_id=1)
    a.commit(topic, {0: 9}, generation_id=0)
    a.commit(topic, {0: 10}, generation_id=-1)
    a.commit(topic, {0: 11}, generation_id=-2)
    b.commit(topic, {2: 12}, generation_id=2)
    b.commit(topic, {2: 13})
    b.commit(topic, {0: 14}, instance_id="nobody")
    a.fetch_offsets({topic: [0, 1, 2, 3]})


@scenario("consumers")
def a_commit_of_another_member(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    a.commit(topic, {0: 1}, member_id="stranger")
    a.commit(topic, {0: 1}, member_id="stranger", generation_id=99)
    a.commit(topic, {0: 1}, member_id="")
    a.commit_simply(topic, {0: 1})
    a.commit(topic, {0: 1}, member_id="stranger", generation_id=-1)
    a.commit_simply(topic, {0: 1}, instance_id="ia")
    a.commit(topic, {0: 1}, member_id="stranger", version=8)
    a.commit(topic, {0: 1}, generation_id=99, version=8)
    a.fetch_offsets({topic: [0]})


@scenario("consumers")
def a_commit_while_partitions_move(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0, 1]})
    a.commit(topic, {0: 1, 1: 1})
    b.commit(topic, {1: 2})
    a.commit(topic, {1: 3}, generation_id=3)
    a.consumer_beat(owned={topic: [0]})
    a.commit(topic, {0: 4})
    a.commit(topic, {0: 5}, generation_id=2)
    a.commit(topic, {1: 6}, generation_id=2)
    b.consumer_beat()
    b.commit(topic, {1: 7})
    a.commit(topic, {1: 8}, generation_id=2)
    a.commit(topic, {1: 9}, generation_id=3)
    a.consumer_leave()
    a.commit(topic, {0: 10}, generation_id=3)
    b.consumer_beat()
    b.commit(topic, {0: 11}, generation_id=3)
    b.commit(topic, {0: 11}, generation_id=4)
    b.fetch_offsets({topic: [0, 1]})


@scenario("consumers")
def a_zombie_commits_for_a_partition_that_came_back(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, b = joined(script, topic, "a", "b")
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat()
    b.consumer_leave()
    a.consumer_beat(owned={topic: [0]})
    a.describe_consumers()
    for epoch in range(2, 5):
        a.commit(topic, {0: epoch}, generation_id=epoch)
        a.commit(topic, {1: epoch}, generation_id=epoch)


@scenario("consumers")
def commits_to_a_consumer_group_without_members(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(topic)
    a.commit(topic, {0: 1})
    a.consumer_leave()
    a.commit(topic, {0: 2}, member_id="a", generation_id=2)
    a.commit(topic, {0: 3}, member_id="a", generation_id=-1)
    a.commit(topic, {0: 4}, member_id="", generation_id=0)
    a.commit_simply(topic, {0: 5})
    a.commit_simply(topic, {0: 6}, version=5)
    a.fetch_offsets({topic: [0]})
    a.describe_consumers()


@scenario("consumers")
def a_consumer_joins_a_group_of_offsets(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 7})
    a.describe_consumers()
    a.consumer_beat(1)
    a.consumer_join(topic)
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=2)
    a.describe_consumers()
    a.list_groups()


@scenario("consumers")
def a_fetch_names_the_member_and_its_epoch(script: Script) -> None:
    topic = script.subscribed_topic(partitions=4)
    a, _ = stable_pair(script, topic)
    a.commit(topic, {0: 1})
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=3)
    for epoch in (-2, -1, 0, 1, 2, 4, 99):
        a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=epoch)
    a.fetch_offsets({topic: [0]}, member_id="stranger", member_epoch=3)
    a.fetch_offsets({topic: [0]}, member_id="stranger", member_epoch=-1)
    a.fetch_offsets({topic: [0]}, member_id="", member_epoch=3)
    a.fetch_offsets({topic: [0]}, member_id="", member_epoch=-1)
    a.fetch_offsets({topic: [0]}, member_id=None, member_epoch=3)
    a.fetch_offsets(None, member_id="a", member_epoch=2)
    a.fetch_offsets(None, member_id="a", member_epoch=3)
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=2, require_stable=True)
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=3, version=10)
    for version in (5, 7, 8):
        a.fetch_offsets({topic: [0]}, version=version)


@scenario("consumers")
def a_fetch_with_a_member_of_no_group(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=3)
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=-1)
    a.fetch_offsets({topic: [0]}, member_id="", member_epoch=0)
    a.consumer_join(topic)
    a.consumer_leave()
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=2)
    a.fetch_offsets({topic: [0]}, member_id="a", member_epoch=-1)
    a.fetch_offsets({topic: [0]})


@scenario("consumers")
def offsets_of_a_subscribed_topic_are_not_deleted(script: Script) -> None:
    t = script.subscribed_topic("t")
    u = script.subscribed_topic("u")
    a, b = script.clients("a", "b")
    a.consumer_join(t)
    a.commit(t, {0: 1})
    a.commit(u, {0: 2})
    b.delete_offsets({t: [0], u: [0, 7]})
    a.fetch_offsets({t: [0], u: [0]})
    a.consumer_beat(topics=(u,))
    b.delete_offsets({t: [0], u: [0]})
    a.consumer_leave()
    a.commit_simply(u, {0: 3})
    b.delete_offsets({t: [0], u: [0]})
    b.fetch_offsets({t: [0], u: [0]})
    b.describe_consumers()


@scenario("consumers")
def offsets_of_a_topic_that_matches_are_not_deleted(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\..")
    script.until_group_epoch(2)
    a.consumer_beat()
    a.commit(topic, {0: 1})
    a.delete_offsets({topic: [0]})
    a.consumer_leave()
    a.delete_offsets({topic: [0]})
