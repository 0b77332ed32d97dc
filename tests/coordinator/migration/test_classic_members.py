"""Classic members of a consumer group: their joins, syncs, heartbeats and timeouts."""

import pytest

from coordinator.consumer.events import ConsumerMemberRemoved, ConsumerRemovalCause
from coordinator.settings import MigrationPolicy
from protocol.consumer_protocol import read_assignment
from protocol.messages.join_group import JoinGroupResponse
from protocol.names import ErrorCode, GroupInstanceId, GroupState, MemberId
from tests.classic_client import ClassicClient, owned_of
from tests.consumer_client import ConsumerClient
from tests.coordinator.migration.conftest import subscribed
from tests.world import REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, World, kafka_settings

OFFERED = (("range", subscribed("t")),)


def configured(world: World, **settings: object) -> World:
    world.settings = kafka_settings(group_consumer_assignment_interval_ms=0, **settings)
    world.start(world.logs)
    return world


@pytest.fixture
def consumer(world: World) -> ConsumerClient:
    """A member of the consumer protocol in the group; targets are computed at once."""
    configured(world)
    consumer = ConsumerClient(world, "c")
    consumer.join()
    return consumer


def given_classic(world: World, **options: object) -> JoinGroupResponse:
    """A classic member that has joined with its own id."""
    answer = world.join(version=3, **{"protocols": OFFERED, **options}).joined  # type: ignore[arg-type]
    assert answer.error_code is ErrorCode.NONE
    return answer


# ---------------------------------------------------------------- JoinGroup


def test_a_join_is_answered_at_once_without_a_leader(
    world: World, consumer: ConsumerClient
) -> None:
    answer = world.join(version=9, member_id="any", protocols=OFFERED).joined

    assert (answer.generation_id, answer.member_id) == (3, "any")
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert (answer.leader, list(answer.members)) == ("", [])
    assert not answer.skip_assignment
    assert world.consumer_group().epoch == 3


def test_a_dynamic_member_is_given_an_id_first(world: World, consumer: ConsumerClient) -> None:
    answer = world.join(version=4, protocols=OFFERED).joined

    assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id
    assert world.consumer_group().members.keys() == {"c"}


def test_the_first_protocol_of_the_member_is_chosen(world: World, consumer: ConsumerClient) -> None:
    offered = (("sticky", subscribed("t")), ("range", subscribed("t")))
    assert given_classic(world, protocols=offered).protocol_name == "sticky"


@pytest.mark.parametrize(("version", "answered"), [(5, ""), (9, None)])
def test_a_protocol_without_a_name_is_answered_as_none(
    world: World, consumer: ConsumerClient, version: int, answered: str | None
) -> None:
    answer = world.join(member_id="z", protocols=(("", subscribed("t")),), version=version).joined

    assert (answer.error_code, answer.protocol_name) == (ErrorCode.NONE, answered)


def test_classic_members_need_a_protocol_that_all_of_them_have(
    world: World, consumer: ConsumerClient
) -> None:
    both = (("sticky", subscribed("t")), ("range", subscribed("t")))
    given_classic(world, protocols=both)
    given_classic(world, protocols=OFFERED)
    only_sticky = world.join(version=3, protocols=both[:1])

    assert only_sticky.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    "wrong", [{"protocol_type": "connect"}, {"protocol_type": ""}, {"protocols": ()}]
)
def test_only_consumers_may_join(
    world: World, consumer: ConsumerClient, wrong: dict[str, object]
) -> None:
    asked = world.join(version=3, **{"protocols": OFFERED, **wrong})  # type: ignore[arg-type]

    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert asked.joined.member_id == ""


def test_a_subscription_has_to_be_readable(world: World, consumer: ConsumerClient) -> None:
    asked = world.join(version=3, protocols=(("range", b"x"),))

    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.consumer_group().members.keys() == {"c"}


def test_the_policy_has_to_allow_a_classic_member(world: World) -> None:
    configured(world, group_consumer_migration_policy=MigrationPolicy.DISABLED)
    ConsumerClient(world, "c").join()

    assert world.join(version=3, protocols=OFFERED).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DOWNGRADE])
