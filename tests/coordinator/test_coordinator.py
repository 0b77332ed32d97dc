"""The door of the coordinator: whose group it is, what loads, what is full, what is gathered."""

from sys import getrefcount

import pytest

import coordinator.classic.apply
from coordinator.classic.events import (
    ClassicEvent,
    GenerationBegun,
    GroupStabilized,
    MembersRemoved,
    RebalanceBegun,
)
from coordinator.classic.evolve import evolve
from coordinator.classic.group import ClassicGroup
from coordinator.coordinator import GroupCoordinator
from coordinator.events import PartitionClosed, PartitionLoaded, PartitionLoadFailed
from coordinator.settings import GroupSettings
from protocol.messages import Request
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from protocol.messages.sync_group import SyncGroupRequest
from protocol.names import ErrorCode, GroupId, GroupState, MemberId, TopicName
from seams.java_hash import hash_map_order, java_hash, java_hash_in_python, partition_of
from tests.memory_log import MemoryLog
from tests.world import SESSION_TIMEOUT_MS, Asked, World, kafka_settings

G = GroupId("g")
M = MemberId("m")
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_OURS = ErrorCode.NOT_COORDINATOR
FULL = ErrorCode.COORDINATOR_NOT_AVAILABLE

A_COMMIT = OffsetCommitRequest(
    group_id=G,
    topics=[
        OffsetCommitRequestTopic(name=TopicName("t"), partitions=[OffsetCommitRequestPartition()])
    ],
)
A_JOIN = JoinGroupRequest(G, SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS, M, None, "consumer", ())
EVERY_REQUEST: dict[str, tuple[Request, int]] = {
    "join": (A_JOIN, 9),
    "sync": (SyncGroupRequest(G, member_id=M), 3),
    "heartbeat": (HeartbeatRequest(G, member_id=M), 4),
    "leave": (LeaveGroupRequest(G, members=[MemberIdentity(M)]), 5),
    "commit": (A_COMMIT, 9),
    "delete offsets": (OffsetDeleteRequest(G), 0),
    "fetch": (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G)]), 9),
    "describe": (DescribeGroupsRequest([G]), 6),
    "delete": (DeleteGroupsRequest([G]), 2),
    "list": (ListGroupsRequest(), 5),
}


def error_of(asked: Asked) -> ErrorCode:
    """The error, wherever this answer has its place for it."""
    response = asked.response
    if asked.request is A_COMMIT:
        return response.topics[0].partitions[0].error_code  # type: ignore[union-attr]
    for parts in ("groups", "results"):
        if not isinstance(response, ListGroupsResponse) and hasattr(response, parts):
            return getattr(response, parts)[0].error_code  # type: ignore[no-any-return]
    return asked.error


# ---------------------------------------------------------------- which partition


@pytest.mark.parametrize(
    ("group_id", "hashed", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("my-group", -1906497762, 12),
        ("console-consumer-12345", 158455506, 6),
        ("polygenelubricants", -(2**31), 0),
        ("\U0001f600x", 54959989, 39),
    ],
)
def test_a_group_has_the_partition_that_kafka_gives_it(
    group_id: str, hashed: int, partition: int
) -> None:
    assert java_hash(group_id) == hashed
    assert partition_of(group_id, 50) == partition
    assert World(GroupSettings()).coordinator.partition_for(GroupId(group_id)) == partition


# ---------------------------------------------------------------- loading, not ours, full


@pytest.mark.parametrize(
    ("name", "loading", "absent"),
    [
        ("join", LOADING, NOT_OURS),
        ("sync", LOADING, NOT_OURS),
        ("heartbeat", ErrorCode.NONE, NOT_OURS),
        ("leave", LOADING, NOT_OURS),
        ("commit", LOADING, NOT_OURS),
        ("delete offsets", LOADING, NOT_OURS),
        ("fetch", LOADING, NOT_OURS),
        ("describe", LOADING, NOT_OURS),
        ("delete", LOADING, NOT_OURS),
        ("list", LOADING, ErrorCode.NONE),
    ],
)
def test_each_request_says_in_its_own_way_that_the_group_loads_or_is_not_ours(
    world: World, name: str, loading: ErrorCode, absent: ErrorCode
) -> None:
    request, version = EVERY_REQUEST[name]
    world.coordinator.resign(0, world.now)
    assert error_of(world.ask(request, version=version)) is absent
    world.coordinator.begin_load(0, MemoryLog())
    assert error_of(world.ask(request, version=version)) is loading
    world.coordinator.fail_load(0, "unreadable")
    assert error_of(world.ask(request, version=version)) is absent


