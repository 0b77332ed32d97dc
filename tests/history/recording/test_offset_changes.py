"""Offset changes: all that moves offsets except members' commits, with old and new offset."""

from itertools import pairwise

import pytest

from coordinator.settings import GroupSettings
from history.causes import OffsetsBy
from history.encoding import decode, encode
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    OffsetsMovedEntry,
)
from history.entry_values import (
    OffsetChange,
    RequestClient,
)
from history.recording.steady_commits import (
    FLUSH_INTERVAL_MS,
    PAUSE_MAX_MS,
    SEPARATE_COMMITS,
    STEADY_PARTITIONS_MAX,
    Committer,
    SteadyCommits,
)
from history.repeats import REPEAT_KEYS_MAX, REPEAT_PAUSE_MS, Repeats
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.names import ErrorCode, GroupId, MemberId, TopicName
from tests.history.history_world import HistoryWorld

CLIENT = RequestClient("client", "/127.0.0.1")
HOUR_MS = 3_600_000


def moved(world: HistoryWorld) -> list[OffsetsMovedEntry]:
    return [event for event in world.history if isinstance(event, OffsetsMovedEntry)]


def test_a_commit_without_a_client_has_the_offset_that_it_replaced(world: HistoryWorld) -> None:
    assert world.commit("g", offsets={0: 10, 1: 20}) is ErrorCode.NONE
    assert world.commit("g", offsets={0: 3}) is ErrorCode.NONE  # a reset
    first, reset = moved(world)
    assert first.changes == (OffsetChange("t", 0, None, 10), OffsetChange("t", 1, None, 20))
    assert reset.changes == (OffsetChange("t", 0, 10, 3),)
    assert reset.by is OffsetsBy.COMMIT
    assert reset.client == CLIENT


def test_a_members_commit_is_its_work_and_no_history(world: HistoryWorld) -> None:
    (only,) = world.consumers(1)
    before = len(world.recorded.turns)
    generation = world.group().generation_id
    assert world.commit("g", only, generation, offsets={0: 10}) is ErrorCode.NONE
    assert world.heartbeat(world.group(), only) is ErrorCode.NONE
    assert len(world.recorded.turns) == before
    world.leave("g", only)
    world.commit("g", offsets={0: 4})
    assert moved(world)[-1].changes == (OffsetChange("t", 0, 10, 4),)


def test_deletion_names_who_asked(world: HistoryWorld) -> None:
    world.commit("g", offsets={0: 10, 1: 20})
    partitions = [OffsetDeleteRequestPartition(1)]
    topics = [OffsetDeleteRequestTopic(TopicName("t"), partitions)]
    world.ask(OffsetDeleteRequest(GroupId("g"), topics), version=0, client_id="a-tool")
    last = moved(world)[-1]
    assert last.by is OffsetsBy.DELETION
    assert last.changes == (OffsetChange("t", 1, 20, None),)
    assert last.client == RequestClient("a-tool", "/127.0.0.1")


def test_the_last_offsets_of_a_deleted_group_are_recorded(world: HistoryWorld) -> None:
    world.commit("g", offsets={0: 10})
    world.ask(DeleteGroupsRequest([GroupId("g")]), version=2, client_id="a-tool")
    last = moved(world)[-1]
    assert (last.by, last.changes) == (
        OffsetsBy.GROUP_DELETION,
        (OffsetChange("t", 0, 10, None),),
    )
    gone = world.history[-1]
    assert isinstance(gone, GroupDeletedEntry)
    assert (gone.expired, gone.client) == (False, RequestClient("a-tool", "/127.0.0.1"))


def test_expiry_asks_by_itself() -> None:
    world = HistoryWorld(
        GroupSettings(offsets_topic_num_partitions=1, offsets_retention_minutes=60)
    )
    world.commit("g", offsets={0: 10})
    world.advance(3 * HOUR_MS)
    last = moved(world)[-1]
    assert (last.by, last.client) == (OffsetsBy.GROUP_EXPIRY, None)
    gone = world.history[-1]
    assert isinstance(gone, GroupDeletedEntry)
    assert (gone.expired, gone.client) == (True, None)


def test_a_deleted_topic_takes_its_offsets_along(world: HistoryWorld) -> None:
    world.commit("g", offsets={0: 10})
    topic = TopicName("t")
    topic_id = world.topics.topic_id(topic)
    assert topic_id is not None
    del world.topics.counts[topic]
    world.coordinator.topics_deleted([(topic, topic_id)], world.now)
    world.advance(1)
    last = moved(world)[-1]
    assert (last.by, last.changes, last.client) == (
        OffsetsBy.TOPIC_DELETION,
        (OffsetChange("t", 0, 10, None),),
        None,
    )


