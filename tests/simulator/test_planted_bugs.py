"""Planted bugs: each bug planted into the real code must be found by the simulator.

Every one is a mistake that this kind of code invites. The number of seeds that it takes is the
measure of the checkers and of the weather: it is bounded here, so that neither gets worse unseen.
"""

from collections.abc import Callable, Iterable, Iterator

import pytest
from msgspec.structs import replace

from coordinator import shard
from coordinator.classic import decisions
from coordinator.classic.commands import EndSyncPhase, ExpireSession
from coordinator.classic.decide import assignment_stored
from coordinator.classic.decide.end_sync_phase import decide_end_sync_phase
from coordinator.classic.decide.expire_session import decide_expire_session
from coordinator.classic.decide.heartbeat import judge_heartbeat
from coordinator.classic.delayed import DelayedSync
from coordinator.classic.group import ClassicGroup
from coordinator.classic.group_view import ClassicGroupView
from coordinator.outcome import Outcome
from coordinator.pending_answers import Answer, PendingAnswers
from coordinator.settings import GroupSettings
from history.causes import End
from history.entries import HistoryEntry, MemberFencedEntry
from history.recording.rebalance_tracker import RebalanceTracker, RunningRebalance
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.names import ErrorCode, GenerationId, GroupId, GroupInstanceId, MemberId
from seams.now import Now
from storage import snapshot
from storage.api import Position
from storage.disk import Disk
from storage.journal import journal
from storage.journal.flush import Queue
from storage.journal.journaled_log import Entry
from storage.journal.write_ahead import WriteAhead
from storage.log import log_loader
from storage.log.segment_swap import SWAP_SUFFIX
from storage.snapshot import SnapshotHeader
from tests.simulator.node import Node
from tests.simulator.run import simulate
from tests.simulator.sim import Broken

SEEDS = range(40)

Patch = pytest.MonkeyPatch
Blobs = Iterable[tuple[str, bytes]]


def reply_before_the_fsync(patch: Patch) -> None:
    """Answers do not wait for the log position that they depend on."""

    def add(self: PendingAnswers, position: Position, answer: Answer) -> None:
        answer.send()

    patch.setattr(PendingAnswers, "add", add)


def an_old_timer_is_not_cancelled(patch: Patch) -> None:
    """A session's first deadline ends it, though the member has beaten since."""
    decide = decide_expire_session

    def expire(
        group: ClassicGroupView | None, command: ExpireSession, now: Now, settings: GroupSettings
    ) -> Outcome:
        later = now if group is None else now._replace(mono_ms=now.mono_ms + 60_000)
        return decide(group, command, later, settings)

    patch.setattr(decisions, "decide_expire_session", expire)


def an_older_generation_is_accepted(patch: Patch) -> None:
    """A heartbeat is judged by its member id alone."""
    judge = judge_heartbeat

    def forgiving(group: ClassicGroupView | None, request: HeartbeatRequest) -> ErrorCode:
        error_code = judge(group, request)
        return ErrorCode.NONE if error_code is ErrorCode.ILLEGAL_GENERATION else error_code

    patch.setattr(shard, "judge_heartbeat", forgiving)


def an_older_generation_may_commit(patch: Patch) -> None:
    """A member of a past generation overwrites what the present one has committed."""
    validate = ClassicGroup.validate_offset_commit

    def forgiving(
        group: ClassicGroup,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
        api_version: int,
    ) -> ErrorCode:
        error_code = validate(group, member_id, group_instance_id, generation_id, api_version)
        return ErrorCode.NONE if error_code is ErrorCode.ILLEGAL_GENERATION else error_code

    patch.setattr(ClassicGroup, "validate_offset_commit", forgiving)


def the_check_after_the_store_is_skipped(patch: Patch) -> None:
    """The assignment takes effect though a rebalance has begun while it was being stored."""
    patch.setattr(assignment_stored, "_still_wanted", lambda group, generation_id: True)


