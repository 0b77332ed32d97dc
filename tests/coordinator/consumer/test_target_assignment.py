"""Target assignments: when one is made, by which assignor, in the turn or outside of it."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment, AssignorFailed, AssignorInput
from coordinator.consumer.assignors.uniform import UniformAssignor
from coordinator.consumer.records import target_records
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.names import ErrorCode, GroupId, GroupState, MemberId
from seams.now import Now
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.coordinator.migration.conftest import assigned, given_classic_group
from tests.world import World, kafka_settings

T = TypeVar("T")


class Fails:
    """An assignor that refuses while `fails` is true."""

    name = "uniform"
    fails = True

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        if self.fails:
            raise AssignorFailed("it is broken")
        return UniformAssignor().assign(given)


class Spy:
    """The uniform assignor; it keeps what it was given."""

    name = "uniform"

    def __init__(self) -> None:
        self.given: list[AssignorInput] = []

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        self.given.append(given)
        return UniformAssignor().assign(given)


class LaterRunner:
    """Runs an assignment when the test says so."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.waiting: deque[Callable[[], None]] = deque()

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception, Now], None]) -> None:
        def run() -> None:
            result: T | Exception
            try:
                result = work()
            except Exception as error:
                result = error
            done(result, self._world.now)
            self._world.step()

        self.waiting.append(run)

    def run(self) -> None:
        self.waiting.popleft()()


@pytest.fixture
def world() -> World:
    return world_with()


def world_with(**settings: object) -> World:
    world = World(kafka_settings(**settings))
    world.given_topics(t=4)
    return world


def offloading(**settings: object) -> tuple[World, LaterRunner]:
    """All assignments are made outside of turns."""
    world = world_with(assignor_inline_max=0, group_consumer_assignment_interval_ms=0, **settings)
    runner = world.assignment_runner = LaterRunner(world)
    world.start(world.logs)
    return world, runner


def targets(world: World) -> list[events.TargetAssignmentUpdated]:
    return world.events_of(events.TargetAssignmentUpdated)


# ---------------------------------------------------------------- when


def test_members_that_join_together_are_assigned_together(world: World) -> None:
    clients = [ConsumerClient(world, name) for name in "abcd"]
    for client in clients:
        client.join()
        world.advance(300)
    assert len(targets(world)) == 1
    world.advance(100)
    clients[0].beat()
    assert [event.assignment_epoch for event in targets(world)] == [2, 5]


def test_an_interval_of_zero_assigns_with_every_epoch() -> None:
    world = world_with(group_consumer_assignment_interval_ms=0)
    for name in "abc":
        ConsumerClient(world, name).join()
    assert [event.assignment_epoch for event in targets(world)] == [2, 3, 4]


