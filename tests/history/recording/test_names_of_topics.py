"""Names of topics: what the history calls a topic that is deleted during a rebalance."""

from history.consumer_entries import RevocationRequestedEntry
from protocol.names import TopicName
from tests.consumer_client import ConsumerClient, until_stable
from tests.history.history_world import HistoryWorld


def test_a_topic_keeps_its_name_however_late_it_is_in_the_target() -> None:
    """Only the first 200 partitions that move are named one by one."""
    world = HistoryWorld()
    world.given_topics(t=600, u=600)
    first = ConsumerClient(world, "m1", topics=("t",), assignor="range")
    second = ConsumerClient(world, "m2", topics=("u",), assignor="range")
    first.join()
    second.join()
    until_stable(first, second)
    world.crash()  # what was remembered of names is gone
    until_stable(first, second)
    third = ConsumerClient(world, "m3", topics=("t", "u"), assignor="range")
    third.join()  # 300 partitions of each topic are to move
    world.advance(5_000)
    third.beat()
    world.given_topics(v=1)  # t and u are there no more
    world.coordinator.partitions_changed({TopicName("t"), TopicName("u")}, world.now)
    first.beat()
    second.beat()
    asked = [entry for entry in world.history if isinstance(entry, RevocationRequestedEntry)]
    assert len(asked) == 2
    assert {part.topic for entry in asked for part in entry.partitions} == {"t", "u"}