def test_many_partitions_go_into_several_records_and_none_is_lost(world: HistoryWorld) -> None:
    world.topics.counts[TopicName("t")] = 2_500
    world.commit("g", offsets=dict.fromkeys(range(2_500), 7))
    parts = moved(world)
    assert [len(part.changes) for part in parts] == [1_000, 1_000, 500]
    named = [change.partition for part in parts for change in part.changes]
    assert named == list(range(2_500))


# ------------------------------------------------------------ programs that commit without end

SECOND_MS = 1_000


def steady(world: HistoryWorld, count: int, first: int = 1) -> None:
    """A commit each second, each one further."""
    for n in range(count):
        world.advance(SECOND_MS)
        world.commit("g", offsets={0: first + n, 1: 100 + first + n})


def by_tool(world: HistoryWorld, offsets: dict[int, int]) -> None:
    partitions = [OffsetCommitRequestPartition(index, offset) for index, offset in offsets.items()]
    topics = [OffsetCommitRequestTopic(TopicName("t"), partitions=partitions)]
    world.ask(OffsetCommitRequest(GroupId("g"), topics=topics), version=9, client_id="a-tool")


def due_entries(world: HistoryWorld) -> list[HistoryEntry]:
    return list(world.recorded.recorder.steady.due(world.now.wall_ms))


def test_from_n_to_n_is_no_move(world: HistoryWorld) -> None:
    world.commit("g", offsets={0: 10, 1: 5})
    world.commit("g", offsets={0: 10, 1: 6})
    world.commit("g", offsets={0: 10, 1: 6})
    assert [entry.changes for entry in moved(world)][1:] == [(OffsetChange("t", 1, 5, 6),)]