def test_a_clock_that_was_set_back_does_not_stop_assignments(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    world.now = Now(world.now.mono_ms, world.now.wall_ms - 3_600_000)
    ConsumerClient(world, "b").join()
    assert len(targets(world)) == 2


def test_only_what_changes_is_stored() -> None:
    world = world_with(group_consumer_assignment_interval_ms=0)
    world.given_topics(t=2)
    for name in "abc":
        ConsumerClient(world, name).join()
    assert [sorted(event.changed) for event in targets(world)] == [["a"], ["a", "b"], ["c"]]
    assert targets(world)[-1].changed == {"c": {}}


# ---------------------------------------------------------------- by which assignor


def test_the_first_assignor_is_the_default(world: World) -> None:
    ConsumerClient(world, "a").join()
    assert targets(world)[-1].assignor == "uniform"


def test_the_assignor_with_most_votes_is_taken() -> None:
    world = world_with(group_consumer_assignment_interval_ms=0)
    chosen = []
    for name, wanted in (("a", "range"), ("b", "uniform"), ("c", "range"), ("d", None)):
        ConsumerClient(world, name, assignor=wanted).join()
        chosen.append(targets(world)[-1].assignor)
    assert chosen == ["range", "uniform", "range", "range"]


def test_a_member_changes_its_assignor(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    epoch = world.consumer_group().epoch
    assert world.heartbeat_consumer("g", "a", a.epoch, assignor="range").error is ErrorCode.NONE
    group = world.consumer_group()
    assert group.members[MemberId("a")].metadata.server_assignor == "range"
    assert group.epoch == epoch  # as in Kafka: the next assignment is made by it


# ---------------------------------------------------------------- that fails


def test_a_failed_assignment_changes_nothing_and_is_tried_again(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    assignor = Fails()
    world.assignors["uniform"] = assignor
    world.advance(1_000)
    stored = len(world.log.batches)
    answer = world.heartbeat_consumer("g", "b").beaten

    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_message is None
    assert len(world.log.batches) == stored
    assert list(world.consumer_group().members) == ["a"]
    [refused] = world.events_of(events.TargetAssignmentRefused)
    assert (refused.assignor, refused.reason) == ("uniform", "it is broken")

    assignor.fails = False
    b = ConsumerClient(world, "b")
    b.join()
    until_stable(a, b)
    assert partitions_of(a, b) == [0, 1, 2, 3]


def test_a_failed_first_assignment_leaves_no_group(world: World) -> None:
    world.assignors["uniform"] = Fails()
    with pytest.raises(AssignorFailed):  # the broker logs it
        world.heartbeat_consumer("g", "a")
    [token] = world.tokens
    [answer] = token.answers
    assert getattr(answer, "error_code", None) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not world.has_group()


# ---------------------------------------------------------------- outside of the turn


def test_a_large_assignment_is_made_later() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    answer = a.join()

    assert answer.error_code is ErrorCode.NONE
    assert (answer.member_epoch, a.owned) == (1, {})
    group = world.consumer_group()
    assert (group.state, group.computing_epoch) == (GroupState.ASSIGNING, 2)
    a.beat()
    assert len(runner.waiting) == 1  # it is not asked for twice
    runner.run()
    assert (group.assignment_epoch, group.computing_epoch) == (2, None)
    assert a.beat().member_epoch == 2
    assert partitions_of(a) == [0, 1, 2, 3]


def test_a_small_one_is_made_at_once() -> None:
    world = world_with(assignor_inline_max=4)
    runner = world.assignment_runner = LaterRunner(world)
    world.start(world.logs)
    a = ConsumerClient(world, "a")
    a.join()
    assert not runner.waiting
    world.advance(1_000)
    ConsumerClient(world, "b").join()  # two members and four partitions
    assert len(runner.waiting) == 1


def test_large_ones_may_be_made_at_once() -> None:
    world, runner = offloading(group_consumer_assignor_offload_enable=False)
    a = ConsumerClient(world, "a")
    a.join()
    assert not runner.waiting
    assert partitions_of(a) == [0, 1, 2, 3]


def test_members_that_join_meanwhile_are_in_the_next_one() -> None:
    world, runner = offloading()
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    runner.run()
    group = world.consumer_group()
    assert (group.epoch, group.assignment_epoch) == (3, 2)
    assert set(group.targets) == {"a"}
    a.beat()
    runner.run()
    assert (group.epoch, group.assignment_epoch) == (3, 3)
    until_stable(a, b)
    assert partitions_of(a, b) == [0, 1, 2, 3]


def test_members_that_leave_meanwhile_get_no_target() -> None:
    world, runner = offloading()
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    runner.run()
    b.join()
    b.leave()
    runner.run()
    assert set(world.consumer_group().targets) == {"a"}
    a.beat()
    runner.run()
    until_stable(a)
    assert partitions_of(a) == [0, 1, 2, 3]


def test_a_result_of_before_a_restart_is_dropped() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    a.join()
    world.crash()
    stored = len(world.log.batches)
    runner.run()
    assert len(world.log.batches) == stored
    assert world.consumer_group().computing_epoch is None
    a.beat()
    runner.run()
    until_stable(a)
    assert partitions_of(a) == [0, 1, 2, 3]


def test_a_result_for_a_group_that_is_gone_is_dropped() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    a.join()
    a.leave()
    world.coordinator.resign(0, world.now)
    runner.run()
    assert not targets(world)


def test_a_result_for_an_older_group_of_the_same_name_is_dropped() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    a.join()
    a.leave()
    deleted = world.ask(DeleteGroupsRequest([GroupId("g")]), version=2).response
    assert isinstance(deleted, DeleteGroupsResponse)
    assert deleted.results[0].error_code is ErrorCode.NONE
    world.advance(1)
    b = ConsumerClient(world, "b")
    b.join()
    group = world.consumer_group()
    assert group.computing_epoch == 2
    runner.run()
    assert group.computing_epoch == 2
    runner.run()
    b.beat()
    assert partitions_of(b) == [0, 1, 2, 3]


def test_a_result_of_another_past_is_dropped_after_a_restart() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    a.join()
    runner.run()
    a.beat()
    world.storing = False
    world.heartbeat_consumer(member_id="lost")
    world.storing = True
    world.crash()
    world.advance(1)
    b = ConsumerClient(world, "b")
    b.join()
    assert world.consumer_group().computing_epoch == 3  # as that which was lost
    runner.run()
    runner.run()
    until_stable(a, b)
    assert len(partitions_of(b)) == 2
    assert partitions_of(a, b) == [0, 1, 2, 3]


def given_static_member_and(
    world: World, runner: LaterRunner, name: str
) -> tuple[ConsumerClient, ConsumerClient]:
    """Of instance id "i"; and one that has joined, for which a target is in the making."""
    static, other = ConsumerClient(world, "old", instance_id="i"), ConsumerClient(world, name)
    static.join()
    runner.run()
    static.beat()
    other.join()
    return static, other


def test_who_replaces_a_static_member_meanwhile_gets_what_was_meant_for_it() -> None:
    world, runner = offloading()
    old, b = given_static_member_and(world, runner, "b")
    old.leave(for_a_while=True)
    new = ConsumerClient(world, "new", instance_id="i")
    new.join()
    runner.run()
    group = world.consumer_group()
    assert (group.epoch, group.assignment_epoch) == (3, 3)
    assert set(group.targets) == {"b", "new"}
    until_stable(new, b)
    assert len(partitions_of(new)) == 2
    assert partitions_of(new, b) == [0, 1, 2, 3]


def test_who_takes_over_a_static_member_does_not_get_what_was_meant_for_itself() -> None:
    """Neither in memory nor in the log, where the records come from the thread."""
    world, runner = offloading()
    old, b = given_static_member_and(world, runner, "b")
    b.leave()
    old.leave(for_a_while=True)
    again = ConsumerClient(world, "b", instance_id="i")
    again.join()
    runner.run()
    targets_before = dict(world.consumer_group().targets)
    assert set(targets_before) == {"b"}
    world.crash()
    assert world.consumer_group().targets == targets_before
    again.beat()
    runner.run()
    until_stable(again)
    assert partitions_of(again) == [0, 1, 2, 3]


@pytest.mark.parametrize("leaves", [False, True])
def test_the_records_that_a_thread_made_are_those_of_what_happened(leaves: bool) -> None:
    world, runner = offloading()
    a, b, c = (ConsumerClient(world, name) for name in "abc")
    a.join()
    runner.run()
    a.beat()
    b.join()
    c.join()
    if leaves:
        a.leave()
    runner.run()
    *_, updated = targets(world)
    written = [(record.key, record.value) for record in world.log.batches[-1]]
    assert written == target_records(updated, {})
    assert set(updated.changed) == ({"b"} if leaves else {"a", "b"})


def test_the_members_of_a_converted_group_get_their_assignment() -> None:
    world, runner = offloading()
    given_classic_group(world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3]))
    ConsumerClient(world, "a").join()
    assert world.consumer_group().computing_epoch == 2
    runner.run()
    assert world.consumer_group().assignment_epoch == 2
    assert len(world.consumer_group().targets) == 3


def test_a_failure_outside_is_tried_again_with_the_next_heartbeat() -> None:
    world, runner = offloading()
    assignor = Fails()
    world.assignors["uniform"] = assignor
    a = ConsumerClient(world, "a")
    a.join()
    runner.run()
    [refused] = world.events_of(events.TargetAssignmentRefused)
    assert (refused.group_epoch, refused.reason) == (2, "it is broken")
    assignor.fails = False
    assert a.beat().error_code is ErrorCode.NONE
    runner.run()
    a.beat()
    assert partitions_of(a) == [0, 1, 2, 3]


def test_a_result_waits_for_room_in_the_log() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    a.join()
    world.log.full = True
    runner.run()
    assert not targets(world)
    world.log.full = False
    a.beat()
    runner.run()
    a.beat()
    assert partitions_of(a) == [0, 1, 2, 3]


def test_a_member_that_takes_over_a_static_one_leaves_no_topics_behind() -> None:
    """The assignor is given what the members subscribe to, and nothing else."""
    world = world_with(group_consumer_assignment_interval_ms=0)
    world.given_topics(t=4, u=4, v=4)
    spy = world.assignors["uniform"] = Spy()
    static = ConsumerClient(world, "a", topics=("t",), instance_id="i")
    static.join()
    ConsumerClient(world, "b", topics=("u",)).join()
    static.leave(for_a_while=True)
    ConsumerClient(world, "b", topics=("v",), instance_id="i").join()
    last = spy.given[-1]
    assert set(last.topics) == {
        of for member in last.members.values() for of in member.subscribed_topic_ids
    }
    assert len(last.topics) == 1


def test_what_an_assignor_does_not_name_is_assigned_nothing() -> None:
    world, runner = offloading()
    a = ConsumerClient(world, "a")
    a.join()
    runner.run()
    a.beat()

    class Nobody:
        name = "uniform"

        def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
            return {}

    world.assignors["uniform"] = Nobody()
    ConsumerClient(world, "b").join()
    runner.run()
    assert world.consumer_group().targets == {"a": {}, "b": {}}
