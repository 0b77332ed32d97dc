"""Who moved my offsets? Whatever moved them that is no member's commit, with old and new."""

from coordinator.settings import GroupSettings
from history.events import Asker, GroupDeleted, OffsetChange, OffsetsBy, OffsetsMoved
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.names import ErrorCode, GroupId, TopicName
from tests.history.told import ToldWorld

CLIENT = Asker("client", "/127.0.0.1")
HOUR_MS = 3_600_000


def moved(world: ToldWorld) -> list[OffsetsMoved]:
    return [event for event in world.history if isinstance(event, OffsetsMoved)]


def test_a_commit_by_nobody_tells_what_it_replaced(world: ToldWorld) -> None:
    assert world.commit("g", offsets={0: 10, 1: 20}) is ErrorCode.NONE
    assert world.commit("g", offsets={0: 3}) is ErrorCode.NONE  # a reset
    first, reset = moved(world)
    assert first.changes == (OffsetChange("t", 0, None, 10), OffsetChange("t", 1, None, 20))
    assert reset.changes == (OffsetChange("t", 0, 10, 3),)
    assert reset.by is OffsetsBy.COMMIT
    assert reset.asker == CLIENT


def test_a_members_commit_is_its_work_and_no_history(world: ToldWorld) -> None:
    (only,) = world.consumers(1)
    before = len(world.told.turns)
    generation = world.group().generation_id
    assert world.commit("g", only, generation, offsets={0: 10}) is ErrorCode.NONE
    assert world.heartbeat(world.group(), only) is ErrorCode.NONE
    assert len(world.told.turns) == before
    world.leave("g", only)
    world.commit("g", offsets={0: 4})
    assert moved(world)[-1].changes == (OffsetChange("t", 0, 10, 4),)


def test_deletion_names_who_asked(world: ToldWorld) -> None:
    world.commit("g", offsets={0: 10, 1: 20})
    partitions = [OffsetDeleteRequestPartition(1)]
    topics = [OffsetDeleteRequestTopic(TopicName("t"), partitions)]
    world.ask(OffsetDeleteRequest(GroupId("g"), topics), version=0, client_id="a-tool")
    last = moved(world)[-1]
    assert last.by is OffsetsBy.DELETION
    assert last.changes == (OffsetChange("t", 1, 20, None),)
    assert last.asker == Asker("a-tool", "/127.0.0.1")


def test_a_group_that_is_deleted_tells_its_last_offsets(world: ToldWorld) -> None:
    world.commit("g", offsets={0: 10})
    world.ask(DeleteGroupsRequest([GroupId("g")]), version=2, client_id="a-tool")
    last = moved(world)[-1]
    assert (last.by, last.changes) == (
        OffsetsBy.GROUP_DELETION,
        (OffsetChange("t", 0, 10, None),),
    )
    gone = world.history[-1]
    assert isinstance(gone, GroupDeleted)
    assert (gone.expired, gone.asker) == (False, Asker("a-tool", "/127.0.0.1"))


def test_expiry_asks_by_itself() -> None:
    world = ToldWorld(GroupSettings(offsets_topic_num_partitions=1, offsets_retention_minutes=60))
    world.commit("g", offsets={0: 10})
    world.advance(3 * HOUR_MS)
    last = moved(world)[-1]
    assert (last.by, last.asker) == (OffsetsBy.GROUP_EXPIRY, None)
    gone = world.history[-1]
    assert isinstance(gone, GroupDeleted)
    assert (gone.expired, gone.asker) == (True, None)


def test_a_deleted_topic_takes_its_offsets_along(world: ToldWorld) -> None:
    world.commit("g", offsets={0: 10})
    topic = TopicName("t")
    topic_id = world.topics.topic_id(topic)
    assert topic_id is not None
    del world.topics.counts[topic]
    world.coordinator.topics_deleted([(topic, topic_id)], world.now)
    world.advance(1)
    last = moved(world)[-1]
    assert (last.by, last.changes, last.asker) == (
        OffsetsBy.TOPIC_DELETION,
        (OffsetChange("t", 0, 10, None),),
        None,
    )


def test_many_partitions_go_into_several_records_and_none_is_lost(world: ToldWorld) -> None:
    world.topics.counts[TopicName("t")] = 2_500
    world.commit("g", offsets=dict.fromkeys(range(2_500), 7))
    parts = moved(world)
    assert [len(part.changes) for part in parts] == [1_000, 1_000, 500]
    named = [change.partition for part in parts for change in part.changes]
    assert named == list(range(2_500))
