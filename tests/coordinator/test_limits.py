"""Nothing grows without bound: the limits that Kafka does not have, and what happens at each."""

from coordinator.classic.events import PendingMemberRemoved, RemovalCause
from protocol.names import ErrorCode, GroupState
from tests.world import World, kafka_settings


def test_no_group_is_created_beyond_the_limit_and_those_that_exist_are_served() -> None:
    world = World(kafka_settings(groups_max=2, offsets_topic_num_partitions=4))
    group = world.given_stable_group("a", members=1)
    assert world.commit("b") is ErrorCode.NONE

    for version in (3, 9):
        refused = world.join("c", version=version)
        assert refused.error is ErrorCode.POLICY_VIOLATION
        assert refused.joined.member_id == ""
    assert world.join("c", instance_id="i").error is ErrorCode.POLICY_VIOLATION
    assert world.commit("c") is ErrorCode.POLICY_VIOLATION
    assert not world.has_group("c")

    assert world.commit("b") is ErrorCode.NONE
    assert world.join("b").error is ErrorCode.MEMBER_ID_REQUIRED
    assert world.heartbeat(group, group.leader_id) is ErrorCode.NONE


def test_a_group_that_goes_makes_room_for_another() -> None:
    world = World(kafka_settings(groups_max=1))
    world.join("a")
    assert world.join("b").error is ErrorCode.POLICY_VIOLATION
    world.advance(world.settings.offsets_retention_check_interval_ms)
    assert not world.has_group("a")
    assert world.join("b").error is ErrorCode.MEMBER_ID_REQUIRED


def test_groups_beyond_the_limit_are_loaded_all_the_same() -> None:
    world = World(kafka_settings())
    for group_id in "abc":
        world.join(group_id)
    world.settings = kafka_settings(groups_max=1)
    world.crash()
    assert all(world.has_group(group_id) for group_id in "abc")
    assert world.join("d").error is ErrorCode.POLICY_VIOLATION


def test_beyond_the_limit_of_ids_the_one_that_is_out_for_longest_is_forgotten() -> None:
    world = World(kafka_settings(pending_members_max=2))
    first, second, third = (world.join("g").joined.member_id for _ in range(3))
    assert list(world.group().pending_member_ids) == [second, third]
    (gone,) = world.events_of(PendingMemberRemoved)
    assert (gone.member_id, gone.cause) == (first, RemovalCause.TOO_MANY_IDS)

    # Its client is told to begin again, and gets in.
    assert world.join("g", first).error is ErrorCode.UNKNOWN_MEMBER_ID
    fourth = world.join("g").joined.member_id
    assert world.join("g", fourth).waits
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_metadata_that_could_never_be_stored_is_refused_at_the_join() -> None:
    world = World(kafka_settings(max_batch_bytes=2_000))
    group = world.given_stable_group(members=1)
    large = (("range", b"x" * 2_001),)
    newcomer = world.join("g", version=3, protocols=large)
    assert newcomer.error is ErrorCode.MESSAGE_TOO_LARGE
    member = world.join("g", group.leader_id, protocols=large)
    assert member.error is ErrorCode.MESSAGE_TOO_LARGE
    assert member.joined.member_id == group.leader_id
    assert group.state is GroupState.STABLE