def error_of_join(world: World) -> Asked:
    return world.ask(A_JOIN, version=9)


def test_a_join_that_was_not_processed_is_answered_without_a_member_id(world: World) -> None:
    world.coordinator.resign(0, world.now)
    asked = error_of_join(world)
    assert asked.joined.member_id == ""
    assert asked.joined.generation_id == -1


def test_what_can_be_refused_without_the_group_is_refused_even_while_it_loads(
    world: World,
) -> None:
    world.coordinator.resign(0, world.now)
    assert world.join("", "m").error is ErrorCode.INVALID_GROUP_ID
    assert world.join("g", session_timeout_ms=1).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert world.ask(OffsetDeleteRequest(), version=0).error is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("name", "error_code"),
    [
        ("join", FULL),
        ("sync", ErrorCode.UNKNOWN_MEMBER_ID),
        ("heartbeat", ErrorCode.UNKNOWN_MEMBER_ID),
        ("leave", FULL),
        ("commit", FULL),
        ("delete offsets", FULL),
        ("fetch", ErrorCode.NONE),
        ("describe", ErrorCode.GROUP_ID_NOT_FOUND),
        ("delete", FULL),
        ("list", ErrorCode.NONE),
    ],
)
def test_while_the_log_is_full_what_may_write_is_refused_and_the_rest_is_served(
    world: World, name: str, error_code: ErrorCode
) -> None:
    request, version = EVERY_REQUEST[name]
    world.log.full = True
    assert error_of(world.ask(request, version=version)) is error_code
    assert world.log.records == []


def test_while_the_log_is_full_a_generation_cannot_be_stored_but_a_stable_one_is_served(
    world: World,
) -> None:
    group = world.given_stable_group("stable", members=1)
    (leader,) = world.given_joined("g", members=1)
    world.log.full = True
    assert world.sync("g", leader.member_id, 1).error is FULL
    assert world.sync("stable", group.leader_id, 1).error is ErrorCode.NONE
    assert world.heartbeat(group, group.leader_id) is ErrorCode.NONE


def test_no_member_expires_while_the_log_is_full_and_all_do_later(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.log.full = True
    world.advance(SESSION_TIMEOUT_MS * 2)
    assert group.state is GroupState.STABLE
    world.log.full = False
    world.advance(100)
    assert group.state is GroupState.EMPTY


# ---------------------------------------------------------------- partitions come and go


def test_resigning_answers_all_requests_that_wait_for_members(world: World) -> None:
    group = world.given_stable_group(members=2)
    joining = world.join("g", group.leader_id)
    _, follower = world.given_joined("h", members=2)
    syncing = world.sync("h", follower.member_id, 1)
    world.coordinator.resign(0, world.now)
    assert joining.error is syncing.error is NOT_OURS
    assert joining.joined.member_id == group.leader_id
    assert world.coordinator.delayed_operations == 0
    (closed,) = world.events_of(PartitionClosed)
    assert closed.groups == 2
    world.advance(SESSION_TIMEOUT_MS * 10)


def test_resigning_answers_all_requests_that_wait_for_the_disk(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.storing = False
    asked = [
        world.committing("g", group.leader_id, 1),
        world.committing("new"),
        world.leave("g", group.leader_id),
        world.beat("g", "m", 1),
        world.sync("g", "m", 1),
        world.join("g"),
        world.ask(OffsetDeleteRequest(G), version=0),
        world.ask(DeleteGroupsRequest([G]), version=2),
        world.ask(DescribeGroupsRequest([G]), version=6),
        world.ask(ListGroupsRequest(), version=5),
        world.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G)]), version=9),
        world.ask(OffsetFetchRequest(G, None), version=1),
    ]
    assert all(answer.waits for answer in asked)
    world.coordinator.resign(0, world.now)
    for answer in asked[2:-1]:
        assert error_of(answer) is NOT_OURS
    for answer in asked[:2]:
        assert answer.response.topics[0].partitions[0].error_code is NOT_OURS  # type: ignore[union-attr]
    assert not asked[-1].waits
    world.coordinator.on_stored(0, 1_000, world.now)
    world.check()