def test_a_policy_of_one_direction_allows_a_classic_member(
    world: World, policy: MigrationPolicy
) -> None:
    configured(world, group_consumer_migration_policy=policy)
    ConsumerClient(world, "c").join()

    assert world.join(version=3, protocols=OFFERED).error is ErrorCode.NONE


def test_a_full_group_refuses_new_members_only(world: World) -> None:
    configured(world, group_consumer_max_size=2)
    ConsumerClient(world, "c").join()
    member_id = given_classic(world).member_id

    refused = world.join(version=3, protocols=OFFERED)
    assert (refused.error, refused.joined.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert world.join(member_id=member_id, protocols=OFFERED).error is ErrorCode.NONE


def test_other_topics_bump_the_epoch_and_the_same_ones_do_not(
    world: World, consumer: ConsumerClient
) -> None:
    world.given_topics(t=4, u=2)
    member_id = given_classic(world).member_id
    epoch = world.consumer_group().epoch

    world.join(member_id=member_id, protocols=OFFERED)
    assert world.consumer_group().epoch == epoch
    world.join(member_id=member_id, protocols=(("range", subscribed("t", "u")),))
    assert world.consumer_group().epoch == epoch + 1
    assert world.consumer_group().members[member_id].metadata.subscribed_topic_names == ("t", "u")


def test_metadata_larger_than_a_record_is_refused(world: World) -> None:
    configured(world, max_batch_bytes=2_000)
    ConsumerClient(world, "c").join()
    large = subscribed("t", *(f"topic-{n}" for n in range(300)))

    assert world.join(version=3, protocols=(("range", large),)).error is ErrorCode.MESSAGE_TOO_LARGE


# ---------------------------------------------------------------- what it owns


def test_a_partition_goes_from_one_protocol_to_the_other_when_it_was_given_back(
    world: World, consumer: ConsumerClient
) -> None:
    classic = ClassicClient(world, "a")
    classic.join()
    assert classic.owned == {}  # the consumer has everything
    consumer.beat()  # is told to give two back
    consumer.beat()  # confirms that
    classic.step()

    assert len(classic.owned["t"]) == len(consumer.owned["t"]) == 2
    assert classic.owned["t"].isdisjoint(consumer.owned["t"])


def test_a_cooperative_member_gives_back_with_its_next_join(
    world: World, consumer: ConsumerClient
) -> None:
    classic = ClassicClient(world, "a", cooperative=True)
    for _ in range(3):
        consumer.beat()
        classic.step()
    kept = classic.owned["t"]
    newcomer = ConsumerClient(world, "d")
    newcomer.join()
    classic.step()  # joins, is told what to keep, and joins once more without the rest

    assert classic.owned["t"] < kept
    newcomer.beat()
    assert newcomer.owned["t"].isdisjoint(classic.owned["t"] | consumer.owned["t"])


def test_an_assignment_has_the_version_of_the_members_own_subscription(
    world: World, consumer: ConsumerClient
) -> None:
    consumer.leave()
    ConsumerClient(world, "other", topics=("u",)).join()
    for version in range(4):
        offered = (("range", subscribed("t", version=version)),)
        answer = given_classic(world, protocols=offered)
        synced = world.sync("g", answer.member_id, answer.generation_id).synced
        assert synced.assignment[:2] == version.to_bytes(2, "big")
        world.leave("g", answer.member_id)


# ---------------------------------------------------------------- SyncGroup


def test_a_sync_returns_what_the_coordinator_assigned(
    world: World, consumer: ConsumerClient
) -> None:
    consumer.leave()
    ConsumerClient(world, "other", topics=("u",)).join()
    answer = given_classic(world)
    asked = world.sync(
        "g", answer.member_id, answer.generation_id, assignments={answer.member_id: b"mine"}
    )

    assert owned_of(asked.synced.assignment) == {"t": frozenset({0, 1, 2, 3})}
    assert read_assignment(asked.synced.assignment).user_data is None
    assert (asked.synced.protocol_type, asked.synced.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "c"}, ErrorCode.UNKNOWN_MEMBER_ID),  # of the consumer protocol
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 99}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_is_checked(
    world: World, consumer: ConsumerClient, wrong: dict[str, object], error: ErrorCode
) -> None:
    answer = given_classic(world)
    right = {"member_id": answer.member_id, "generation_id": answer.generation_id}

    assert world.sync("g", **{**right, **wrong}).error is error  # type: ignore[arg-type]
    assert world.sync("g", **right).error is ErrorCode.NONE  # type: ignore[arg-type]


