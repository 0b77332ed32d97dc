"""Attribution: which client joined, replaced another, expired with others, or deleted a topic."""

from coordinator.member_identity import MemberIdentity
from coordinator.settings import GroupSettings
from history.causes import Cause, OffsetsBy
from history.entries import (
    MembersRemovedEntry,
    OffsetsMovedEntry,
    Rebalance,
    StaticMemberReplacedEntry,
)
from history.entry_values import (
    RequestClient,
    TopicPartitionCounts,
)
from history.text.rebalance_text import format_rebalance
from history.verdicts.recent_activity import RecentActivity
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.names import GroupId, TopicName
from tests.history.history_world import HistoryWorld, assignment, offers
from tests.history.recording.test_causes import SESSION_MS, finish

HOST = "/127.0.0.1"


def come(world: HistoryWorld, client_id: str) -> StaticMemberReplacedEntry:
    """Another process joins with the instance id b."""
    world.join("g", instance_id="b", protocols=offers("t"), client_id=client_id)
    (fact,) = [
        entry for entry in world.history[-1:] if isinstance(entry, StaticMemberReplacedEntry)
    ]
    return fact


def test_two_processes_with_one_instance_id_are_both_named(world: HistoryWorld) -> None:
    ids = world.consumers(2, instances=["a", "b"])
    first = come(world, "right")
    second = come(world, "left")
    assert first.replaced == MemberIdentity(ids[1], "b", "client", HOST)
    assert (first.member.client_id, second.member.client_id) == ("right", "left")
    assert second.replaced == first.member
    assert (world.last.trigger, world.last.replaced) == (second.member, first.member)
    assert (
        "left (b) at 127.0.0.1 took the place of right (b) at 127.0.0.1"
        in format_rebalance(world.last)[1]
    )
    # Kafka's answer keeps the first one's name.
    asked = world.ask(DescribeGroupsRequest([GroupId("g")]), version=5)
    (described,) = asked.token.answers[-1].groups  # type: ignore[attr-defined]
    assert {member.client_id for member in described.members} == {"client"}


def test_after_a_restart_it_is_still_known_who_came_last(world: HistoryWorld) -> None:
    world.consumers(2, instances=["a", "b"])
    first = come(world, "right")
    world.crash()
    assert come(world, "left").replaced == first.member


def test_a_member_that_goes_later_is_named_as_the_one_that_came(world: HistoryWorld) -> None:
    world.consumers(2, instances=["a", "b"])
    came = come(world, "right")
    world.leave("g", (came.member.member_id, "b"))
    gone = [entry for entry in world.history if isinstance(entry, MembersRemovedEntry)]
    assert gone[-1].members[0].member == came.member


def test_one_with_another_protocol_begins_a_rebalance_that_names_both(world: HistoryWorld) -> None:
    both = [*offers("t"), ("roundrobin", offers("t")[0][1])]
    answers = world.given_joined(
        members=2, instances=["a", "b"], protocols=both, rebalance_timeout_ms=30_000
    )
    world.assign(answers)
    other = [("roundrobin", offers("t")[0][1])]
    world.join("g", instance_id="b", protocols=other, client_id="right")
    last = world.last
    assert last.cause is Cause.STATIC_MEMBER_REPLACED
    assert last.trigger is not None
    assert last.replaced is not None
    assert (last.trigger.client_id, last.replaced.client_id) == ("right", "client")


def test_what_a_static_member_had_was_read_by_nobody_while_it_was_away(world: HistoryWorld) -> None:
    world.consumers(2, instances=["a", "b"])
    world.advance(6_000)
    fact = come(world, "right")
    assert (fact.silent_ms, fact.partitions) == (6_000, 2)
    assert world.last.unowned_partition_seconds == 12.0
    assert world.last.duration_ms == 0


def test_records_from_before_say_what_they_said(world: HistoryWorld) -> None:
    world.consumers(2, instances=["a", "b"])
    old = StaticMemberReplacedEntry(
        "g", 5, MemberIdentity("b-2", "b", "client", HOST), "b-1", 1, 2, without_rebalance=True
    )
    world.recorded._add([old])
    world.recorded.index.apply(old)
    assert (world.last.replaced, world.last.unowned_partition_seconds) == (None, 0.0)
    assert (
        "another process came as the static member client (b)"
        in format_rebalance(world.last)[1].lower()
    )


def test_a_verdict_on_flapping_names_both_processes(world: HistoryWorld) -> None:
    past = RecentActivity()
    world.consumers(2, instances=["a", "b"])
    for turn in range(8):
        world.advance(500)
        come(world, ("right", "left")[turn % 2])
    for fact in world.history:
        past.apply(fact, 600_000)
    (returns,) = past.returns.values()
    names = {
        (rejoin.member.client_id, rejoin.replaced and rejoin.replaced.client_id)
        for rejoin in returns
    }
    assert {("right", "left"), ("left", "right")} <= names


# ---------------------------------------------------------------- together


def test_all_members_that_expired_together_are_named() -> None:
    world = HistoryWorld(GroupSettings(offsets_topic_num_partitions=1))
    ids = world.consumers(4)
    world.advance(SESSION_MS - 1)
    world.heartbeat(world.group(), ids[0])
    world.advance(SESSION_MS - 1)  # three have lapsed, and nobody was told
    world.newcomer("fifth")
    last = world.last
    assert last.cause is Cause.SESSION_EXPIRED
    assert last.trigger is not None
    named = {last.trigger.member_id, *(member.member_id for member in last.with_trigger)}
    assert named == set(ids[1:])
    assert last.silent_ms is not None
    assert last.silent_ms >= SESSION_MS
    assert last.session_timeout_ms == SESSION_MS
    line = format_rebalance(last)[1]
    assert all(member_id in line for member_id in ids[1:]), line