def test_a_failed_log_refuses_what_is_not_stored_and_serves_what_is_after_a_reload(
    world: World,
) -> None:
    group = world.given_stable_group(members=1)
    member_id = group.leader_id
    world.storing = False
    asked = world.committing("g", member_id, 1)
    world.log.closed = True
    world.coordinator.on_log_failed(0, world.now)
    assert asked.response.topics[0].partitions[0].error_code is NOT_OURS  # type: ignore[union-attr]
    assert world.beat("g", member_id, 1).error is NOT_OURS

    reloaded = MemoryLog(world.log.survivors())
    reloaded.closed = True
    world.start({0: reloaded})
    assert world.beat("g", member_id, 1).error is ErrorCode.NONE
    assert world.commit("g", member_id, 1) is FULL
    fetched = world.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, None)]), version=9)
    assert error_of(fetched) is ErrorCode.NONE


def test_a_log_that_closes_in_the_middle_of_a_request_ends_only_its_shard() -> None:
    world = World(kafka_settings(offsets_topic_num_partitions=2))
    failed: list[tuple[int, Exception]] = []
    world.coordinator._shard_failed = lambda partition, why: failed.append((partition, why))
    group = world.given_stable_group("a", members=1)
    partition = world.coordinator.partition_for(GroupId("a"))
    other = next(g for g in "bcdef" if world.coordinator.partition_for(GroupId(g)) != partition)
    world.given_stable_group(other, members=1)

    world.logs[partition].closed = True
    world.logs[partition].has_room = lambda: True  # type: ignore[method-assign]
    asked = world.leave("a", group.leader_id)
    assert asked.left.error_code is NOT_OURS
    assert [p for p, _ in failed] == [partition]
    assert world.heartbeat(world.group(other), world.group(other).leader_id) is ErrorCode.NONE


def break_evolve(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    """From now on, writing an event of this kind into a group fails."""

    def broken(group: ClassicGroup, event: ClassicEvent) -> None:
        assert not isinstance(event, kind), "a planted bug"
        evolve(group, event)

    monkeypatch.setattr(coordinator.classic.apply, "evolve", broken)


@pytest.mark.pure
def test_a_bug_in_a_turn_ends_the_shard_and_answers_every_request_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Exception] = []
    world.coordinator._shard_failed = lambda _, why: failed.append(why)
    _, follower = world.given_joined("h", members=2)
    syncing = world.sync("h", follower.member_id, 1)
    group = world.given_stable_group(members=2)
    parked = world.join("g", group.leader_id)
    break_evolve(monkeypatch, GenerationBegun)
    asked = world.join("g", next(m for m in group.members if m != group.leader_id))
    assert ["a planted bug" in str(why) for why in failed] == [True]
    assert parked.error is asked.error is syncing.error is NOT_OURS
    assert world.beat("g", "m", 1).error is NOT_OURS
    world.advance(SESSION_TIMEOUT_MS)


@pytest.mark.pure
def test_a_bug_after_answers_were_decided_answers_them_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.coordinator._shard_failed = lambda _, why: None
    _, follower = world.given_joined(members=2)
    syncing = world.sync("g", follower.member_id, 1)
    break_evolve(monkeypatch, RebalanceBegun)
    left = world.leave("g", follower.member_id)
    assert left.left.error_code is NOT_OURS
    assert syncing.error is NOT_OURS


