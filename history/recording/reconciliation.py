"""Reconciliation: the running rebalance of each consumer group, from its first epoch to its end.

Follows whom a rebalance waits for, which partitions have no owner, and which members have reached
the target assignment. history/story.py folds the rest from the entries. Instants here are
monotonic, so that a wall clock that is set back makes no duration wrong.
"""

from typing import NamedTuple

from msgspec.structs import replace

from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.member_identity import MemberIdentity
from history.causes import End, WaitEnd
from history.entries import Rebalance, RebalanceEndedEntry
from history.entry_values import JoinedMember, MemberWait, PartitionMove
from history.index import HistoryIndex
from history.recording.consumer_turn import not_reconciled
from history.recording.record_limits import RecordLimits
from history.recording.released_partitions import Released, ReleasedPartitions
from history.story import MOVES_MAX, end_rebalance
from protocol.names import GroupId, MemberId, TopicId
from seams.now import Now


class Asked(NamedTuple):
    """A member that is to give partitions back."""

    since_ms: int
    partitions: int


class Reconciliation:
    """What is known of one running rebalance besides its story. Monotonic ms."""

    __slots__ = (
        "asked",
        "began_ms",
        "moved",
        "moves",
        "reached",
        "released",
        "unowned_ms",
        "unreconciled",
        "waits",
    )

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.asked: dict[MemberId, Asked] = {}
        self.waits: dict[MemberId, MemberWait] = {}  # of all that were asked, the last of each
        self.unreconciled: set[MemberId] = set()
        self.reached: dict[MemberId, JoinedMember] = {}
        self.released = ReleasedPartitions()
        self.moved = 0
        self.moves: list[PartitionMove] = []
        self.unowned_ms = 0  # of partitions that have an owner again

    def ask(self, member: MemberIdentity, partitions: int, now: Now) -> None:
        self.asked[member.member_id] = Asked(now.mono_ms, partitions)
        earlier = self.waits.pop(member.member_id, None)
        waited_ms = None if earlier is None else earlier.waited_ms
        total = partitions + ((earlier and earlier.partitions) or 0)
        self.waits[member.member_id] = MemberWait(
            member, None, WaitEnd.WAITING, now.wall_ms, waited_ms, total
        )

    def answer(self, member_id: MemberId, end: WaitEnd, now: Now) -> Asked | None:
        """It gave its partitions back, or is gone with them. None: it was not asked."""
        asked = self.asked.pop(member_id, None)
        wait = self.waits.get(member_id)
        if asked is not None and wait is not None:
            waited_ms = (wait.waited_ms or 0) + now.mono_ms - asked.since_ms
            delay_ms = now.mono_ms - self.began_ms
            self.waits[member_id] = wait._replace(
                join_delay_ms=delay_ms, end=end, waited_ms=waited_ms
            )
        return asked

    def wait_so_far(self, wait: MemberWait, now: Now) -> MemberWait:
        asked = self.asked.get(wait.member.member_id)
        if asked is None or wait.end is not WaitEnd.WAITING:
            return wait
        return wait._replace(waited_ms=max(0, now.mono_ms - asked.since_ms))

    def reach(self, member: MemberIdentity, now: Now) -> None:
        """It has reached the target assignment."""
        self.unreconciled.discard(member.member_id)
        self.reached[member.member_id] = JoinedMember(member, now.mono_ms - self.began_ms)

    def forget(self, member_id: MemberId) -> None:
        """It is no member any more."""
        self.unreconciled.discard(member_id)
        self.reached.pop(member_id, None)

    def own(
        self, topic_id: TopicId, partition: int, owner: str, topic: str, now: Now
    ) -> Released | None:
        """A member owns a partition from now on; returns who had it, and until when."""
        released = self.released.take(topic_id, partition)
        if released is None:
            return None
        self.unowned_ms += max(0, now.mono_ms - released.since_ms)
        if released.owner != owner:
            self.moved += 1
            if len(self.moves) < MOVES_MAX:
                self.moves.append(PartitionMove(topic, partition, released.owner, owner))
        return released

    def unowned_ms_until(self, now_ms: int) -> int:
        """Milliseconds without an owner so far, all partitions together."""
        waiting = sum(max(0, now_ms - released.since_ms) for released in self.released.all())
        return self.unowned_ms + waiting


class Reconciliations:
    """Those of all consumer groups."""

    def __init__(self, index: HistoryIndex, limits: RecordLimits) -> None:
        self._index = index
        self._limits = limits
        self._running: dict[GroupId, Reconciliation] = {}

    def running(self, group_id: str) -> Reconciliation | None:
        return self._running.get(GroupId(group_id))

    def oldest_ms(self) -> int | None:
        """Since when the longest of those that run has lasted; None without one."""
        return min((running.began_ms for running in self._running.values()), default=None)

    def begin(self, group_id: GroupId, now: Now) -> Reconciliation:
        running = self._running[group_id] = Reconciliation(now.mono_ms)
        return running

    def forget(self, group_id: GroupId) -> None:
        self._running.pop(group_id, None)

    def clear(self) -> None:
        self._running.clear()

    def resume(self, group: ConsumerGroupView, story: Rebalance, now: Now) -> None:
        """A rebalance continues after a load. What happened before is in its story."""
        passed_ms = max(0, now.wall_ms - story.began_at_ms)
        running = Reconciliation(now.mono_ms - passed_ms)
        running.unreconciled = not_reconciled(group, group.assignment_epoch)
        for wait in story.waited_for:
            running.waits[wait.member.member_id] = wait
            if wait.end is WaitEnd.WAITING:
                since_ms = max(0, now.wall_ms - (wait.asked_at_ms or now.wall_ms))
                asked = Asked(now.mono_ms - since_ms, wait.partitions or 0)
                running.asked[wait.member.member_id] = asked
        self._running[group.group_id] = running

    def end(
        self, group_id: GroupId, how: End, now: Now, epoch: int, members: int
    ) -> RebalanceEndedEntry | None:
        """The whole rebalance. `epoch`: that the group has reached."""
        running = self._running.pop(group_id, None)
        story = self._index.running(group_id)
        if running is None or story is None:
            return None
        slowest = sorted(running.reached.values(), key=lambda joined: -joined.join_delay_ms)
        joined, joined_left_out = self._limits.cut(slowest)
        longest = sorted(running.waits.values(), key=_waited)
        waits, waits_left_out = self._limits.cut(longest)
        # What is in no target at the end is not subscribed any more, and does not count.
        unowned_ms = running.unowned_ms
        if how is not End.STABLE:
            unowned_ms = running.unowned_ms_until(now.mono_ms)
        whole = replace(
            story,
            generation_after=epoch,
            members_after=members,
            waited_for=waits,
            waited_for_left_out=waits_left_out,
            joined=joined,
            joined_left_out=joined_left_out,
            partitions_moved=running.moved,
            moves=tuple(running.moves),
        )
        ended_at_ms = story.began_at_ms + now.mono_ms - running.began_ms
        return RebalanceEndedEntry(
            group_id, now.wall_ms, end_rebalance(whole, how, ended_at_ms, unowned_ms)
        )


def _waited(wait: MemberWait) -> int:
    """The longest first; one that is still awaited has waited for longer than the others."""
    return -(wait.waited_ms or 0) if wait.end is not WaitEnd.WAITING else -(1 << 62)
