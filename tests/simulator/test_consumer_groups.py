"""Simulator of consumer groups: all promises of KIP-848 are kept, and planted bugs are found.

Worlds from their seeds, and those that failed once (consumer_seeds.txt). See consumer_checkers.py
for the promises. CONSUMER_WORLDS is the number of worlds.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from coordinator import shard
from coordinator.consumer import apply, decisions, records
from coordinator.consumer import group as group_module
from coordinator.consumer.commands import (
    ExpireConsumerSession,
    ExpireRebalanceTimeout,
    TargetAssignmentComputed,
)
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide import (
    advance,
    expire_member,
    find_member,
    leave_group,
    target_computed,
)
from coordinator.consumer.decide.find_member import FoundMember
from coordinator.consumer.decide.reconcile import Goal, reconcile_member
from coordinator.consumer.events import (
    ConsumerEvent,
    ConsumerMemberRemoved,
    CurrentAssignmentUpdated,
    EpochCause,
    GroupEpochBumped,
)
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import NOTHING_OWNED, CurrentAssignment
from coordinator.consumer.records import current_assignment_record, group_epoch_record
from coordinator.events import AnyEvent
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from history.causes import End
from history.entries import HistoryEntry, MembersRemovedEntry
from history.recording.consumer_turn_recorder import ConsumerTurnRecorder
from protocol.names import ErrorCode, GroupId, MemberId
from seams.now import Now
from storage.api import Record
from tests.simulator.consumer_checkers import ConsumerCheckers
from tests.simulator.consumer_clients import Consumer
from tests.simulator.consumer_run import STEPS, ConsumerRun, simulate_consumers
from tests.simulator.node import LateAssignments, Node
from tests.simulator.sim import Broken

WORLDS = int(os.environ.get("CONSUMER_WORLDS", "15"))
BUG_SEEDS = range(31)  # each bug shows in at least 1 of 6 worlds

Patch = pytest.MonkeyPatch


def seeds() -> Iterator[tuple[int, int]]:
    """(seed, steps)"""
    yield from ((seed, STEPS) for seed in range(WORLDS))
    for line in (Path(__file__).parent / "consumer_seeds.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            yield int(words[0]), int(words[1]) if len(words) > 1 else STEPS


@pytest.mark.parametrize(("seed", "steps"), list(seeds()))
def test_every_promise_to_consumer_groups_is_kept(seed: int, steps: int) -> None:
    simulate_consumers(seed, steps)


def test_the_same_seed_replays_the_same_consumer_events() -> None:
    first, second = simulate_consumers(7, 500), simulate_consumers(7, 500)
    assert first.sim.now_ms == second.sim.now_ms
    assert first.sim.steps == second.sim.steps
    assert first.checkers.answered_epochs == second.checkers.answered_epochs


def test_the_worlds_of_consumers_are_eventful(monkeypatch: Patch) -> None:
    """A checker that nobody gives anything to look at is always content."""
    seen: Counter[str] = Counter()
    happened = ConsumerCheckers.happened

    def count(self: ConsumerCheckers, node: Node, event: AnyEvent) -> None:
        seen[type(event).__name__] += 1
        if isinstance(event, CurrentAssignmentUpdated):
            seen[event.current.state.name] += 1
        happened(self, node, event)

    monkeypatch.setattr(ConsumerCheckers, "happened", count)
    runs = [simulate_consumers(seed) for seed in range(12)]
    assert sum(run.operator.incarnations - 1 for run in runs) >= 5
    assert sum(run.checkers.answers_with_assignment for run in runs) >= 300
    assert seen["GroupEpochBumped"] >= 200
    assert seen["UNREVOKED_PARTITIONS"] >= 50
    assert seen["UNRELEASED_PARTITIONS"] >= 50
    assert seen["OffsetsCommitted"] >= 200
    for rare in (
        "ConsumerMemberFenced",
        "ConsumerMemberRemoved",
        "ConsumerStaticMemberReplaced",
        "MetadataRefreshRequested",
        "RegularExpressionResolved",
        "RegularExpressionRemoved",
    ):
        assert seen[rare] >= 1, rare


# ---------------------------------------------------------------- planted bugs


def let_assignments_come_late(patch: Patch) -> None:
    """A world in which groups change while their target is made: in others they seldom do."""
    settings = ConsumerRun._settings

    def restless(self: ConsumerRun) -> GroupSettings:
        self.mischief = 0.3
        return replace(settings(self), assignor_inline_max=0)

    patch.setattr(ConsumerRun, "_settings", restless)
    patch.setattr(LateAssignments, "delay_ms", lambda self: self._node.sim.between(500, 3_000))


def a_partition_is_given_before_it_is_free(patch: Patch) -> None:
    """A member gets its target at once; who else owns it is not asked."""

    def reconcile(current: CurrentAssignment, goal: Goal) -> CurrentAssignment | None:
        return reconcile_member(current, replace(goal, owners={}))

    patch.setattr(advance, "reconcile_member", reconcile)


def a_silent_member_is_taken_to_have_revoked(patch: Patch) -> None:
    """A heartbeat that does not say what the member owns counts as "nothing"."""

    def reconcile(current: CurrentAssignment, goal: Goal) -> CurrentAssignment | None:
        return reconcile_member(current, replace(goal, reported=goal.reported or ()))

    patch.setattr(advance, "reconcile_member", reconcile)


def any_older_member_epoch_is_accepted(patch: Patch) -> None:
    """A heartbeat is judged by its member id alone."""

    def known(group: ConsumerGroupView, _request: object, member: object, _now: Now) -> FoundMember:
        return find_member._found(group, member)  # type: ignore[arg-type]

    patch.setattr(find_member, "_known", known)


def a_first_deadline_ends_the_session(patch: Patch) -> None:
    """A session's first deadline ends it, though the member was heard since."""
    decide = expire_member.decide_expire_consumer_session

    def expire(
        group: ConsumerGroupView | None,
        command: ExpireConsumerSession,
        now: Now,
        context: ConsumerContext,
    ) -> Outcome:
        return decide(group, command, now._replace(mono_ms=now.mono_ms + 60_000), context)

    patch.setattr(decisions, "decide_expire_consumer_session", expire)