@pytest.mark.pure
@pytest.mark.parametrize("in_time", [True, False])
def test_a_bug_in_a_timer_or_after_storing_ends_the_shard_too(
    world: World, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    failed: list[Exception] = []
    world.coordinator._shard_failed = lambda _, why: failed.append(why)
    (leader,) = world.given_joined(members=1)
    if in_time:
        break_evolve(monkeypatch, MembersRemoved)
        world.advance(SESSION_TIMEOUT_MS)
    else:
        break_evolve(monkeypatch, GroupStabilized)
        asked = world.sync("g", leader.member_id, 1)
        assert asked.error is NOT_OURS
    assert len(failed) == 1


@pytest.mark.pure
def test_a_bug_stops_a_test_unless_it_asks_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = world.given_stable_group(members=1)
    break_evolve(monkeypatch, MembersRemoved)
    with pytest.raises(AssertionError, match="a planted bug"):
        world.leave("g", group.leader_id)


def test_loading_in_slices_serves_nothing_until_it_is_finished() -> None:
    world = World(kafka_settings())
    world.given_stable_group(members=1)
    world.commit("simple")
    records = world.log.survivors()
    member_id = world.group().leader_id
    world.coordinator.resign(0, world.now)

    log = MemoryLog(records)
    world.coordinator.begin_load(0, log)
    for n, record in enumerate(records):
        world.coordinator.load(0, [record], n + 1)
        assert world.coordinator.group(G) is None
    world.coordinator.finish_load(0, world.now)
    assert world.beat("g", member_id, 1).error is ErrorCode.NONE
    while world.coordinator.restore_slice(0, world.now, 0):
        pass
    loaded = world.events_of(PartitionLoaded)[-1]
    assert (loaded.groups, loaded.members, loaded.next_offset) == (2, 1, len(records))


def test_a_load_that_fails_is_reported_and_may_be_retried(world: World) -> None:
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, MemoryLog())
    world.coordinator.fail_load(0, "bad record")
    (failed,) = world.events_of(PartitionLoadFailed)
    assert failed.reason == "bad record"
    world.coordinator.begin_load(0, MemoryLog())
    world.coordinator.finish_load(0, world.now)
    assert world.beat("g", "m", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_partition_may_be_given_up_while_it_loads(world: World) -> None:
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, MemoryLog())
    world.coordinator.resign(0, world.now)
    assert world.beat("g", "m", 1).error is NOT_OURS


# ---------------------------------------------------------------- many groups in one request


@pytest.fixture
def spread() -> World:
    """Eight partitions, a simple group in each of several."""
    world = World(kafka_settings(offsets_topic_num_partitions=8))
    for group_id in "abcdefgh":
        assert world.commit(group_id, offsets={0: ord(group_id)}) is ErrorCode.NONE
    return world


def resign(world: World, group_id: str) -> int:
    partition = world.coordinator.partition_for(GroupId(group_id))
    world.coordinator.resign(partition, world.now)
    return partition


def test_groups_of_all_partitions_are_listed_together(spread: World) -> None:
    asked = spread.ask(ListGroupsRequest(), version=5)
    assert isinstance(asked.response, ListGroupsResponse)
    assert sorted(group.group_id for group in asked.response.groups) == list("abcdefgh")


def test_partitions_that_are_not_ours_are_left_out_of_the_list(spread: World) -> None:
    resign(spread, "a")
    asked = spread.ask(ListGroupsRequest(), version=5)
    assert isinstance(asked.response, ListGroupsResponse)
    assert asked.response.error_code is ErrorCode.NONE
    assert "a" not in {group.group_id for group in asked.response.groups}


def test_one_partition_that_loads_fails_the_whole_list(spread: World) -> None:
    spread.coordinator.begin_load(resign(spread, "a"), MemoryLog())
    asked = spread.ask(ListGroupsRequest(), version=5)
    assert asked.error is LOADING
    assert isinstance(asked.response, ListGroupsResponse)
    assert not asked.response.groups


def test_offsets_of_many_groups_come_in_the_order_asked_for(spread: World) -> None:
    resign(spread, "c")
    wanted = [GroupId(group_id) for group_id in "hacxb"]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(g, topics=None) for g in wanted])
    asked = spread.ask(request, version=8)
    assert isinstance(asked.response, OffsetFetchResponse)
    assert [group.group_id for group in asked.response.groups] == wanted
    gone = spread.coordinator.partition_for(GroupId("c"))
    for group in asked.response.groups:
        ours = spread.coordinator.partition_for(group.group_id) != gone
        assert group.error_code is (ErrorCode.NONE if ours else NOT_OURS)
    (topic,) = asked.response.groups[0].topics
    assert topic.partitions[0].committed_offset == ord("h")


def test_an_answer_over_many_partitions_waits_for_the_slowest_disk(spread: World) -> None:
    spread.storing = False
    spread.committing("a", offsets={0: 7})
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(GroupId(g), topics=None) for g in "ah"]
    )
    asked = spread.ask(request, version=8)
    listed = spread.ask(ListGroupsRequest(), version=5)
    assert asked.waits
    assert listed.waits
    spread.store()
    assert isinstance(asked.response, OffsetFetchResponse)
    assert asked.response.groups[0].topics[0].partitions[0].committed_offset == 7
    assert not listed.waits


