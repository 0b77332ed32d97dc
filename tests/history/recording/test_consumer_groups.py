"""Consumer groups in the history: which entries their events bring, and what a rebalance costs.

A rebalance of a consumer group lasts from its first group epoch until all members have reached the
target assignment.
"""

from coordinator.classic.group import ClassicGroup
from coordinator.consumer import events
from coordinator.consumer.events import ConsumerRemovalCause, EpochCause
from coordinator.consumer.member import ConsumerMemberState, CurrentAssignment
from coordinator.events import GroupConverted
from coordinator.group import GroupType
from history.causes import Cause, End, Removal, WaitEnd
from history.consumer_entries import (
    ConsumerMemberUpdatedEntry,
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RegularExpressionResolvedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
    TargetAssignmentRefusedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import (
    ENTRY_NAMES,
    GroupEmptiedEntry,
    GroupLoadedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MemberFencedEntry,
    MembersRemovedEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
)
from history.entry_values import OwnedTopic, PartitionHandover, PartitionMove
from protocol.names import ErrorCode, GroupInstanceId, GroupState, MemberId, TopicName
from tests.history.consumer_history import (
    HEARTBEAT_MS,
    SESSION_TIMEOUT_MS,
    ConsumerHistory,
    G,
    T,
    metadata,
)

UNREVOKED = ConsumerMemberState.UNREVOKED_PARTITIONS
UNRELEASED = ConsumerMemberState.UNRELEASED_PARTITIONS


def names(entries: list[HistoryEntry]) -> list[str]:
    return [ENTRY_NAMES[type(entry)] for entry in entries]


def test_the_first_member_brings_a_whole_rebalance_in_one_turn() -> None:
    world = ConsumerHistory()
    world.given_stable()
    assert names(world.entries) == [
        "group_created",
        "member_joined",
        "rebalance_began",
        "group_epoch_bumped",
        "target_assignment_updated",
        "partitions_assigned",
        "rebalance_ended",
    ]
    (rebalance,) = world.rebalances()
    assert rebalance.cause is Cause.MEMBER_JOINED
    assert (rebalance.generation_before, rebalance.generation_after) == (1, 2)
    assert (rebalance.members_before, rebalance.members_after) == (0, 1)
    assert (rebalance.end, rebalance.duration_ms) == (End.STABLE, 0)
    assert (rebalance.partitions_moved, rebalance.unowned_partition_seconds) == (0, 0.0)
    assert (rebalance.group_type, rebalance.assignor) == ("consumer", "uniform")
    assert rebalance.trigger is not None
    assert rebalance.trigger.client_id == "client-m-1"


def test_a_member_that_has_to_give_partitions_back_is_waited_for() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    requested = world.entries[-1]
    assert isinstance(requested, RevocationRequestedEntry)
    assert requested.member.member_id == "m-1"
    assert requested.partitions == (OwnedTopic("t", (2, 3)),)
    assert (requested.member_epoch, requested.target_epoch) == (2, 3)
    assert requested.timeout_ms == 60_000
    running = world.rebalances()[0]
    assert running.duration_ms is None
    assert [(wait.member.member_id, wait.end) for wait in running.waited_for] == [
        ("m-1", WaitEnd.WAITING)
    ]
    assert running.moves == (
        PartitionMove("t", 2, "m-1", "m-2"),
        PartitionMove("t", 3, "m-1", "m-2"),
    )

    # m-1 confirms 12 s later; m-2 learns of its partitions with its next heartbeat.
    world.advance(12_000)
    ended, *_ = world.turn(world.moves("m-1", 3, owned=(0, 1)))
    assert isinstance(ended, RevocationEndedEntry)
    assert (ended.end, ended.waited_ms, ended.partitions) == (WaitEnd.REVOKED, 12_000, 2)
    assert ended.member_epoch == 3
    assert world.rebalances()[0].end is End.RUNNING
    world.advance(3_000)
    assigned, over = world.turn(world.moves("m-2", 3, owned=(2, 3)))
    assert isinstance(assigned, PartitionsAssignedEntry)
    assert assigned.handed_over == (
        PartitionHandover("t", 2, "m-1", 3_000),
        PartitionHandover("t", 3, "m-1", 3_000),
    )
    assert assigned.waits_for == 0
    assert isinstance(over, RebalanceEndedEntry)


def test_the_cost_of_a_reconciliation_has_who_was_waited_for_and_the_time_without_an_owner() -> (
    None
):
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(12_000)
    world.turn(world.moves("m-1", 3, owned=(0, 1)))
    world.advance(3_000)
    world.turn(world.moves("m-2", 3, owned=(2, 3)))
    rebalance = world.rebalances()[0]
    assert world.state is GroupState.STABLE
    assert (rebalance.end, rebalance.duration_ms) == (End.STABLE, 20_000)
    assert (rebalance.generation_before, rebalance.generation_after) == (2, 3)
    assert (rebalance.partitions_moved, rebalance.unowned_partition_seconds) == (2, 6.0)
    (wait,) = rebalance.waited_for
    assert (wait.member.member_id, wait.end) == ("m-1", WaitEnd.REVOKED)
    assert (wait.join_delay_ms, wait.waited_ms, wait.partitions) == (17_000, 12_000, 2)
    reached = [(joined.member.member_id, joined.join_delay_ms) for joined in rebalance.joined]
    assert reached == [("m-2", 20_000), ("m-1", 17_000)]


def test_a_member_that_is_waited_for_in_vain_names_the_rebalance() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(60_000)
    timed_out = ConsumerRemovalCause.REBALANCE_TIMED_OUT
    gone = world.turn(
        world.goes("m-1", timed_out), world.bumped(EpochCause.REBALANCE_TIMED_OUT, "m-1")
    )
    assert names(gone) == ["revocation_ended", "members_removed", "group_epoch_bumped"]
    ended, removed, bumped = gone
    assert isinstance(ended, RevocationEndedEntry)
    assert (ended.end, ended.waited_ms) == (WaitEnd.DROPPED, 60_000)
    assert isinstance(removed, MembersRemovedEntry)
    assert removed.cause is Removal.REBALANCE_TIMEOUT
    assert isinstance(bumped, GroupEpochBumpedEntry)
    assert (bumped.epoch, bumped.causes, bumped.members) == (4, (Cause.REBALANCE_TIMEOUT,), 1)
    world.advance(1_000)
    world.turn(world.targets(4, **{"m-2": range(4)}), world.moves("m-2", 4, owned=range(4)))
    rebalance = world.rebalances()[0]
    assert rebalance.cause is Cause.REBALANCE_TIMEOUT
    assert rebalance.began_by is Cause.MEMBER_JOINED
    assert rebalance.trigger is not None
    assert rebalance.trigger.member_id == "m-1"
    assert (rebalance.generation_before, rebalance.generation_after) == (2, 4)
    # It is fenced: from its removal on nobody owns its four partitions.
    assert (rebalance.partitions_moved, rebalance.unowned_partition_seconds) == (4, 4.0)
    assert [wait.end for wait in rebalance.waited_for] == [WaitEnd.DROPPED]


def test_an_expired_member_has_owned_nothing_since_it_was_heard_last() -> None:
    world = ConsumerHistory()
    world.given_stable()
    world.turn(
        world.goes("m-1", ConsumerRemovalCause.SESSION_EXPIRED),
        world.bumped(EpochCause.SESSION_EXPIRED, "m-1"),
    )
    assert names(world.entries[-5:]) == [
        "members_removed",
        "rebalance_began",
        "group_epoch_bumped",
        "group_emptied",
        "rebalance_ended",
    ]
    rebalance = world.rebalances()[0]
    assert (rebalance.cause, rebalance.end) == (Cause.SESSION_EXPIRED, End.EMPTY)
    assert rebalance.silent_ms == rebalance.session_timeout_ms == SESSION_TIMEOUT_MS
    assert rebalance.unowned_partition_seconds == 4 * SESSION_TIMEOUT_MS / 1000
    assert rebalance.members_after == 0


def test_a_second_epoch_before_the_end_belongs_to_the_same_rebalance() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(1_000)
    world.turn(world.joins("m-3"), world.bumped(EpochCause.MEMBER_JOINED, "m-3"))
    world.turn(world.bumped(EpochCause.TOPICS_CHANGED, "m-2", topics=("t",)))
    running = world.rebalances()[0]
    assert [(also.cause, also.member and also.member.member_id) for also in running.also] == [
        (Cause.MEMBER_JOINED, "m-3"),
        (Cause.PARTITIONS_CHANGED, "m-2"),
    ]
    targets = {"m-1": (0, 1), "m-2": (2,), "m-3": (3,)}
    world.turn(world.targets(5, **targets), world.moves("m-3", 5, UNRELEASED))
    world.turn(world.moves("m-1", 5, owned=(0, 1)))
    world.turn(world.moves("m-2", 5, owned=(2,)))
    assert world.rebalances()[0].end is End.RUNNING
    world.turn(world.moves("m-3", 5, owned=(3,)))
    rebalance = world.rebalances()[0]
    assert (rebalance.generation_after, rebalance.members_after) == (5, 3)
    assert rebalance.partitions_moved == 2
    assert len(world.rebalances()) == 2


def test_a_rebalance_continues_after_a_restart() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(2_000)
    (loaded,) = world.restart()
    assert isinstance(loaded, GroupLoadedEntry)
    assert (loaded.group_type, loaded.state) == ("consumer", "Reconciling")
    assert (loaded.generation, loaded.interrupted) == (3, False)
    world.advance(10_000)
    world.turn(world.moves("m-1", 3, owned=(0, 1)))
    world.advance(3_000)
    world.turn(world.moves("m-2", 3, owned=(2, 3)))
    rebalance = world.rebalances()[0]
    assert (rebalance.end, rebalance.duration_ms) == (End.STABLE, 20_000)
    assert [wait.waited_ms for wait in rebalance.waited_for] == [12_000]
    assert rebalance.unowned_partition_seconds == 6.0


def test_a_rebalance_that_the_loaded_group_does_not_have_was_interrupted() -> None:
    world = ConsumerHistory()
    world.given_stable()
    stable = world.group
    world.turn(world.joins("m-2"), world.bumped(EpochCause.MEMBER_JOINED, "m-2"))
    world.group = stable
    assert stable is not None
    stable.remove_member(MemberId("m-2"))
    stable.put_epoch(2, 0)
    ended, loaded = world.restart()
    assert isinstance(ended, RebalanceEndedEntry)
    assert ended.rebalance.end is End.INTERRUPTED
    assert isinstance(loaded, GroupLoadedEntry)
    assert loaded.interrupted


def test_a_static_member_that_comes_back_in_time_causes_no_rebalance() -> None:
    world = ConsumerHistory()
    world.turn(
        world.created(),
        world.joins("m-1", instance_id="i"),
        world.bumped(EpochCause.MEMBER_JOINED, "m-1"),
        world.targets(2, **{"m-1": (0, 1)}),
        world.moves("m-1", 2, owned=(0, 1)),
    )
    world.advance(10_000)
    (left,) = world.turn(world.moves("m-1", -2, owned=(0, 1)))
    assert isinstance(left, StaticMemberLeftEntry)
    assert (left.generation, left.member_epoch, left.partitions) == (2, 2, 2)
    world.advance(4_000)
    epochs = {0: 0, 1: 0}
    (replaced,) = world.turn(
        events.ConsumerStaticMemberReplaced(
            G,
            world.now.wall_ms,
            MemberId("m-1"),
            metadata("m-2", instance_id="i"),
            {T: frozenset({0, 1})},
            CurrentAssignment(0, 0, assigned={T: epochs}),
        ),
        world.moves("m-2", 2, owned=(0, 1)),
    )
    assert isinstance(replaced, StaticMemberReplacedEntry)
    assert replaced.without_rebalance
    assert (replaced.silent_ms, replaced.partitions) == (4_000, 2)
    rebalance = world.rebalances()[0]
    assert (rebalance.cause, rebalance.end) == (Cause.STATIC_MEMBER_REPLACED, End.KEPT)
    assert rebalance.unowned_partition_seconds == 8.0
    assert len(world.rebalances()) == 2


def test_a_changed_subscription_is_recorded_with_the_changed_fields() -> None:
    world = ConsumerHistory()
    world.given_stable()
    after = metadata("m-1", "t", "u", regex="v.*")
    updated = events.ConsumerMemberUpdated(G, world.now.wall_ms, after, is_new=False)
    bumped = world.bumped(EpochCause.SUBSCRIPTION_CHANGED, "m-1")
    resolved = events.RegularExpressionResolved(
        G, world.now.wall_ms, "v.*", frozenset({TopicName("v1")}), 3
    )
    entry, _, _, matched = world.turn(updated, bumped, resolved)
    assert isinstance(entry, ConsumerMemberUpdatedEntry)
    assert entry.changed == ("subscribed_topic_names", "subscribed_topic_regex")
    assert (entry.topics, entry.topic_regex, entry.generation) == (("t", "u"), "v.*", 2)
    assert isinstance(matched, RegularExpressionResolvedEntry)
    assert (matched.pattern, matched.topics) == ("v.*", ("v1",))
    # A refresh that finds the same is not told again, nor is the same metadata.
    assert world.turn(resolved) == []
    assert world.turn(updated) == []


def test_refusals_of_an_assignor_and_of_an_epoch_are_recorded() -> None:
    world = ConsumerHistory()
    world.given_stable()
    at_ms = world.now.wall_ms
    (refused,) = world.turn(events.TargetAssignmentRefused(G, at_ms, 2, "mine", "it raised"))
    assert isinstance(refused, TargetAssignmentRefusedEntry)
    assert (refused.epoch, refused.assignor, refused.reason) == (2, "mine", "it raised")
    error = ErrorCode.FENCED_MEMBER_EPOCH
    (fenced,) = world.turn(events.ConsumerMemberFenced(G, at_ms, MemberId("m-1"), error, 1, 2))
    assert isinstance(fenced, MemberFencedEntry)
    assert (fenced.error, fenced.received_epoch, fenced.member_epoch) == (
        "FENCED_MEMBER_EPOCH",
        1,
        2,
    )


def test_a_heartbeat_that_changes_nothing_brings_no_entry() -> None:
    world = ConsumerHistory()
    world.given_stable()
    assert world.turn(events.ConsumerSessionExtended(G, MemberId("m-1"), 9_000)) == []


def test_a_large_target_is_recorded_without_its_moves() -> None:
    world = ConsumerHistory()
    world.given_stable()
    world.turn(world.joins("m-2"), world.bumped(EpochCause.MEMBER_JOINED, "m-2"))
    (entry,) = world.turn(world.targets(3, **{"m-2": range(20_001)}))
    assert isinstance(entry, TargetAssignmentUpdatedEntry)
    assert (entry.partitions_moved, entry.moves) == (None, ())


def test_lists_of_partitions_are_cut() -> None:
    world = ConsumerHistory()
    world.turn(
        world.created(),
        world.joins("m-1"),
        world.bumped(EpochCause.MEMBER_JOINED, "m-1"),
        world.targets(2, **{"m-1": range(500)}),
        world.moves("m-1", 2, owned=range(500)),
    )
    assigned = world.entries[-2]
    assert isinstance(assigned, PartitionsAssignedEntry)
    assert (len(assigned.handed_over), assigned.handed_over_left_out) == (200, 300)
    world.turn(world.joins("m-2"), world.bumped(EpochCause.MEMBER_JOINED, "m-2"))
    world.turn(
        world.targets(3, **{"m-1": (), "m-2": range(500)}),
        world.moves("m-1", 2, UNREVOKED, revoking=range(500)),
    )
    requested = world.entries[-1]
    assert isinstance(requested, RevocationRequestedEntry)
    assert sum(len(owned.partitions) for owned in requested.partitions) == 200
    assert requested.partitions_left_out == 300
    target = world.entries[-2]
    assert isinstance(target, TargetAssignmentUpdatedEntry)
    assert (target.partitions_moved, len(target.moves), target.moves_left_out) == (500, 200, 300)


def test_the_members_of_an_upgraded_group_have_not_joined() -> None:
    world = ConsumerHistory()
    classic = ClassicGroup(G, 0)
    member = metadata("c-1")
    current = CurrentAssignment(7, 7, assigned={T: {0: 7, 1: 7}})
    upgraded = events.ClassicGroupUpgraded(
        G,
        world.now.wall_ms,
        7,
        0,
        (events.ConvertedMember(member, {T: frozenset({0, 1})}, current),),
    )
    converted = GroupConverted(
        G, world.now.wall_ms, GroupType.CLASSIC, GroupType.CONSUMER, "a member joined"
    )
    joined = world.joins("m-1")
    bumped = events.GroupEpochBumped(
        G, world.now.wall_ms, 8, 0, (EpochCause.MEMBER_JOINED,), (MemberId("m-1"),)
    )
    targets = world.targets(8, **{"c-1": (0,), "m-1": (1,)})
    world.history.begin()
    world.history.record(classic, (converted, upgraded, joined, bumped, targets), world.now)
    world.history.end()
    first, added, _, _, target = world.entries
    assert isinstance(first, GroupConvertedEntry)
    assert (first.from_type, first.to_type, first.reason) == (
        "classic",
        "consumer",
        "a member joined",
    )
    assert isinstance(added, MemberAddedEntry)
    assert (added.member.member_id, added.protocol, added.generation) == ("m-1", "consumer", 7)
    assert isinstance(target, TargetAssignmentUpdatedEntry)
    assert target.moves == (PartitionMove("t", 1, "c-1", "m-1"),)
    running = world.history.index.running(G)
    assert running is not None
    assert (running.generation_before, running.members_before) == (7, 1)


def test_a_downgrade_ends_the_running_rebalance() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    at_ms = world.now.wall_ms
    converted = GroupConverted(G, at_ms, GroupType.CONSUMER, GroupType.CLASSIC, "the last one left")
    world.history.begin()
    world.history.record(
        world.group,
        (world.goes("m-2"), world.bumped(EpochCause.MEMBER_LEFT, "m-2"), converted),
        world.now,
    )
    world.history.end()
    *_, ended, entry = world.entries
    assert isinstance(ended, RebalanceEndedEntry)
    assert ended.rebalance.end is End.OVERTAKEN
    assert isinstance(entry, GroupConvertedEntry)
    assert (entry.to_type, entry.generation, entry.members) == ("classic", 4, 1)
    assert not any(isinstance(entry, GroupEmptiedEntry) for entry in world.entries)


def test_an_instance_that_is_in_use_is_named_with_its_member() -> None:
    world = ConsumerHistory()
    world.turn(
        world.created(),
        world.joins("m-1", instance_id="i"),
        world.bumped(EpochCause.MEMBER_JOINED, "m-1"),
    )
    world.advance(HEARTBEAT_MS)
    error = ErrorCode.UNRELEASED_INSTANCE_ID
    (fenced,) = world.turn(
        events.ConsumerMemberFenced(
            G, world.now.wall_ms, MemberId("m-2"), error, 0, None, GroupInstanceId("i")
        )
    )
    assert isinstance(fenced, MemberFencedEntry)
    assert (fenced.current_member_id, fenced.error) == ("m-1", "UNRELEASED_INSTANCE_ID")


def test_retries_of_an_assignor_and_of_a_client_are_limited() -> None:
    world = ConsumerHistory()
    world.given_stable()
    at_ms = world.now.wall_ms
    error = ErrorCode.UNRELEASED_INSTANCE_ID
    refused = events.TargetAssignmentRefused(G, at_ms, 2, "mine", "it raised")
    fenced = events.ConsumerMemberFenced(G, at_ms, MemberId("m-9"), error, 0, None)
    for _ in range(100):
        world.advance(100)
        world.turn(refused, fenced)
    times = [e.times for e in world.entries if isinstance(e, TargetAssignmentRefusedEntry)]
    assert times == [None, 2, 4, 8, 16, 32, 64]
    assert [e.times for e in world.entries if isinstance(e, MemberFencedEntry)] == times
