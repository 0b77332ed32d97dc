"""Shard: one partition of the offsets topic; carries out what is decided about its groups.

A turn, in order: decide, append the records, apply the events (the group is locked meanwhile),
schedule the new ops, check the waiting ones, and queue the commands that follow for the next turn
of the same chain. Answers go out when the chain is over and what they depend on is stored. No call
waits for anything, so turns cannot interleave. Timers end in `tick`, the disk in `on_stored`: both
start new chains. Every outcome is carried out by `_carry_out`.

A decision that raises before anything was changed is `DecisionFailed`: only its request fails. A
heartbeat that changes nothing but a deadline skips all this (`heartbeat`).
Kafka's counterpart: `CoordinatorRuntime.CoordinatorContext` with its `GroupCoordinatorShard`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from coordinator.classic.commands import Beat, ExpireSession, Join, Leave, RemoveLapsed, Sync
from coordinator.classic.decide.heartbeat import HEARTBEAT_ANSWERS, judge_heartbeat
from coordinator.classic.decide.partitions_changed import decide_partitions_changed
from coordinator.classic.events import SessionExtended
from coordinator.commands import Command
from coordinator.consumer.assignment_job import AssignmentJob
from coordinator.consumer.commands import ConsumerHeartbeat, ExpireConsumerSession
from coordinator.consumer.decide.topics_changed import decide_topics_changed
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.steady_session import answer_steady
from coordinator.decision_context import DecisionContext
from coordinator.decision_failed import DecisionFailed
from coordinator.describe_groups import Description
from coordinator.events import PartitionClosed, PartitionLoaded
from coordinator.group_store import GroupStore
from coordinator.group_types import AnyGroup, decide_turn, parked_refusals
from coordinator.history_sink import is_history
from coordinator.image import LoadStart
from coordinator.lazy_restore import LazyRestore
from coordinator.list_groups import list_groups
from coordinator.loaded_record import LoadedRecord
from coordinator.markers import PartitionMarkers
from coordinator.offset_turns import OffsetTurns
from coordinator.offsets.deleted_topics import DeletedTopic, Forgetting
from coordinator.offsets.expiry import OffsetExpiry
from coordinator.offsets.offset_commit import decide_offset_commit
from coordinator.offsets.transactions import OffsetTransactions
from coordinator.offsets.txn_offset_commit import TxnOffsetCommit
from coordinator.outcome import Outcome, Reply
from coordinator.pending_answers import (
    SENT_AT_ONCE,
    ClientAnswer,
    PendingAnswers,
    PendingCommands,
)
from coordinator.refusals import GroupRequest, refused
from coordinator.shard_context import ShardContext
from protocol.answer_budget import AnswerBudget
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.list_groups import ListedGroup
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.messages.sync_group import SyncGroupRequest
from protocol.names import ErrorCode, GroupId, GroupState, MemberId, TopicName
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Log, Position

D = TypeVar("D")

TURNS_OF_A_CHAIN_MAX: Final = 100
"""The longest chain known has nine turns; one without end would stop the process."""

EXPIRED_PER_TICK_MAX: Final = 100
"""After a start the members of a group expire together; with 1,000 topics each takes 0.7 ms."""

FULL_LOG_PAUSE_MS: Final = 100
"""While the log takes nothing, deadlines are looked at again after this."""


class Shard:
    """The groups of one partition, and everything that waits on them."""

    def __init__(self, partition: int, log: Log, context: ShardContext) -> None:
        settings, next_deadline = context.settings, context.next_deadline
        self.partition = partition
        self._store = GroupStore(log, settings, context.group_counts, next_deadline)
        self.groups = self._store.groups
        self.purgatory = self._store.purgatory
        self.answers = PendingAnswers(
            log.stored_position, settings.offsets_commit_timeout_ms, next_deadline
        )
        self.markers = PartitionMarkers(
            partition, log, context, self._store, self.answers, self.restore
        )
        self.offset_turns = OffsetTurns(
            log, self._store, context, restore=self.restore, carry_out=self._offsets_outcome
        )
        self.loaded_to: Position = 0
        self._log = log
        self._settings = settings
        self._decision_context = DecisionContext(settings, context.new_member_id, context.consumer)
        self._topics = context.topics
        self._authorizer = context.consumer.authorizer
        self._compute = context.compute
        self._reply = context.reply
        self._observe = context.observe
        self._next_deadline = next_deadline
        self._history_sink = context.history_sink
        self._when_stored = PendingCommands(settings.offsets_commit_timeout_ms, next_deadline)
        self._unsent: Sequence[Reply] = ()  # answers of a chain that failed
        self._expiry: OffsetExpiry | None = None
        self._postponed_until_ms = 0
        self._forgetting = Forgetting(
            self.offset_turns.forget_topic,
            lambda: log.end_position,
            lambda topic_id: context.topic_done(partition, topic_id),
        )
        # Until all groups are restored.
        self.loading: LazyRestore | None = LazyRestore(self._store, context, self.turn)

    @property
    def transactions(self) -> OffsetTransactions:
        """Those of its log that offsets were committed in."""
        return self._store.transactions

    # ------------------------------------------------------------ questions about membership

    def heartbeat(self, request: HeartbeatRequest, token: ReplyToken, now: Now) -> None:
        """The fast path: check, write one number, send a shared answer. All else is a turn."""
        if self.loading is not None:
            self.restore(request.group_id, now)
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            self.turn(Beat(request.group_id, request, token), now)
            return
        try:
            error_code = judge_heartbeat(group, request)
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        if group is not None and (
            (error_code is ErrorCode.NONE and not group.lapsed_member_ids)
            or error_code is ErrorCode.REBALANCE_IN_PROGRESS
        ):
            member = group.members[request.member_id]
            deadline_ms = now.mono_ms + member.session_timeout_ms
            if deadline_ms >= member.session_deadline_ms:
                member.session_deadline_ms = deadline_ms
                if group.position <= self.answers.stored:
                    self._reply(token, HEARTBEAT_ANSWERS[error_code])
                else:
                    self._send((Reply(token, HEARTBEAT_ANSWERS[error_code]),), group.position, now)
                return
        self.turn(Beat(request.group_id, request, token), now)

    def steady_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, token: ReplyToken, now: Now
    ) -> bool:
        """The fast path: if it changes nothing, move one number and answer. All else is a turn."""
        if self.loading is not None:
            self.restore(request.group_id, now)
        group = self.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return False
        try:
            answer = answer_steady(group, request, token, now, self._decision_context.consumer)
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        if answer is not None:
            self._send((Reply(token, answer),), group.position, now)
        return answer is not None

    def expire_session(self, group_id: GroupId, member_id: MemberId, now: Now) -> None:
        """Let a member's session run out at this moment, and forgive nothing."""
        if self.loading is not None:
            self.restore(group_id, now)
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            if member_id in group.members:
                group.members[member_id].session_deadline_ms = now.mono_ms
            self.turn(ExpireConsumerSession(group_id, member_id), now)
        elif group is not None:
            if member_id in group.members:
                group.members[member_id].session_deadline_ms = now.mono_ms
            self.turn(ExpireSession(group_id, member_id), now)
            if member_id in group.lapsed_member_ids:
                self.turn(RemoveLapsed(group_id), now)

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, token: ReplyToken, now: Now
    ) -> None:
        self.turn(ConsumerHeartbeat(request.group_id, request, token), now)

    def join_group(self, request: JoinGroupRequest, token: ReplyToken, now: Now) -> None:
        self.turn(Join(request.group_id, request, token), now)

    def sync_group(self, request: SyncGroupRequest, token: ReplyToken, now: Now) -> None:
        self.turn(Sync(request.group_id, request, token), now)

    def leave_group(self, request: LeaveGroupRequest, token: ReplyToken, now: Now) -> None:
        self.turn(Leave(request.group_id, request, token), now)

    def turn(self, command: Command, now: Now) -> None:
        """Carry out one command and the whole chain of those that it leads to."""
        group_id = command.group_id
        if self.loading is not None:
            self.restore(group_id, now)
        replies: Sequence[Reply] = ()
        jobs: list[AssignmentJob] = []
        chain = deque((command,))
        turns = 0
        try:
            while chain:
                turns += 1
                assert turns <= TURNS_OF_A_CHAIN_MAX, f"{command!r} leads to no end"
                outcome = self._one_turn(chain.popleft(), now)
                if outcome.replies:  # most often of one turn: those to many are made later
                    replies = [*replies, *outcome.replies] if replies else outcome.replies
                if outcome.job is not None:
                    jobs.append(outcome.job)
                chain.extendleft(reversed(outcome.then))  # before whatever else waits its turn
                chain.extend(self.purgatory.check_and_complete(group_id))
                chain.extend(self._when_stored.stored(self.answers.stored))
        except DecisionFailed as failed:
            if turns == 1:
                raise
            self._unsent = replies
            raise failed.failure from None
        except Exception:
            self._unsent = replies  # for `close`, which is what comes next
            raise
        self._send(replies, self._store.position(group_id), now)
        for job in jobs:
            self._compute(self.partition, job)

    def _one_turn(self, command: Command, now: Now) -> Outcome:
        group = self.groups.get(command.group_id)
        try:
            outcome = decide_turn(group, command, now, self._decision_context)
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        self._carry_out(command.group_id, group, outcome, now, self._store.members_stored_at)
        return outcome

    # ------------------------------------------------------------ the one way to carry out

    def _carry_out(
        self,
        group_id: GroupId,
        group: AnyGroup | None,
        outcome: Outcome,
        now: Now,
        stored_at: Callable[[GroupId, Position], None],
    ) -> None:
        """All of an outcome but its replies and `then`; these follow when the caller's turn ends.

        The records and their history are appended as one, then the events are applied.
        `stored_at` notes the position that answers about the group wait for from now on.
        """
        events = outcome.events
        if group is not None:
            group.lock.acquire()
        try:
            history_sink = self._history_sink
            if history_sink is None or not is_history(events):
                position = self._store.append(outcome.records, now, outcome.producer)
            else:
                history_sink.begin()
                try:
                    position = self._store.append(outcome.records, now, outcome.producer)
                    history_sink.record(group, events, now)
                finally:
                    history_sink.end()
            self._store.apply(group_id, events)
        finally:
            if group is not None:
                group.lock.release()
        if position is not None:
            stored_at(group_id, position)
        if outcome.when_stored is not None:
            assert position is not None, "when_stored without a record"
            self._when_stored.add(position, outcome.when_stored, now.mono_ms)
        for op in outcome.ops:
            self._store.schedule(op)
        for event in events:
            if type(event) is not SessionExtended:  # one with every commit, of no interest
                self._observe(event)

    def _offsets_outcome(
        self, group_id: GroupId, group: AnyGroup | None, outcome: Outcome, now: Now
    ) -> None:
        """An outcome about offsets: a turn of its own. No op waits for offsets."""
        self._carry_out(group_id, group, outcome, now, self._store.offsets_stored_at)
        self._send(outcome.replies, self._store.offsets_position(group_id), now)
        for command in outcome.then:
            self.turn(command, now)

    def _send(self, replies: Sequence[Reply], position: Position, now: Now) -> None:
        """Send the replies, each once everything before `position` is stored."""
        if len(replies) > SENT_AT_ONCE:
            self.answers.add_slices(position, replies, self._reply, now.mono_ms)
            return
        if position > self.answers.stored:
            for reply in replies:
                answer = ClientAnswer(reply.token, reply.response, self._reply)
                self.answers.add(position, answer, now.mono_ms)
            return
        for reply in replies:
            self._reply(reply.token, reply.response)

    # ------------------------------------------------------------ room in the log

    def has_room(self) -> bool:
        return self._log.has_room()

    def has_room_for(self, request: GroupRequest, now: Now) -> bool:
        """May this be asked now? A sync only writes if its group waits for assignments."""
        if self._log.has_room():
            return True
        if not isinstance(request, SyncGroupRequest):
            return False
        self.restore(request.group_id, now)
        group = self.groups.get(request.group_id)
        return group is None or group.state is not GroupState.COMPLETING_REBALANCE

    # ------------------------------------------------------------ questions about offsets

    def offset_commit(self, request: OffsetCommitRequest, token: ReplyToken, now: Now) -> None:
        if self.loading is not None:
            self.restore(request.group_id, now)
        group = self.groups.get(request.group_id)
        try:
            outcome = decide_offset_commit(
                group, request, token, now, self._settings, self._topics, self._authorizer
            )
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        self._offsets_outcome(request.group_id, group, outcome, now)

    def txn_offset_commit(self, commit: TxnOffsetCommit, token: ReplyToken, now: Now) -> None:
        """The transaction coordinator has agreed."""
        self.offset_turns.txn_offset_commit(commit, token, now)
        self.markers.report()

    def offset_delete(self, request: OffsetDeleteRequest, token: ReplyToken, now: Now) -> None:
        self.offset_turns.offset_delete(request, token, now)

    # ------------------------------------------------------------ questions about whole groups

    def list_groups(
        self, states_filter: Sequence[str], types_filter: Sequence[str]
    ) -> tuple[list[ListedGroup], Position]:
        try:
            listed = list_groups(self.groups.values(), states_filter, types_filter)
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        return listed, self._log.end_position

    def describe(
        self, group_ids: Iterable[GroupId], how: Description[D], now: Now, room: AnswerBudget
    ) -> tuple[list[D], Position]:
        """Those for which there is no room in the answer are INVALID_REQUEST."""
        described: list[D] = []
        position = 0
        for group_id in group_ids:
            if not room:
                described.append(how.refuse(group_id, ErrorCode.INVALID_REQUEST))
                continue
            self.restore(group_id, now)
            group = self.groups.get(group_id)
            try:
                found = how.describe(group_id, group, self._topics, self._settings)
            except Exception as failure:
                raise DecisionFailed(failure) from failure
            if not room.takes(how.size(found)):
                found = how.refuse(group_id, ErrorCode.INVALID_REQUEST)
            described.append(found)
            position = max(position, self._store.offsets_position(group_id))
        return described, position

    # ------------------------------------------------------------ news of topics

    def topic_deleted(self, topic: DeletedTopic) -> None:
        """Forget what was committed for it: a chore, done in slices by `tick`."""
        self._forgetting.add(topic, [*self.groups, *(self.loading or ())])
        self._next_deadline.lower(0)

    def partitions_changed(self, names: AbstractSet[TopicName], now: Now) -> None:
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):  # one that is restored later looks by itself
                outcome = decide_topics_changed(group, names)
                self._carry_out(group.group_id, group, outcome, now, self._store.members_stored_at)
        if not self._settings.rebalance_on_partition_change:
            return
        if self.loading is not None:
            self.loading.changed_topics |= names
            return  # asked again when all groups are there
        then: list[Command] = []
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                continue
            if group.subscribed_topics and not group.subscribed_topics.isdisjoint(names):
                outcome = decide_partitions_changed(group, names, now, self._settings)
                self._carry_out(group.group_id, group, outcome, now, self._store.members_stored_at)
                then.extend(outcome.then)
        for command in then:
            self.turn(command, now)

    # ------------------------------------------------------------ time

    def tick(self, now: Now) -> None:
        """End what has waited too long, and do a slice of the chores."""
        self.answers.send_slice()
        self._refuse_overdue(now)
        if not self._log.has_room():
            # What ends now might have to be written down: everything waits until it can be.
            self._postponed_until_ms = now.mono_ms + FULL_LOG_PAUSE_MS
            return
        for command in self.purgatory.expire_due(now.mono_ms, EXPIRED_PER_TICK_MAX):
            self.turn(command, now)
        if self._expiry is not None and self.loading is None:
            self.offset_turns.expire(self._expiry, now)
        if self._forgetting:
            self._forgetting.next_slice(now, self.answers.stored)

    def next_deadline_ms(self) -> int | None:
        """When `tick` has something to do; never earlier than it could do it."""
        deadlines = [self.purgatory.next_deadline_ms]
        if self._expiry is not None and self.loading is None:
            deadlines.append(self._expiry.due_ms)
        if self._forgetting:
            deadlines.append(0)
        nearest = min((d for d in deadlines if d is not None), default=None)
        if nearest is not None:
            nearest = max(nearest, self._postponed_until_ms)
        if self.answers.has_slice:
            return 0
        waiting = (nearest, self.answers.due_ms, self._when_stored.due_ms)
        return min((d for d in waiting if d is not None), default=None)

    # ------------------------------------------------------------ the disk

    def on_stored(self, position: Position, now: Now) -> None:
        """Everything before `position` is durable: what waited for that goes on."""
        self.answers.stored = max(self.answers.stored, position)
        for command in self._when_stored.stored(self.answers.stored):
            self.turn(command, now)
        self.answers.release(position)
        self._forgetting.on_stored(self.answers.stored)
        if self.markers.is_report_due:
            self.markers.report()

    def _refuse_overdue(self, now: Now) -> None:
        """What waits for a disk that takes too long is refused, as by Kafka."""
        self.answers.refuse_overdue(now.mono_ms)
        for stored in self._when_stored.overdue(now.mono_ms):
            outcome = self._one_turn(stored.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE), now)
            for reply in outcome.replies:
                self._reply(reply.token, reply.response)  # at once: the disk is what it is about
            for command in outcome.then:
                self.turn(command, now)

    # ------------------------------------------------------------ the load

    def load_from(self, load_start: LoadStart) -> None:
        """What the log said before some position; its records follow."""
        assert self.loading is not None
        self.loading.begin(load_start)
        self.loaded_to = load_start.position

    def load(self, records: Iterable[LoadedRecord]) -> None:
        """Write a slice of the log into the groups. Raises UnreadableRecord."""
        assert self.loading is not None
        self.loading.apply(records)

    def finish_load(self, now: Now) -> None:
        """The log is read. Groups are ready one by one: when asked for, or by `restore_slice`."""
        assert self.loading is not None
        self.loading.is_read()
        self.markers.loaded()
        self._expiry = OffsetExpiry(self._settings, now)
        self._next_deadline.lower(self._expiry.due_ms)

    @property
    def unrestored(self) -> int:
        """How many groups are not ready yet, unless somebody asks for them."""
        return 0 if self.loading is None else self.loading.unrestored

    def knows(self, group_id: GroupId) -> bool:
        return group_id in self.groups or (self.loading is not None and group_id in self.loading)

    def restore(self, group_id: GroupId, now: Now) -> None:
        """Get a group ready if it is not yet."""
        if self.loading is not None:
            try:
                self.loading.restore(group_id, now)
            except DecisionFailed as failed:  # the rebalance of a group that is over its limit
                raise failed.failure from None

    def restore_slice(self, now: Now, budget: int) -> PartitionLoaded | None:
        """Get a slice of the groups ready, up to this cost; what was loaded, once all are."""
        loading = self.loading
        if loading is None or loading.restore_slice(now, budget):
            return None
        self.loading = None
        self._next_deadline.lower(self._expiry.due_ms if self._expiry is not None else 0)
        self.partitions_changed(loading.changed_topics, now)
        members = sum(len(group.members) for group in self.groups.values())
        at_ms, skipped = now.wall_ms, tuple(loading.skipped)
        return PartitionLoaded(
            self.partition, at_ms, len(self.groups), members, self.loaded_to, skipped
        )

    def close(self, now: Now) -> set[ReplyToken]:
        """Stop serving: every request that waits is answered with NOT_COORDINATOR.

        Returns the tokens it answered. The groups in memory are dropped: what was not stored is
        undone by loading the partition again.
        """
        error_code = ErrorCode.NOT_COORDINATOR
        groups = self._store.drain()
        if self.loading is not None:
            self.loading.give_up()
        self.loading = None
        self._when_stored.clear()
        self._forgetting.clear()
        self._expiry = None
        waiting = [
            Reply(reply.token, refused(reply.response, error_code, reply.token.api_version))
            for reply in self._unsent
        ]
        self._unsent = ()
        for group in groups:
            waiting.extend(parked_refusals(group, error_code))
        answered: set[ReplyToken] = set()
        for reply in waiting:
            if reply.token not in answered:
                answered.add(reply.token)
                self._reply(reply.token, reply.response)
        self.answers.refuse_all(error_code)
        self._observe(PartitionClosed(self.partition, now.wall_ms, len(groups)))
        return answered

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        assert not self._unsent, "answers of a chain that failed were not sent"
        self._store.check()