def test_a_sync_behind_a_newer_target_is_sent_back(world: World, consumer: ConsumerClient) -> None:
    answer = given_classic(world)
    ConsumerClient(world, "d").join()

    assert world.sync("g", answer.member_id, answer.generation_id).error is (
        ErrorCode.REBALANCE_IN_PROGRESS
    )


# ---------------------------------------------------------------- Heartbeat


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "c", "generation_id": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 99}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_is_checked(
    world: World, consumer: ConsumerClient, wrong: dict[str, object], error: ErrorCode
) -> None:
    answer = given_classic(world)
    right = {"member_id": answer.member_id, "generation_id": answer.generation_id}

    assert world.beat("g", **{**right, **wrong}).error is error  # type: ignore[arg-type]


def test_a_member_that_waits_for_others_need_not_join_again(
    world: World, consumer: ConsumerClient
) -> None:
    answer = given_classic(world)  # the consumer still has all partitions
    world.sync("g", answer.member_id, answer.generation_id)

    assert world.beat("g", answer.member_id, answer.generation_id).error is ErrorCode.NONE
    consumer.beat()
    consumer.beat()  # what it waits for is free now
    assert world.beat("g", answer.member_id, answer.generation_id).error is (
        ErrorCode.REBALANCE_IN_PROGRESS
    )


def test_a_new_target_asks_for_another_join(world: World, consumer: ConsumerClient) -> None:
    answer = given_classic(world)
    world.sync("g", answer.member_id, answer.generation_id)
    ConsumerClient(world, "d").join()

    assert world.beat("g", answer.member_id, answer.generation_id).error is (
        ErrorCode.REBALANCE_IN_PROGRESS
    )


# ---------------------------------------------------------------- static members


