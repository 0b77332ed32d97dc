"""Markers: ends transactions in one partition of the offsets topic.

A marker is appended like any other batch, and all pending offsets of its producer, in every group
of the partition, become visible or are dropped. The caller is told when it is stored. Also keeps
the broker informed of where the oldest open transaction begins.
Kafka's counterparts: `CoordinatorRuntime.scheduleTransactionCompletion`, and what
`UnifiedLog.append` checks and keeps of producers.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from coordinator.decision_failed import DecisionFailed
from coordinator.events import Event
from coordinator.group_store import GroupStore
from coordinator.group_types import AnyGroup
from coordinator.history_sink import is_history
from coordinator.offsets.end_of_transaction import decide_end_of_transaction
from coordinator.pending_answers import PendingAnswers
from coordinator.shard_context import ShardContext
from protocol.names import ErrorCode, GroupId
from seams.now import Now
from seams.transactions import TransactionMarker
from storage.api import EndMarker, Log, Position

MarkerDone = Callable[[ErrorCode], None]

AGAIN: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
"""The marker cannot be written now: it is to be tried again."""


class _Ended(NamedTuple):
    """What a marker leads to in one group; None: there is no such group, or not yet."""

    group_id: GroupId
    group: AnyGroup | None
    events: Sequence[Event]


class MarkerAnswer:
    """Tells the transaction coordinator that the marker is stored, or may never be."""

    __slots__ = ("_done",)

    def __init__(self, done: MarkerDone) -> None:
        self._done = done

    def send(self) -> None:
        self._done(ErrorCode.NONE)

    def refuse(self, _error_code: ErrorCode) -> None:
        self._done(AGAIN)


class PartitionMarkers:
    __slots__ = (
        "_answers",
        "_context",
        "_forgotten_at_ms",
        "_log",
        "_partition",
        "_reported",
        "_restore",
        "_store",
        "is_report_due",
    )

    def __init__(
        self,
        partition: int,
        log: Log,
        context: ShardContext,
        store: GroupStore,
        answers: PendingAnswers,
        restore: Callable[[GroupId, Now], None],
    ) -> None:
        """`restore` gets a group ready that was loaded and that nobody asked for yet."""
        self._partition = partition
        self._log = log
        self._context = context
        self._store = store
        self._answers = answers
        self._restore = restore
        self._reported: Position | None = None
        self._forgotten_at_ms = 0  # monotonic
        self.is_report_due = False  # when what was appended is stored

    def write(self, marker: TransactionMarker, now: Now, done: MarkerDone) -> None:
        """Append it, and settle what its producer has pending. `done` follows if it is stored.

        Raises DecisionFailed if nothing was changed, whatever else after that.
        """
        refusal = self._store.transactions.producers.marker_refusal(marker)
        if refusal is not ErrorCode.NONE:
            done(refusal)
            return
        if not self._log.has_room():
            done(AGAIN)
            return
        end = EndMarker(
            marker.producer_id, marker.producer_epoch, marker.is_commit, marker.coordinator_epoch
        )
        try:
            ended = self._decide(end, now)
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        position = self._append(end, ended, now)
        for each in ended:
            self._apply(each, position)
        self.is_report_due = True
        self._answers.add(position, MarkerAnswer(done), now.mono_ms)
        self._forget_idle_producers(now)

    def _decide(self, marker: EndMarker, now: Now) -> list[_Ended]:
        pending = self._store.transactions.pending
        ended = []
        for group_id in pending.groups_of(marker.producer_id):
            self._restore(group_id, now)
            group = self._store.groups.get(group_id)
            events = decide_end_of_transaction(group_id, group, pending, marker, now.wall_ms)
            ended.append(_Ended(group_id, group, events))
        return ended

    def _append(self, marker: EndMarker, ended: Sequence[_Ended], now: Now) -> Position:
        """The marker and the history of all its groups, as one."""
        history_sink, offset = self._context.history_sink, self._log.end_position
        recorded = [each for each in ended if is_history(each.events)]
        if history_sink is None or not recorded:
            position = self._log.append_marker(marker, now.wall_ms)
        else:
            history_sink.begin()
            try:
                position = self._log.append_marker(marker, now.wall_ms)
                for each in recorded:
                    history_sink.record(each.group, each.events, now)
            finally:
                history_sink.end()
        self._store.transactions.producers.ended(marker, offset, now.wall_ms)
        return position

    def _apply(self, ended: _Ended, position: Position) -> None:
        group = ended.group
        if group is not None:
            group.lock.acquire()
        try:
            self._store.apply(ended.group_id, ended.events)
        finally:
            if group is not None:
                group.lock.release()
        if ended.group_id in self._store.groups:
            self._store.offsets_stored_at(ended.group_id, position)
        for event in ended.events:
            self._context.observe(event)

    def _forget_idle_producers(self, now: Now) -> None:
        settings = self._context.settings
        if now.mono_ms - self._forgotten_at_ms >= settings.producer_id_expiration_check_interval_ms:
            self._forgotten_at_ms = now.mono_ms
            before_ms = now.wall_ms - settings.producer_id_expiration_ms
            self._store.transactions.producers.forget(before_ms)

    # ------------------------------------------------------------ the last stable offset

    def loaded(self) -> None:
        """Tell it in any case: what was reported before the load may be another shard's."""
        self._reported = self._store.transactions.producers.first_unstable
        self._context.first_unstable_changed(self._partition, self._reported)

    def report(self) -> None:
        """Tell where the oldest open transaction begins, if that has changed."""
        self.is_report_due = False
        first = self._store.transactions.producers.first_unstable
        if first != self._reported:
            self._reported = first
            self._context.first_unstable_changed(self._partition, first)