def the_partitions_of_a_member_that_went_stay_unassigned(patch: Patch) -> None:
    """A member goes, and the group epoch stays: nobody computes a new target."""
    for module in (expire_member, leave_group):
        remove = module.remove_members

        def keep(
            *arguments: object, _remove: Callable[..., object] = remove
        ) -> list[ConsumerEvent]:
            happened = _remove(*arguments)
            return [e for e in happened if not isinstance(e, GroupEpochBumped)]  # type: ignore[attr-defined]

        patch.setattr(module, "remove_members", keep)


def what_is_to_be_revoked_is_not_stored(patch: Patch) -> None:
    """After a restart the partitions that a member still has to give back are free."""

    def record(group_id: GroupId, member_id: MemberId, current: CurrentAssignment) -> Record:
        stored = replace(current, pending_revocation=NOTHING_OWNED)
        return current_assignment_record(group_id, member_id, stored)

    patch.setattr(records, "current_assignment_record", record)
    begin = Consumer.begin

    def begin_slowly(self: Consumer) -> None:
        self.keeps = 0.7  # or a kill would hardly ever come while one gives back
        begin(self)

    patch.setattr(Consumer, "begin", begin_slowly)


def a_rebalance_timeout_of_an_older_epoch_is_honoured(patch: Patch) -> None:
    """The timer of a revocation that is over removes the member."""
    decide = expire_member.decide_expire_rebalance

    def expire(
        group: ConsumerGroupView | None,
        command: ExpireRebalanceTimeout,
        now: Now,
        context: ConsumerContext,
    ) -> Outcome:
        member = None if group is None else group.members.get(command.member_id)
        if member is not None:
            command = replace(command, member_epoch=member.current.member_epoch)
        return decide(group, command, now, context)

    patch.setattr(decisions, "decide_expire_rebalance", expire)
    watch = apply._watch_rebalance

    def keep(group: object, event: CurrentAssignmentUpdated, timers: object) -> None:
        if event.rebalance_deadline_ms is not None:
            watch(group, event, timers)  # type: ignore[arg-type]

    patch.setattr(apply, "_watch_rebalance", keep)


def new_partitions_are_not_noticed(patch: Patch) -> None:
    """A topic that is created or grows leaves the groups that subscribe to it as they are."""
    patch.setattr(shard, "decide_topics_changed", lambda _group, _topics: Outcome())


def any_member_may_commit(patch: Patch) -> None:
    """A member of a past epoch overwrites what the new owner has committed."""
    patch.setattr(
        group_module.ConsumerGroup,
        "validate_offset_commit",
        lambda *_arguments: ErrorCode.NONE,
    )