def a_timer_of_an_older_generation_is_honoured(patch: Patch) -> None:
    """The wait for the syncs of one generation puts members of the next one out."""
    patch.setattr(
        DelayedSync, "slot", property(lambda op: ("sync", op.group.group_id, op.generation_id))
    )
    patch.setattr(DelayedSync, "try_complete", lambda op: None)
    decide = decide_end_sync_phase

    def end(group: ClassicGroupView | None, command: EndSyncPhase, now: Now) -> Outcome:
        if group is not None:
            command = replace(command, generation_id=group.generation_id)
        return decide(group, command, now)

    patch.setattr(decisions, "decide_end_sync_phase", end)


def recovery_drops_the_last_group(patch: Patch) -> None:
    """What the last flush before a crash wrote is not read back."""
    groups = WriteAhead.groups

    def all_but_the_last(self: WriteAhead) -> Iterator[tuple[int, bytes]]:
        yield from list(groups(self))[:-1]

    patch.setattr(WriteAhead, "groups", all_but_the_last)


def a_snapshot_claims_a_record_that_it_lacks(patch: Patch) -> None:
    """The log is read from one record too far on."""
    write = snapshot.write_snapshot

    def claiming(disk: Disk, folder: str, about: SnapshotHeader, blobs: Blobs) -> int:
        return write(disk, folder, replace(about, position=about.position + 1), blobs)

    patch.setattr(snapshot, "write_snapshot", claiming)


def a_swap_that_was_cut_off_is_not_completed(patch: Patch) -> None:
    """What was cleaned is thrown away, though its sources are marked as deleted."""

    def forget(disk: Disk, folder: str, listed: Iterable[str]) -> set[str]:
        names = set(listed)
        for name in [name for name in names if name.endswith(SWAP_SUFFIX)]:
            disk.remove(f"{folder}/{name}")
            names.discard(name)
        return names

    patch.setattr(log_loader, "complete_swaps", forget)


def the_history_is_separated_from_its_records(patch: Patch) -> None:
    """What a turn appends is queued piece by piece, and a flush takes one piece."""

    def take(queue: Queue, _most: int) -> list[Entry]:
        taken = queue.popleft()
        if not isinstance(taken, list):
            return [taken]
        queue.extendleft(reversed(taken[1:]))
        return taken[:1]

    patch.setattr(journal, "take", take)
    start = Node.start

    def start_slowly(self: Node) -> None:
        start(self)
        self.flush_ms = 150.0  # or a kill would hardly ever come between two pieces

    patch.setattr(Node, "start", start_slowly)


def a_rebalance_is_forgotten_by_its_history(patch: Patch) -> None:
    """One that was overtaken is not told to be over."""
    end = RebalanceTracker._end

    def forget(
        self: RebalanceTracker, group_id: GroupId, running: RunningRebalance, how: End, now: Now
    ) -> HistoryEntry:
        ended = end(self, group_id, running, how, now)
        if how is not End.OVERTAKEN:
            return ended
        return MemberFencedEntry(group_id, now.wall_ms)

    patch.setattr(RebalanceTracker, "_end", forget)


@pytest.mark.pure
@pytest.mark.parametrize(
    "plant",
    [
        reply_before_the_fsync,
        an_old_timer_is_not_cancelled,
        an_older_generation_is_accepted,
        an_older_generation_may_commit,
        the_check_after_the_store_is_skipped,
        a_timer_of_an_older_generation_is_honoured,
        recovery_drops_the_last_group,
        a_snapshot_claims_a_record_that_it_lacks,
        a_swap_that_was_cut_off_is_not_completed,
        the_history_is_separated_from_its_records,
        a_rebalance_is_forgotten_by_its_history,
    ],
)
def test_a_planted_bug_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    for seed in SEEDS:
        try:
            simulate(seed)
        except (Exception, Broken) as found:  # whatever the bug breaks first
            print(f"{plant.__name__}: seed {seed}: {found}")
            return
    pytest.fail(f"{plant.__name__} was not noticed in {len(SEEDS)} seeds")