def test_a_steady_client_is_one_entry_with_a_count(world: HistoryWorld) -> None:
    steady(world, 60)
    assert [(entry.commits, len(entry.changes)) for entry in moved(world)] == [
        (None, 2)
    ] * SEPARATE_COMMITS
    (entry,) = world.recorded.recorder.steady.pending("g")
    assert entry.commits == 60 - SEPARATE_COMMITS
    assert entry.changes == (OffsetChange("t", 0, 3, 60), OffsetChange("t", 1, 103, 160))
    assert entry.client == CLIENT
    assert entry.since_ms is not None
    assert entry.at_ms - entry.since_ms == (60 - SEPARATE_COMMITS - 1) * SECOND_MS
    # It is told now and then, as long as it lasts, and survives the way to the topic and back.
    steady(world, FLUSH_INTERVAL_MS // SECOND_MS, first=61)
    last = moved(world)[-1]
    assert (last.commits, last.changes[0].old) == (FLUSH_INTERVAL_MS // SECOND_MS + 1, 3)
    assert decode(encode(last)[1]) == last


def test_no_commit_is_lost_from_the_counts(world: HistoryWorld) -> None:
    commits = 2 * FLUSH_INTERVAL_MS // SECOND_MS + 77
    steady(world, commits)
    entries = [*moved(world), *world.recorded.recorder.steady.all()]
    assert sum(entry.commits or 1 for entry in entries) == commits
    assert len(entries) <= SEPARATE_COMMITS + 4
    # Each goes on where the one before it ended.
    ends = [(entry.changes[0].old, entry.changes[0].new) for entry in entries]
    assert [old for old, _ in ends[1:]] == [new for _, new in ends[:-1]]


def test_a_reset_and_the_steady_commits_before_it_are_separate_entries(world: HistoryWorld) -> None:
    steady(world, 10)
    by_tool(world, {0: 2})
    *_, collected, reset = moved(world)
    assert (collected.commits, collected.changes[0]) == (7, OffsetChange("t", 0, 3, 10))
    assert (reset.commits, reset.changes) == (None, (OffsetChange("t", 0, 10, 2),))
    assert reset.client == RequestClient("a-tool", "/127.0.0.1")
    # After it the first ones are facts of their own again.
    before = len(moved(world))
    steady(world, 5, first=20)
    assert len(moved(world)) == before + SEPARATE_COMMITS


def test_a_jump_by_hand_and_a_first_commit_stand_alone(world: HistoryWorld) -> None:
    steady(world, 10)
    before = len(moved(world))
    by_tool(world, {0: 5_000})
    world.commit("g", offsets={2: 1})
    assert [entry.changes for entry in moved(world)][before:] == [
        (OffsetChange("t", 0, 3, 10), OffsetChange("t", 1, 103, 110)),
        (OffsetChange("t", 0, 10, 5_000),),
        (OffsetChange("t", 2, None, 1),),
    ]


def in_a_row(facts: list[OffsetsMovedEntry], partition: int) -> list[tuple[int | None, int | None]]:
    """Where each fact moved a partition from and to; they must not overlap, nor go back in time."""
    assert facts == sorted(facts, key=lambda fact: fact.at_ms)
    moves = [
        (change.old, change.new)
        for fact in facts
        for change in fact.changes
        if change.partition == partition
    ]
    for (_, new), (old, _) in pairwise(moves):
        assert (old or 0) >= (new or 0)
    return moves


@pytest.mark.parametrize("client", ["a tool", "the client", "a second client"])
def test_a_jump_or_a_first_commit_between_steady_ones_is_not_counted_among_them(
    world: HistoryWorld, client: str
) -> None:
    steady(world, 10)
    world.advance(SECOND_MS)
    if client == "a tool":
        by_tool(world, {0: 5_000})
    elif client == "the client":
        world.commit("g", offsets={0: 5_000, 7: 1})
    else:
        for n in range(SEPARATE_COMMITS + 2):
            world.advance(SECOND_MS)
            by_tool(world, {0: 4_990 + n * 10 // (SEPARATE_COMMITS + 1)})
    steady(world, 5, first=5_001)
    facts = [*moved(world), *world.recorded.recorder.steady.all()]
    assert (3, 10) in in_a_row(facts, 0)
    assert (5_000, 5_005) in in_a_row(facts, 0)
    assert in_a_row(facts, 1)[-1][1] == 5_105
    counted = sum(fact.commits or 1 for fact in facts if fact.client == CLIENT)
    assert counted == 15 + (client == "the client")


def test_what_members_did_between_steady_commits_is_not_counted_among_them(
    world: HistoryWorld,
) -> None:
    steady(world, 10)
    (only,) = world.consumers(1)
    world.commit("g", only, world.group().generation_id, offsets={0: 5_000})
    leave = LeaveGroupRequest(GroupId("g"), members=[MemberIdentity(MemberId(only))])
    world.ask(leave, version=5)
    steady(world, 10, first=5_001)
    facts = [*moved(world), *world.recorded.recorder.steady.all()]
    assert in_a_row(facts, 0)[-2:] == [(3, 10), (5_000, 5_010)]


def test_steady_commits_continue_after_a_pause_between_rounds(world: HistoryWorld) -> None:
    steady(world, 10)
    world.advance(PAUSE_MAX_MS + 1)
    steady(world, 10, first=11)
    facts = [*moved(world), *world.recorded.recorder.steady.all()]
    assert in_a_row(facts, 0)[-5:] == [(3, 10), (10, 11), (11, 12), (12, 13), (13, 20)]


def test_a_deletion_is_recorded_after_the_steady_commits_before_it(world: HistoryWorld) -> None:
    steady(world, 10)
    world.ask(DeleteGroupsRequest([GroupId("g")]), version=2, client_id="a-tool")
    *_, collected, deleted = moved(world)
    assert (collected.commits, deleted.by) == (7, OffsetsBy.GROUP_DELETION)
    assert world.recorded.recorder.steady.pending("g") == []


def test_a_committer_that_pauses_is_recorded_and_forgotten(world: HistoryWorld) -> None:
    steady(world, 10)
    world.advance(PAUSE_MAX_MS)
    assert [entry.commits for entry in due_entries(world)] == [7]  # type: ignore[union-attr]
    world.advance(1)
    assert due_entries(world) == []
    before = len(moved(world))
    steady(world, SEPARATE_COMMITS, first=20)
    assert len(moved(world)) == before + SEPARATE_COMMITS


def test_the_steady_commits_in_memory_are_bounded() -> None:
    commits = SteadyCommits()
    per_commit = 10_000
    written = 0
    for group in range(15):
        committer = Committer(f"g{group}", CLIENT, "")
        commits.begin(committer, 0)
        for n in range(1, 6):
            changes = [OffsetChange("t", index, n, n + 1) for index in range(per_commit)]
            taken = commits.add(committer, changes, n)
            assert (taken is None) == (n < SEPARATE_COMMITS)
            written += len(commits.make_room())
            assert commits.partitions <= STEADY_PARTITIONS_MAX
    assert written
    assert sum(len(entry.changes) for entry in commits.all()) <= STEADY_PARTITIONS_MAX
    assert commits.partitions == 0


# ------------------------------------------------------------ the same again and again


def test_a_commit_loop_is_recorded_at_growing_counts() -> None:
    repeats = Repeats()
    recorded = {
        n: times for n in range(1_800) if (times := repeats.count("g", n * 1_000)) is not None
    }
    assert list(recorded.values())[:7] == [1, 2, 4, 8, 16, 32, 64]
    assert len(recorded) < 50
    assert max(recorded) >= 1_800 - 60
    assert all(times == n + 1 for n, times in recorded.items())
    assert repeats.count("other", 0) == 1
    assert repeats.count("g", 1_800_000 + REPEAT_PAUSE_MS) == 1  # it was over


def test_the_keys_of_repeats_are_bounded() -> None:
    repeats = Repeats()
    for n in range(3 * REPEAT_KEYS_MAX):
        repeats.count(n, 0)
    assert len(repeats._seen) == REPEAT_KEYS_MAX
