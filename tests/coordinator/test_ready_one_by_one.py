"""Lazy restore: the groups of a snapshot are decoded one by one; no client notices.

Each test takes what a log says as a snapshot, lets a shard begin with that, and asks before any
group but those asked for was decoded.
"""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from broker.net.error_codes import errors_in
from coordinator import image
from coordinator.classic.group import ClassicGroup
from coordinator.events import PartitionLoaded
from coordinator.group_types import group_of_plain, plain_of
from coordinator.image import NOTHING, Image, LoadStart
from coordinator.records import UnreadableRecord
from coordinator.stored_records import RecordSkipped
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.sync_group import SyncGroupRequest
from protocol.names import ErrorCode, GroupId, GroupState, TopicName
from storage.api import StoredRecord
from storage.snapshot import pack, unpacked
from tests.coordinator.test_coordinator import EVERY_REQUEST
from tests.memory_log import MemoryLog
from tests.world import SESSION_TIMEOUT_MS, World, kafka_settings, subscription

MANY = 100_000
"""A budget for everything."""


class Stored:
    """The groups of a snapshot, in memory; says which were decoded."""

    def __init__(self, records: Iterable[StoredRecord]) -> None:
        whole = Image(NOTHING)
        for record in records:
            whole.apply(record)
        self._plain = {group_id: plain_of(group) for group_id, group in whole.read()}
        self.skipped = whole.skipped
        self.decoded: list[str] = []

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(self._plain, 100)

    def raw(self, name: str) -> bytes:
        self.decoded.append(name)
        return pack(self._plain[GroupId(name)])

    def read(self, name: str) -> object:
        return unpacked(self.raw(name))


class Restarted(World):
    """A world whose process is begun again from a snapshot, with nothing decoded yet."""

    stored: Stored

    def restart(self, *, tail: int = 0) -> Stored:
        """The last records, so many, come after the snapshot."""
        records = self.log.survivors()
        cut = len(records) - tail
        self.stored = Stored(records[:cut])
        self.coordinator.resign(0, self.now)
        self.events.clear()
        self.logs = {0: MemoryLog(records)}
        self.coordinator.begin_load(0, self.log)
        begins = LoadStart(self.stored, cut, self.stored.skipped)
        self.coordinator.load_from(0, begins)
        if tail:
            self.coordinator.load(0, records[cut:], self.log.end_position)
        self.coordinator.finish_load(0, self.now)
        return self.stored

    def finish(self) -> None:
        while self.coordinator.restore_slice(0, self.now, 0):
            self.check()


@pytest.fixture
def world() -> Restarted:
    world = Restarted(kafka_settings())
    world.given_stable_group("stable", members=2)
    for name in ("a", "b", "c"):
        world.commit(name, offsets={0: 7, 1: 8})
    return world


def fetch(world: World, *names: str) -> list[dict[int, int]]:
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                GroupId(name),
                topics=[OffsetFetchRequestTopics(name=TopicName("t"), partition_indexes=[0, 1])],
            )
            for name in names
        ]
    )
    response = world.ask(request, version=8).response
    assert isinstance(response, OffsetFetchResponse)
    return [
        {
            partition.partition_index: partition.committed_offset
            for topic in group.topics
            for partition in topic.partitions
        }
        for group in response.groups
    ]


def listed(world: World) -> tuple[ErrorCode, set[str]]:
    response = world.ask(ListGroupsRequest(), version=4).response
    assert isinstance(response, ListGroupsResponse)
    return response.error_code, {group.group_id for group in response.groups}


def test_a_group_that_is_asked_for_is_ready_at_once_and_no_other(world: Restarted) -> None:
    stored = world.restart()
    assert stored.decoded == []
    assert fetch(world, "b", "nobody") == [{0: 7, 1: 8}, {0: -1, 1: -1}]
    assert stored.decoded == ["b"]
    assert world.coordinator.group_counts.unrestored == 3
    assert world.coordinator.load_left(0)[0] == 3


def test_members_go_on_as_if_nothing_had_happened(world: Restarted) -> None:
    group = world.group("stable")
    generation, (leader, follower) = group.generation_id, group.members
    stored = world.restart()
    asked = world.beat("stable", leader, generation)
    assert isinstance(asked.response, HeartbeatResponse)
    assert asked.error is ErrorCode.NONE
    assert world.commit("stable", follower, generation, offsets={0: 9}) is ErrorCode.NONE
    assert stored.decoded == ["stable"]
    assert world.group("stable").state is GroupState.STABLE
    world.check()


def test_a_new_member_finds_the_old_ones(world: Restarted) -> None:
    world.restart()
    joining = world.join("stable", version=3)
    assert joining.waits
    assert len(world.group("stable").members) == 3
    assert world.group("stable").generation_id == 1