def test_a_static_member_returns_with_another_id(world: World, consumer: ConsumerClient) -> None:
    old = given_classic(world, instance_id="i").member_id
    epoch = world.consumer_group().epoch
    new = given_classic(world, instance_id="i").member_id

    group = world.consumer_group()
    assert new != old
    assert group.static_members[GroupInstanceId("i")] == new
    assert group.members.keys() == {"c", new}
    assert group.epoch == epoch
    assert world.beat("g", old, epoch, "i").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.sync("g", old, epoch, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    fenced = world.join(member_id=old, instance_id="i", protocols=OFFERED)
    assert fenced.error is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_that_nobody_has_does_not_go_with_an_id(
    world: World, consumer: ConsumerClient
) -> None:
    asked = world.join(member_id="some", instance_id="i", protocols=OFFERED)

    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_takes_the_place_of_a_static_consumer(
    world: World, consumer: ConsumerClient
) -> None:
    static = ConsumerClient(world, "s", instance_id="i", regex="t.*")
    static.join()
    new = given_classic(world, instance_id="i").member_id

    group = world.consumer_group()
    assert group.members.keys() == {"c", new}
    assert group.members[new].metadata.classic is not None
    assert group.members[new].metadata.subscribed_topic_regex == ""
    assert group.regexes == {}


# ---------------------------------------------------------------- LeaveGroup


def test_members_of_both_protocols_may_be_removed_together(
    world: World, consumer: ConsumerClient
) -> None:
    static = ConsumerClient(world, "s", instance_id="i")
    static.join()
    classic = given_classic(world).member_id
    epoch = world.consumer_group().epoch
    asked = world.leave("g", classic, ("", "i"), ("nobody", None), ("other", "i"), ("", "j"))

    assert [answer.error_code for answer in asked.left.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert world.consumer_group().members.keys() == {"c"}
    assert world.consumer_group().epoch == epoch + 1


@pytest.mark.parametrize("version", range(3))
def test_old_versions_leave_one_by_one(
    world: World, consumer: ConsumerClient, version: int
) -> None:
    classic = given_classic(world).member_id

    assert world.leave("g", classic, version=version).error is ErrorCode.NONE
    assert world.leave("g", classic, version=version).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_leaves_without_a_member(world: World, consumer: ConsumerClient) -> None:
    epoch = world.consumer_group().epoch
    world.leave("g", "nobody")

    assert world.consumer_group().epoch == epoch


# ---------------------------------------------------------------- timeouts


def removal(world: World) -> ConsumerRemovalCause:
    [removed] = world.events_of(ConsumerMemberRemoved)
    return removed.cause


def given_one_that_beats(world: World, consumer: ConsumerClient, ms: int) -> None:
    """Time passes, in which the consumer sends its heartbeats."""
    for _ in range(0, ms, 1_000):
        world.advance(1_000)
        consumer.beat()


def test_a_silent_member_is_removed_after_its_own_session_timeout(
    world: World, consumer: ConsumerClient
) -> None:
    answer = given_classic(world)
    world.sync("g", answer.member_id, answer.generation_id)
    given_one_that_beats(world, consumer, SESSION_TIMEOUT_MS)

    assert world.consumer_group().members.keys() == {"c"}
    assert removal(world) is ConsumerRemovalCause.SESSION_EXPIRED


def test_a_member_that_does_not_sync_is_removed(world: World, consumer: ConsumerClient) -> None:
    answer = given_classic(world, session_timeout_ms=10 * REBALANCE_TIMEOUT_MS)
    given_one_that_beats(world, consumer, REBALANCE_TIMEOUT_MS)

    assert answer.member_id not in world.consumer_group().members
    assert removal(world) is ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT


def test_a_join_without_a_rebalance_timeout_is_to_sync_at_once(
    world: World, consumer: ConsumerClient
) -> None:
    """The member keeps the timeout that it gave before; the time to sync is that of the request."""
    answer = given_classic(world)
    world.sync("g", answer.member_id, answer.generation_id)
    world.join(member_id=answer.member_id, protocols=OFFERED, rebalance_timeout_ms=-1)
    member = world.consumer_group().members[answer.member_id]
    assert member.metadata.rebalance_timeout_ms == REBALANCE_TIMEOUT_MS
    world.advance(1)

    assert world.consumer_group().members.keys() == {"c"}
    assert removal(world) is ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT


def test_a_member_that_does_not_join_again_is_removed(
    world: World, consumer: ConsumerClient
) -> None:
    answer = given_classic(world, session_timeout_ms=10 * REBALANCE_TIMEOUT_MS)
    world.sync("g", answer.member_id, answer.generation_id)
    other = ConsumerClient(world, "d")
    other.join()
    for _ in range(0, REBALANCE_TIMEOUT_MS, 1_000):
        beat = world.beat("g", answer.member_id, answer.generation_id)
        assert beat.error is ErrorCode.REBALANCE_IN_PROGRESS
        world.advance(1_000)
        consumer.beat()
        other.beat()

    assert world.consumer_group().members.keys() == {"c", "d"}
    assert removal(world) is ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT


def test_a_member_that_joins_and_syncs_in_time_stays(
    world: World, consumer: ConsumerClient
) -> None:
    classic = ClassicClient(world, "a")
    classic.join()
    for _ in range(0, 3 * REBALANCE_TIMEOUT_MS, 1_000):
        world.advance(1_000)
        consumer.beat()
        classic.step()

    assert world.consumer_group().state is GroupState.STABLE
    assert world.consumer_group().members.keys() == {"c", classic.member_id}


def test_a_member_that_changes_to_the_consumer_protocol_need_not_sync(
    world: World, consumer: ConsumerClient
) -> None:
    answer = given_classic(world)
    same = ConsumerClient(world, answer.member_id)
    same.join()
    for _ in range(0, 2 * REBALANCE_TIMEOUT_MS, 1_000):
        world.advance(1_000)
        consumer.beat()
        same.beat()

    assert world.consumer_group().members[MemberId(answer.member_id)].metadata.classic is None


def test_timeouts_start_afresh_after_a_crash(world: World, consumer: ConsumerClient) -> None:
    answer = given_classic(world)
    world.crash()
    world.advance(SESSION_TIMEOUT_MS - 1)
    consumer.beat()

    assert world.beat("g", answer.member_id, answer.generation_id).error is ErrorCode.NONE