def test_a_partition_that_ends_meanwhile_hands_in_a_refusal(spread: World) -> None:
    spread.storing = False
    spread.committing("a", offsets={0: 7})
    asked = spread.ask(DescribeGroupsRequest([GroupId("a"), GroupId("b")]), version=6)
    partition = resign(spread, "a")
    assert isinstance(asked.response, DescribeGroupsResponse)
    codes = {group.group_id: group.error_code for group in asked.response.groups}
    assert codes[GroupId("a")] is NOT_OURS
    if spread.coordinator.partition_for(GroupId("b")) != partition:
        assert codes[GroupId("b")] is ErrorCode.NONE


def test_each_group_is_deleted_or_refused_on_its_own(spread: World) -> None:
    spread.given_stable_group("busy", members=1)
    gone = resign(spread, "c")
    wanted = [GroupId(group_id) for group_id in ("a", "busy", "nobody", "c")]
    asked = spread.ask(DeleteGroupsRequest(wanted), version=2)
    assert isinstance(asked.response, DeleteGroupsResponse)
    codes = {result.group_id: result.error_code for result in asked.response.results}
    expected = {
        "a": ErrorCode.NONE,
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        "c": NOT_OURS,
    }
    for group_id, error_code in expected.items():
        ours = spread.coordinator.partition_for(GroupId(group_id)) != gone
        assert codes[GroupId(group_id)] is (error_code if ours else NOT_OURS)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (DescribeGroupsRequest(), 5),
        (DeleteGroupsRequest(), 2),
        (OffsetFetchRequest(), 8),
    ],
)
def test_a_request_for_no_groups_is_answered_with_none(
    world: World, request_: Request, version: int
) -> None:
    assert not world.ask(request_, version=version).waits


# ---------------------------------------------------------------- FindCoordinator