def test_a_session_is_full_from_the_moment_its_member_can_be_heard(world: Restarted) -> None:
    world.restart()
    world.advance(SESSION_TIMEOUT_MS - 1)  # nobody has asked, nothing is decoded
    world.finish()
    assert len(world.group("stable").members) == 2
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert len(world.group("stable").members) == 2
    world.advance(1)
    assert len(world.group("stable").members) == 0


def test_what_means_all_groups_waits_for_all(world: Restarted) -> None:
    world.restart()
    assert listed(world) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, set())
    fetch(world, "a", "b", "c")
    assert listed(world)[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.finish()
    assert listed(world) == (ErrorCode.NONE, {"stable", "a", "b", "c"})


def test_groups_are_described_and_deleted_by_name(world: Restarted) -> None:
    stored = world.restart()
    request = DescribeGroupsRequest(groups=[GroupId("stable"), GroupId("gone")])
    described = world.ask(request, version=5).response
    assert isinstance(described, DescribeGroupsResponse)
    assert [group.group_state for group in described.groups] == ["Stable", "Dead"]
    names = [GroupId("a"), GroupId("stable")]
    deleted = world.ask(DeleteGroupsRequest(names), version=2).response
    assert isinstance(deleted, DeleteGroupsResponse)
    assert [result.error_code for result in deleted.results] == [
        ErrorCode.NONE,
        ErrorCode.NON_EMPTY_GROUP,
    ]
    assert stored.decoded == ["stable", "a"]
    world.finish()
    assert listed(world)[1] == {"stable", "b", "c"}
    assert fetch(world, "a") == [{0: -1, 1: -1}]


def test_the_log_after_the_snapshot_counts(world: Restarted) -> None:
    world.commit("b", offsets={0: 99})
    world.commit("new", offsets={1: 5})
    stored = world.restart(tail=2)
    assert stored.decoded == ["b"]
    assert fetch(world, "b", "new") == [{0: 99, 1: 8}, {0: -1, 1: 5}]
    world.finish()
    assert sorted(stored.decoded) == ["a", "b", "c", "stable"]


def test_each_slice_is_small_and_all_get_ready_once(world: Restarted) -> None:
    stored = world.restart()
    slices = 1
    while world.coordinator.restore_slice(0, world.now, 0):
        slices += 1
        world.check()
    assert slices >= 4
    assert sorted(stored.decoded) == ["a", "b", "c", "stable"]
    (loaded,) = world.events_of(PartitionLoaded)
    assert (loaded.groups, loaded.members) == (4, 2)
    assert world.coordinator.group_counts.unrestored == 0
    assert world.coordinator.restore_slice(0, world.now, MANY) is False
    assert len(world.events_of(PartitionLoaded)) == 1


def test_that_all_are_ready_is_reported_even_if_requests_loaded_them_all(world: Restarted) -> None:
    world.restart()
    fetch(world, "a", "b", "c", "stable")
    assert not world.events_of(PartitionLoaded)
    assert world.coordinator.restore_slice(0, world.now, 0) is False
    assert len(world.events_of(PartitionLoaded)) == 1
    assert listed(world)[0] is ErrorCode.NONE


def test_what_the_snapshot_could_not_read_is_still_reported(world: Restarted) -> None:
    world.log.records.append(StoredRecord(world.log.end_position, 1, b"\x00\x63x", b"?"))
    world.log.store()
    world.restart()
    world.finish()
    (loaded,) = world.events_of(PartitionLoaded)
    assert loaded.skipped == (RecordSkipped(world.log.end_position - 1, 99, None),)


def test_a_deleted_topic_is_forgotten_by_groups_that_were_not_ready(world: Restarted) -> None:
    topic_id = world.topics.topic_id(TopicName("t"))
    assert topic_id is not None
    world.restart()
    world.coordinator.topics_deleted([(TopicName("t"), topic_id)], world.now)
    world.advance(10)
    world.finish()
    assert not any(world.has_group(name) and world.group(name).offsets for name in "abc")


def test_a_changed_topic_starts_rebalances_once_all_groups_are_known() -> None:
    world = Restarted(kafka_settings(rebalance_on_partition_change=True))
    world.given_stable_group("reads", members=1, protocols=(("range", subscription("t")),))
    world.restart()
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    assert not world.has_group("reads")
    world.finish()
    world.advance(world.settings.partition_change_delay_ms)
    assert world.group("reads").state is GroupState.PREPARING_REBALANCE


def test_offsets_do_not_expire_before_all_groups_are_known(world: Restarted) -> None:
    world.restart()
    week = world.settings.offsets_retention_minutes * 60_000
    world.advance(week + world.settings.offsets_retention_check_interval_ms)
    assert world.stored.decoded == []
    world.finish()
    world.advance(week + world.settings.offsets_retention_check_interval_ms)
    assert not world.has_group("a")


def test_a_new_group_beyond_the_limit_is_refused_while_others_are_not_ready() -> None:
    world = Restarted(kafka_settings(groups_max=2))
    world.commit("a")
    world.commit("b")
    world.restart()
    assert world.commit("c") is ErrorCode.POLICY_VIOLATION
    assert world.commit("b") is ErrorCode.NONE


def test_a_group_over_its_size_rebalances_when_it_gets_ready() -> None:
    world = Restarted(kafka_settings())
    world.given_stable_group("large", members=3)
    world.settings = kafka_settings(group_max_size=2)
    records = world.log.survivors()
    world.start({0: MemoryLog()})
    world.logs = {0: MemoryLog(records)}
    world.restart()
    world.finish()
    assert world.group("large").state is GroupState.PREPARING_REBALANCE


def test_a_generation_that_had_begun_goes_on(world: Restarted) -> None:
    answers = world.given_joined("begun", members=2)
    world.restart()
    world.sync_all("begun", answers)
    assert world.group("begun").state is GroupState.STABLE


def test_a_generation_nobody_syncs_ends_in_time(world: Restarted) -> None:
    world.given_joined("begun", members=2)
    world.restart()
    world.finish()
    assert world.group("begun").state is GroupState.COMPLETING_REBALANCE
    for member in list(world.group("begun").members):
        world.beat("begun", member, 1)
    world.check()


def test_a_shard_that_ends_forgets_those_that_were_not_ready(world: Restarted) -> None:
    world.restart()
    world.coordinator.resign(0, world.now)
    assert world.coordinator.group_counts.unrestored == 0
    assert world.coordinator.restore_slice(0, world.now, 0) is False
    assert world.coordinator.load_left(0) == (0, 0)


@pytest.mark.pure  # it patches what a compiled function has bound
def test_a_group_that_cannot_be_decoded_ends_its_shard_alone(
    world: Restarted, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Exception] = []
    world.restart()
    world.coordinator._shard_failed = lambda _partition, error: failed.append(error)

    def broken(group_id: GroupId, plain: object) -> ClassicGroup:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(image, "group_of_plain", broken)
    assert world.coordinator.restore_slice(0, world.now, 0) is False
    assert isinstance(failed[0], ZeroDivisionError)
    assert world.beat("stable", "m", 1).error is ErrorCode.NOT_COORDINATOR


def test_equal_values_of_a_column_stand_once(world: World) -> None:
    group = world.group("b")
    plain = plain_of(group)
    _, partitions, offsets, epochs, metadata, committed, expire, ids = plain[-1][0]  # type: ignore[index]
    assert (partitions, offsets) == ([0, 1], [7, 8])
    assert all(len(column) == 1 for column in (epochs, metadata, committed, expire, ids))
    assert group_of_plain(group.group_id, plain).offsets == group.offsets


def test_with_a_full_log_a_group_that_is_not_ready_is_loaded_before_its_leader_syncs(
    world: Restarted,
) -> None:
    """What cannot be written is refused, as for a group that is ready; it ended the shard."""
    (leader,) = world.given_joined("late", members=1)
    world.restart()
    world.log.full = True
    answer = world.sync("late", leader.member_id, 1, assignments={leader.member_id: b"mine"})
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.full = False
    answer = world.sync("late", leader.member_id, 1, assignments={leader.member_id: b"mine"})
    assert answer.synced.assignment == b"mine"


@pytest.mark.parametrize("name", ["fetch", "describe", "delete", "sync", "join", "commit", "list"])
def test_a_group_that_cannot_be_made_ready_ends_its_shard_and_is_answered(
    world: Restarted, name: str
) -> None:
    failed: list[Exception] = []
    world.coordinator._shard_failed = lambda _, why: failed.append(why)
    world.restart()
    world.stored.raw = broken  # type: ignore[method-assign]
    request, version = EVERY_REQUEST[name]
    if isinstance(request, JoinGroupRequest | SyncGroupRequest | OffsetCommitRequest):
        request = replace(request, group_id=GroupId("a"))
    elif name == "fetch":
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GroupId("a"))])
    elif name == "describe":
        request = DescribeGroupsRequest([GroupId("a")])
    elif name == "delete":
        request = DeleteGroupsRequest([GroupId("a")])
    asked = world.ask(request, version=version)
    if name == "list":
        assert asked.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return
    assert len(failed) == 1
    assert ErrorCode.NOT_COORDINATOR in errors_in(asked.response)


def broken(name: str) -> object:
    raise UnreadableRecord(2, 3, f"{name} is damaged")