def test_all_that_were_dropped_at_the_timeout_are_named(world: HistoryWorld) -> None:
    ids = world.consumers(3)
    world.newcomer("fourth")
    world.rejoin(ids[0])
    for _ in range(5):
        world.advance(6_000)
        for member_id in ids[1:]:
            world.heartbeat(world.group(), member_id)
    last = world.last
    assert last.cause is Cause.REBALANCE_TIMEOUT
    assert last.trigger is not None
    assert {last.trigger.member_id, *(member.member_id for member in last.with_trigger)} == set(
        ids[1:]
    )


# ---------------------------------------------------------------- topics


def test_deleted_offsets_are_recorded_with_the_client_that_deleted_the_topic(
    world: HistoryWorld,
) -> None:
    world.commit("g", offsets={0: 10})
    topic = TopicName("t")
    topic_id = world.topics.topic_id(topic)
    assert topic_id is not None
    del world.topics.counts[topic]
    world.coordinator.topics_deleted([(topic, topic_id)], world.now, "an-admin", "/10.0.0.9")
    world.advance(1)
    last = [entry for entry in world.history if isinstance(entry, OffsetsMovedEntry)][-1]
    assert (last.by, last.client) == (
        OffsetsBy.TOPIC_DELETION,
        RequestClient("an-admin", "/10.0.0.9"),
    )


def grown(world: HistoryWorld, before: int, now: int) -> None:
    world.advance(5)
    world.recorded.recorder.topics_changed([TopicPartitionCounts("t", before, now)], world.now)
    world.coordinator.partitions_changed({TopicName("t")}, world.now)


def test_new_partitions_that_a_leader_hands_out_late_are_the_cause_of_that_rebalance() -> None:
    """The coordinator begins a rebalance, and the leader's metadata is too old to show them."""
    world = HistoryWorld(
        GroupSettings(offsets_topic_num_partitions=1, rebalance_on_partition_change=True)
    )
    ids = world.consumers(2)
    grown(world, 2, 8)  # history_world.py's leader assigns four
    world.advance(world.settings.partition_change_delay_ms)
    finish(world, *ids)
    assert world.last.cause is Cause.PARTITIONS_CHANGED
    world.advance(5_000)
    world.rejoin(ids[0], reason="cached metadata has changed")
    assert world.last.cause is Cause.PARTITIONS_CHANGED
    assert world.last.topics == (TopicPartitionCounts("t", 2, 8),)
    assert "t: 2 -> 8" in format_rebalance(world.last)[1]


def test_once_they_are_handed_out_a_leader_rejoins_for_its_own_reasons() -> None:
    world = HistoryWorld(
        GroupSettings(offsets_topic_num_partitions=1, rebalance_on_partition_change=True)
    )
    ids = world.consumers(2)
    grown(world, 2, 4)
    world.advance(world.settings.partition_change_delay_ms)
    finish(world, *ids)
    world.rejoin(ids[0], reason="enforced by its user")
    assert world.last.cause is Cause.LEADER_REJOINED


# ---------------------------------------------------------------- cooperative rebalances


def second_step(world: HistoryWorld, giver: int, reason: str | None = None) -> Rebalance:
    """A third member joins; one member gives up a partition and rejoins for that."""
    ids = world.consumers(2)
    world.newcomer("third", protocols=offers("t"))
    for member_id, owned in zip(ids, ([0, 2], [1, 3]), strict=True):
        world.rejoin(member_id, protocols=offers("t", owned=owned))
    group = world.group()
    third = next(member_id for member_id in group.members if member_id not in ids)
    kept = [[0, 2], [1, 3]]
    kept[giver] = kept[giver][:1]
    shares = {ids[0]: assignment(t=kept[0]), ids[1]: assignment(t=kept[1]), third: b""}
    for member_id in (ids[1], third, ids[0]):
        given = shares if member_id == group.leader_id else None
        world.sync("g", member_id, group.generation_id, assignments=given)
    world.rejoin(ids[giver], protocols=offers("t", owned=kept[giver]), reason=reason)
    return world.last


def test_the_second_step_of_a_cooperative_rebalance_by_the_leader(world: HistoryWorld) -> None:
    last = second_step(world, giver=0)
    assert last.cause is Cause.SUBSCRIPTION_CHANGED
    assert "second step of a cooperative rebalance" in last.note


def test_the_second_step_of_a_cooperative_rebalance_by_another(world: HistoryWorld) -> None:
    last = second_step(world, giver=1)
    assert last.cause is Cause.SUBSCRIPTION_CHANGED
    assert "second step of a cooperative rebalance" in last.note


# ---------------------------------------------------------------- after a restart


def test_a_streams_follow_up_rebalance_soon_after_a_restart_is_its_own(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.crash()
    world.advance(300)
    reason = "triggered followup rebalance scheduled for 1795345263061"
    world.rejoin(ids[0], reason=reason)
    assert world.last.cause is Cause.LEADER_REJOINED
    assert world.last.client_reason == reason
    said = "triggered followup rebalance scheduled for 2026-11-22T11:01:03.061Z"
    assert any(said in line for line in format_rebalance(world.last))


def test_a_member_that_may_have_polled_too_rarely(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    for _ in range(5):
        world.advance(6_000)
        for member_id in ids:
            world.heartbeat(world.group(), member_id)
    world.leave("g", ids[1])
    assert world.last.cause is Cause.MEMBER_LEFT
    assert "max.poll.interval.ms (30 s)" in world.last.note


def test_one_that_joined_a_moment_ago_has_not(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.leave("g", ids[1])
    assert world.last.note == ""