def found(world: World, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    asked = world.ask(request, version=version)
    assert isinstance(asked.response, FindCoordinatorResponse)
    return asked.response


@pytest.mark.parametrize("version", range(4))
def test_up_to_version_3_one_group_is_asked_for(world: World, version: int) -> None:
    answer = found(world, FindCoordinatorRequest("g"), version)
    assert (answer.node_id, answer.host, answer.port) == (1, "localhost", 9092)
    assert answer.error_code is ErrorCode.NONE
    assert answer.error_message == "NONE"


@pytest.mark.parametrize("version", [4, 5, 6])
def test_from_version_4_on_many_are(world: World, version: int) -> None:
    answer = found(world, FindCoordinatorRequest(coordinator_keys=["a", ""]), version)
    assert [(c.key, c.node_id, c.error_code) for c in answer.coordinators] == [
        ("a", 1, ErrorCode.NONE),
        ("", 1, ErrorCode.NONE),
    ]
    assert [c.error_message for c in answer.coordinators] == ["", ""]


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_what_is_not_a_group_is_not_coordinated_here(world: World, key_type: int) -> None:
    old = found(world, FindCoordinatorRequest("x", key_type), 3)
    assert old.error_code is ErrorCode.INVALID_REQUEST
    assert (old.node_id, old.host, old.port) == (-1, "", -1)
    assert old.error_message
    new = found(world, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"]), 6)
    assert new.coordinators[0].error_code is ErrorCode.INVALID_REQUEST
    assert new.coordinators[0].node_id == -1


def test_before_its_topic_exists_there_is_no_coordinator_of_transactions(world: World) -> None:
    old = found(world, FindCoordinatorRequest("x", 1), 3)
    assert old.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (old.node_id, old.host, old.port) == (-1, "", -1)
    assert old.error_message == "The coordinator is not available."
    new = found(world, FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 6)
    (coordinator,) = new.coordinators
    assert coordinator.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (coordinator.node_id, coordinator.error_message) == (-1, "")


def test_the_coordinator_is_named_while_it_loads(world: World) -> None:
    world.coordinator.resign(0, world.now)
    assert found(world, FindCoordinatorRequest("g"), 3).error_code is ErrorCode.NONE


# ---------------------------------------------------------------- time


def test_without_anything_to_wait_for_there_is_only_the_sweep_for_expired_offsets(
    world: World,
) -> None:
    deadline_ms = world.coordinator.next_deadline_ms
    assert deadline_ms == world.now.mono_ms + world.settings.offsets_retention_check_interval_ms


def test_the_nearest_deadline_of_all_shards_is_the_next_one() -> None:
    world = World(kafka_settings(offsets_topic_num_partitions=8, offsets_commit_timeout_ms=60_000))
    world.join("a", session_timeout_ms=9_000)
    world.join("b", session_timeout_ms=7_000)
    assert world.coordinator.next_deadline_ms == world.now.mono_ms + 7_000
    world.advance(7_000)
    assert world.coordinator.next_deadline_ms == world.now.mono_ms + 2_000


def test_only_an_earlier_deadline_sets_the_timer() -> None:
    world = World(kafka_settings(offsets_topic_num_partitions=8, offsets_commit_timeout_ms=60_000))
    deadlines_ms: list[int | None] = []
    world.coordinator.watch_deadline(
        lambda: deadlines_ms.append(world.coordinator.next_deadline_ms)
    )
    world.join("a", session_timeout_ms=9_000)
    world.join("b", session_timeout_ms=7_000)
    assert deadlines_ms[-1] == world.now.mono_ms + 7_000
    del deadlines_ms[:]
    world.join("c", session_timeout_ms=8_000)
    assert not deadlines_ms


def test_a_tick_that_comes_too_early_does_nothing(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.coordinator.tick(world.now)
    assert group.state is GroupState.STABLE


def test_a_disconnect_changes_nothing_about_a_parked_member(world: World) -> None:
    group = world.given_stable_group(members=2)
    asked = world.join("g", group.leader_id)
    world.coordinator.disconnected(asked.token, world.now)
    world.check()
    assert group.awaiting_join_count == 1
    world.join("g", next(m for m in group.members if m != group.leader_id))
    assert asked.joined.generation_id == 2


def test_offsets_of_a_deleted_topic_are_forgotten_in_slices(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "check", lambda: None)  # a thousand groups, a thousand times
    for n in range(1_200):
        world.commit(f"g{n}")
    topic_id = world.topics.topic_id(TopicName("t"))
    assert topic_id is not None
    world.coordinator.topics_deleted([(TopicName("t"), topic_id)], world.now)
    world.coordinator.tick(world.now)
    left = sum(bool(group.offsets) for group in world.coordinator.groups())
    assert 0 < left < 1_200
    world.advance(0)
    assert not any(group.offsets for group in world.coordinator.groups())


def test_the_group_counts_change_without_scanning() -> None:
    world = World(kafka_settings(offsets_topic_num_partitions=4))
    world.given_stable_group("a", members=3)
    world.given_stable_group("b", members=2)
    world.commit("simple")
    assert world.coordinator.group_counts.members == 5
    assert world.coordinator.group_counts.groups == 3
    assert world.coordinator.group_counts.states[GroupState.STABLE] == 2
    world.crash()
    assert world.coordinator.group_counts.members == 5
    world.leave("a", *world.group("a").members)
    assert world.coordinator.group_counts.members == 2


def test_every_group_request_has_a_handler(world: World) -> None:
    assert isinstance(world.coordinator, GroupCoordinator)
    for request, version in EVERY_REQUEST.values():
        assert not world.ask(request, version=version).waits


@pytest.mark.parametrize("length", [1, 254, 255, 256, 510, 511, 1_000])
def test_long_and_odd_strings_are_hashed_as_java_does(length: int) -> None:
    text = ("Zürich 日本語 \U0001f993 " * length)[:length]
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    assert java_hash(text) & 0xFFFF_FFFF == value
    for odd in (text, text[::-1], text + "\ud800", "\udc00" + text, "\ud83e\udd93" + text):
        assert java_hash(odd) == java_hash_in_python(odd)


def test_a_group_id_too_long_to_be_remembered_has_its_partition_all_the_same() -> None:
    long = "my-group" * 100
    assert partition_of(long, 50) == partition_of(long, 50) == abs(java_hash(long)) % 50


def test_a_long_member_id_is_not_kept_for_its_place_in_a_map() -> None:
    client_id = "client" * 5_000
    member_ids = [f"{client_id}-{number}" for number in range(3)]
    references = [getrefcount(member_id) for member_id in member_ids]

    order = hash_map_order(member_ids)

    def bucket_of(member_id: str, buckets: int) -> int:
        hashed = java_hash(member_id) & 0xFFFF_FFFF
        return (hashed ^ hashed >> 16) % buckets

    assert order == sorted(member_ids, key=lambda member_id: bucket_of(member_id, 16))
    del order
    assert [getrefcount(member_id) for member_id in member_ids] == references