def the_group_epoch_of_a_restart_is_too_low(patch: Patch) -> None:
    """A restart gives an epoch out for the second time."""

    def record(group_id: GroupId, epoch: int, metadata_hash: int) -> Record:
        return group_epoch_record(group_id, epoch - 1, metadata_hash)

    patch.setattr(records, "group_epoch_record", record)


def a_stale_target_assignment_is_applied(patch: Patch) -> None:
    """What an assignor made for an older group epoch counts as the target of the present one."""
    patch.setattr(target_computed, "_waits_for", lambda _group, _command: True)
    decide = target_computed.decide_target_computed

    def apply_stale(
        group: ConsumerGroupView | None, command: TargetAssignmentComputed, now: Now
    ) -> Outcome:
        if group is not None:
            command = replace(command, group_epoch=group.epoch)
        return decide(group, command, now)

    patch.setattr(decisions, "decide_target_computed", apply_stale)
    let_assignments_come_late(patch)


def an_epoch_is_left_out_of_the_history(patch: Patch) -> None:
    """A group epoch that a topic caused is stored, and not told."""
    bumped = ConsumerTurnRecorder._epoch_bumped

    def silent(self: ConsumerTurnRecorder, event: GroupEpochBumped) -> Iterator[HistoryEntry]:
        if EpochCause.TOPICS_CHANGED in event.causes:
            list(bumped(self, event))
            return
        yield from bumped(self, event)

    patch.setattr(ConsumerTurnRecorder, "_epoch_bumped", silent)


def a_rebalance_has_no_end_in_the_history(patch: Patch) -> None:
    """The one that ends since the last member is gone."""
    end = ConsumerTurnRecorder._end

    def ended(self: ConsumerTurnRecorder, how: End, epoch: int) -> Iterator[HistoryEntry]:
        if how is not End.EMPTY:
            yield from end(self, how, epoch)

    patch.setattr(ConsumerTurnRecorder, "_end", ended)
    let_assignments_come_late(patch)
    add = ConsumerRun._add_consumer

    def alone(self: ConsumerRun, group_id: GroupId, **of_consumer: Any) -> None:
        if all(consumer.gone for consumer in self.consumers if consumer.group_id == group_id):
            add(self, group_id, **of_consumer)

    patch.setattr(ConsumerRun, "_add_consumer", alone)  # so the last one goes often


def the_history_names_another_member_than_the_removed(patch: Patch) -> None:
    """The first member of the group is told to have expired."""
    removed = ConsumerTurnRecorder._member_removed

    def confused(
        self: ConsumerTurnRecorder, event: ConsumerMemberRemoved
    ) -> Iterator[HistoryEntry]:
        assert self._turn.group is not None
        first = self._turn.identity(next(iter(self._turn.group.members)))
        for entry in removed(self, event):
            if isinstance(entry, MembersRemovedEntry):
                named = tuple(gone._replace(member=first) for gone in entry.members)
                entry = replace(entry, members=named)
            yield entry

    patch.setattr(ConsumerTurnRecorder, "_member_removed", confused)


@pytest.mark.pure
@pytest.mark.parametrize(
    "plant",
    [
        a_partition_is_given_before_it_is_free,
        a_silent_member_is_taken_to_have_revoked,
        any_older_member_epoch_is_accepted,
        a_first_deadline_ends_the_session,
        the_partitions_of_a_member_that_went_stay_unassigned,
        what_is_to_be_revoked_is_not_stored,
        a_rebalance_timeout_of_an_older_epoch_is_honoured,
        new_partitions_are_not_noticed,
        any_member_may_commit,
        the_group_epoch_of_a_restart_is_too_low,
        a_stale_target_assignment_is_applied,
        an_epoch_is_left_out_of_the_history,
        a_rebalance_has_no_end_in_the_history,
        the_history_names_another_member_than_the_removed,
    ],
)
def test_a_planted_bug_of_consumer_groups_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    for seed in BUG_SEEDS:
        try:
            simulate_consumers(seed)
        except (Exception, Broken) as found:  # whatever the bug breaks first
            print(f"{plant.__name__}: seed {seed}: {found}")
            return
    pytest.fail(f"{plant.__name__} was not noticed in {len(BUG_SEEDS)} seeds")
