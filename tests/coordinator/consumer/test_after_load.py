"""Consumer groups after a load: each member has its full time again."""

from msgspec.structs import replace

from coordinator.consumer.apply import check_consumer_timers
from coordinator.consumer.load_and_unload import start_consumer_after_load
from coordinator.consumer.member import ClassicMetadata, ConsumerMemberMetadata, ConsumerMemberState
from coordinator.consumer.records import current_assignment_record, member_metadata_record
from protocol.names import GroupId, MemberId
from seams.group_configs import BrokerGroupConfigs
from seams.now import Now
from tests.coordinator.consumer.given import ALICE, Member, append_group, group_of, world_of
from tests.coordinator.consumer.test_restore import A_MEMBER, GROUP, M1, a_current, the_group
from tests.world import World

SESSION_TIMEOUT_MS = 45_000
NOW = Now(1_000, 1_600_000_000_000)


def test_every_member_gets_a_full_session() -> None:
    classic = ConsumerMemberMetadata(MemberId("m-2"), classic=ClassicMetadata(10_000, ()))
    group = the_group(*A_MEMBER, member_metadata_record(GROUP, classic))

    ops = start_consumer_after_load(group, NOW, SESSION_TIMEOUT_MS)

    # The classic member's own timeout counts from its next heartbeat on, as in Kafka.
    assert [op.deadline_ms for op in ops] == [46_000, 46_000]
    assert [m.session_deadline_ms for m in group.members.values()] == [46_000, 46_000]
    check_consumer_timers(group, {op.slot for op in ops}.__contains__)


def test_a_member_that_has_to_give_partitions_back_gets_its_rebalance_timeout() -> None:
    revoking = replace(
        a_current(2, 0, state=ConsumerMemberState.UNREVOKED_PARTITIONS),
        pending_revocation={},
    )
    metadata = ConsumerMemberMetadata(M1, rebalance_timeout_ms=60_000)
    group = the_group(
        *A_MEMBER,
        member_metadata_record(GROUP, metadata),
        current_assignment_record(GROUP, M1, revoking),
    )

    ops = start_consumer_after_load(group, NOW, SESSION_TIMEOUT_MS)

    assert {op.deadline_ms for op in ops} == {46_000, 61_000}
    assert group.members[M1].rebalance_deadline_ms == 61_000
    check_consumer_timers(group, {op.slot for op in ops}.__contains__)


class LongSessions(BrokerGroupConfigs):
    def session_timeout_ms(self, _group_id: GroupId, /) -> int:
        return 50_000


def test_a_group_with_a_session_timeout_of_its_own_gets_that_one() -> None:
    world = World()
    world.group_configs = LongSessions()
    append_group(world, Member(ALICE, 5, {0: 5}))
    world.crash()
    group = group_of(world)

    world.advance(49_999)
    assert group.members.keys() == {ALICE}
    world.advance(1)
    assert group.members == {}


def test_members_that_expire_together_are_removed_in_slices() -> None:
    """Between two slices the loop serves clients."""
    members = [Member(MemberId(f"m{number}"), 5, {}) for number in range(250)]
    world = world_of(*members)
    world.advance(world.settings.group_consumer_session_timeout_ms - 1)
    world._move_to(world.now.mono_ms + 1)
    left = []
    while group_of(world).members:
        world.coordinator.tick(world.now)
        world.step()
        left.append(len(group_of(world).members))
        next_ms = world.coordinator.next_deadline_ms
        assert not left[-1] or (next_ms is not None and next_ms <= world.now.mono_ms)
    assert left == [150, 50, 0]
