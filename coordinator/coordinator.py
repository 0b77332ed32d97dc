"""GroupCoordinator: finds the shard of each request, and refuses what no shard can answer.

The entry of the core: `handlers` has a handler for each API. It checks what can be checked without
the group, finds the partition (Kafka's hash of the group id) and passes the request to its shard,
or refuses it: loading, not coordinator, no room in the log, ids that no record can hold
(writable.py). Requests over several groups, or all, are in many_groups.py. A bug in a decision
fails its request; a failure after something was changed ends the shard, which the broker loads
again. Kafka's counterpart: `GroupCoordinatorService`, `CoordinatorRuntime`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from coordinator.classic.decide.heartbeat import HEARTBEAT_ANSWERS
from coordinator.classic.decide.join_group import NewMemberId
from coordinator.commands import Command
from coordinator.consumer.assignors.assignor import Assignor
from coordinator.consumer.context import consumer_context
from coordinator.consumer.decide.refusal import refuse_heartbeat
from coordinator.consumer.decide.validate_heartbeat import forbid_heartbeat, validate_heartbeat
from coordinator.decision_failed import DecisionFailed
from coordinator.events import AnyEvent, PartitionLoadFailed
from coordinator.find_coordinator import Endpoint, FindTransactions, find_coordinator
from coordinator.group_counts import GroupCounts
from coordinator.group_rights import lacks_protocol, with_rights
from coordinator.group_types import AnyGroupView
from coordinator.history_sink import HistorySink
from coordinator.image import LoadStart
from coordinator.large_assignments import LargeAssignments
from coordinator.loaded_record import LoadedRecord
from coordinator.many_groups import ManyGroups
from coordinator.offsets.deleted_topics import DeletedTopics
from coordinator.refusals import GroupRequest, describe_consumer_refusals, may_create_group, refuse
from coordinator.settings import GroupSettings, apply_dynamic_settings
from coordinator.shard import Shard
from coordinator.shard_context import ShardContext
from coordinator.stored_commits import COMMITS_IN_C, loaded_records
from coordinator.transactional_commits import TransactionalCommits
from coordinator.writable import is_unwritable_heartbeat, is_unwritable_join
from protocol.messages import Request, Response
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.messages.sync_group import SyncGroupRequest
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GroupId,
    MemberId,
    TopicId,
    TopicName,
)
from protocol.primitives import echoed, fits_string
from purgatory.purgatory import Purgatory
from seams.assignment_runner import AssignmentRunner
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.group_configs import GroupConfigs
from seams.handler import Handler
from seams.java_hash import partition_of
from seams.next_deadline import NextDeadline
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.stopwatch import Stopwatch, stopped
from seams.topics_view import TopicsView
from seams.transactions import TransactionVerifier
from storage.api import Log, Position

R = TypeVar("R", bound=GroupRequest)


def _raise(_partition: int, failure: Exception) -> None:
    raise failure


def _no_member_id() -> MemberId:
    raise AssertionError("no way to make member ids was given")


def _ignore(_topic_id: TopicId) -> None:
    pass


def _ignore_unstable(_partition: int, _offset: Position | None) -> None:
    pass


class GroupCoordinator:
    """All partitions of the offsets topic, as far as they are ours."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        new_member_id: NewMemberId,
        topics: TopicsView,
        endpoint: Callable[[ReplyToken], Endpoint],
        reply: Callable[[ReplyToken, Response], None],
        observe: Callable[[AnyEvent], None],
        shard_failed: Callable[[int, Exception], None] = _raise,
        history_sink: HistorySink | None = None,
        new_consumer_member_id: Callable[[], MemberId] = _no_member_id,
        assignors: Mapping[str, Assignor] | None = None,
        group_configs: GroupConfigs | None = None,
        assignment_runner: AssignmentRunner | None = None,
        stopwatch: Stopwatch = stopped,
        deleted_topics: Sequence[tuple[TopicName, TopicId]] = (),
        offsets_forgotten: Callable[[TopicId], None] = _ignore,
        find_transactions: FindTransactions | None = None,
        verifier: TransactionVerifier | None = None,
        first_unstable_changed: Callable[[int, Position | None], None] = _ignore_unstable,
        authorizer: Authorizer = ALLOW_ALL,
    ) -> None:
        """`shard_failed` is called when a bug ended a shard: its partition has to be loaded again.

        `first_unstable_changed` is told where the oldest open transaction of a partition begins.
        `deleted_topics` are those whose offsets may still be there, from before this process;
        `offsets_forgotten` is called for each, and for those deleted since, when they are gone.
        """
        self._settings = settings
        self.authorizer = authorizer
        self.records_of, self.quick_records_of = loaded_records, COMMITS_IN_C  # see `Loading`
        self._partitions = settings.offsets_topic_num_partitions
        self._topics = topics
        self._endpoint, self._find_transactions = endpoint, find_transactions
        self._reply, self._observe, self._shard_failed = reply, observe, shard_failed
        self._deleted = DeletedTopics(self._partitions, deleted_topics, offsets_forgotten)
        self._active: list[Shard | None] = [None] * self._partitions
        self._loading: dict[int, Shard] = {}
        self._next_deadline, self.group_counts = NextDeadline(), GroupCounts()
        self.watch_deadline = self._next_deadline.watch
        self._context = ShardContext(
            settings,
            new_member_id,
            topics,
            reply,
            observe,
            self.group_counts,
            self._next_deadline,
            self._deleted.done,
            consumer_context(
                settings,
                topics,
                assignors or {},
                new_consumer_member_id,
                group_configs,
                authorizer,
                stopwatch,
                has_runner=assignment_runner is not None,
            ),
            LargeAssignments(self._active, assignment_runner, self._fail).compute,
            first_unstable_changed,
            history_sink,
        )
        active, serve, fail = self._active, self._serve, self._fail
        self.transactions = TransactionalCommits(
            active, topics, verifier, authorizer, serve=serve, reply=reply, fail=fail
        )
        self.write_marker = self.transactions.write_marker
        self.handlers = with_rights(self._handlers(), authorizer, topics, reply)

    def _handlers(self) -> Mapping[ApiKey, Handler]:
        active, loading, absence = self._active, self._loading, self._absence
        reply, fail = self._reply, self._fail
        many = ManyGroups(active, loading, self.authorizer, absence=absence, reply=reply, fail=fail)
        return {
            ApiKey.HEARTBEAT: self._heartbeat,
            ApiKey.OFFSET_COMMIT: self._offset_commit,
            ApiKey.OFFSET_FETCH: many.fetch_offsets,
            ApiKey.JOIN_GROUP: self._join_group,
            ApiKey.SYNC_GROUP: self._sync_group,
            ApiKey.LEAVE_GROUP: self._leave_group,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.OFFSET_DELETE: self._offset_delete,
            ApiKey.LIST_GROUPS: many.list_groups,
            ApiKey.DESCRIBE_GROUPS: many.describe_groups,
            ApiKey.DELETE_GROUPS: many.delete_groups,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._consumer_group_heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: (
                many.describe_consumer_groups
                if self._settings.is_consumer_protocol_enabled
                else self._refuse_consumer_group_describe
            ),
            **self.transactions.handlers,
        }

    def partition_for(self, group_id: GroupId) -> int:
        return partition_of(group_id, self._partitions)

    # ------------------------------------------------------------ requests

    def disconnected(self, token: ReplyToken, now: Now) -> None:
        """The client of a parked request went away.

        As in Kafka nothing changes: a request timeout must not throw a member out. It counts as
        joined; its answer is made and goes nowhere. Its session runs from that answer on (a new
        member's from its first join, for five minutes), and ends the member if nobody comes back.
        A client that does sends its request again, which takes the place of the parked one.
        """

    def _heartbeat(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, HeartbeatRequest)
        if not request.group_id:
            self._reply(token, HEARTBEAT_ANSWERS[ErrorCode.INVALID_GROUP_ID])
            return
        shard = self._shard_for(request, token)
        if shard is not None:
            try:
                shard.heartbeat(request, token, now)
            except Exception as failure:  # noqa: BLE001 - `_failed` decides what it ends
                self._failed(failure, shard, request, token, now)

    def _offset_commit(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, OffsetCommitRequest)
        # Its group id may be empty: Kafka once allowed that.
        if not fits_string(request.group_id):
            self._refuse(request, token, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._serve(request, token, now, Shard.offset_commit)

    def _offset_delete(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, OffsetDeleteRequest)
        if not request.group_id:
            self._refuse(request, token, ErrorCode.INVALID_GROUP_ID)
        else:
            self._serve(request, token, now, Shard.offset_delete)

    def _join_group(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, JoinGroupRequest)
        settings, member_id = self._settings, request.member_id
        if not request.group_id:  # Kafka echoes the member id here and in the next refusal
            self._refuse(request, token, ErrorCode.INVALID_GROUP_ID, echoed(member_id))
        elif not (
            settings.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.group_max_session_timeout_ms
        ):
            self._refuse(request, token, ErrorCode.INVALID_SESSION_TIMEOUT, echoed(member_id))
        elif is_unwritable_join(request, token):
            self._refuse(request, token, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._serve(request, token, now, Shard.join_group)

    def _sync_group(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, SyncGroupRequest)
        if lacks_protocol(request, token):
            self._refuse(request, token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not request.group_id:
            self._refuse(request, token, ErrorCode.INVALID_GROUP_ID)
        else:
            self._serve(request, token, now, Shard.sync_group)

    def _leave_group(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, LeaveGroupRequest)
        if not request.group_id:
            self._refuse(request, token, ErrorCode.INVALID_GROUP_ID)
        else:
            self._serve(request, token, now, Shard.leave_group)

    def _serve(
        self,
        request: R,
        token: ReplyToken,
        now: Now,
        act: Callable[[Shard, R, ReplyToken, Now], None],
    ) -> None:
        """Let the group's shard act on a request that may write, or refuse the request."""
        shard = self._shard_for(request, token)
        if shard is not None:
            try:
                refusal = self._refusal(shard, request, now)
                if refusal is None:
                    act(shard, request, token, now)
            except Exception as failure:  # noqa: BLE001 - `_failed` decides what it ends
                self._failed(failure, shard, request, token, now)
            else:
                if refusal is not None:
                    self._refuse(request, token, refusal)

    def _consumer_group_heartbeat(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        context = self._context.consumer
        error_code = forbid_heartbeat(request, token, context)
        if error_code is not ErrorCode.NONE:
            self._reply(token, refuse_heartbeat(error_code))
            return
        shard = self._active[partition_of(request.group_id, self._partitions)]
        if shard is not None:
            try:
                if shard.steady_heartbeat(request, token, now):
                    return
            except Exception as failure:  # noqa: BLE001 - `_failed` decides what it ends
                self._failed(failure, shard, request, token, now)
                return
        refusal = validate_heartbeat(request, token.api_version, context.assignors)
        if refusal is not None:
            self._reply(token, refuse_heartbeat(refusal.error_code, refusal.text))
        elif is_unwritable_heartbeat(request, token, self._settings.max_batch_bytes):
            self._refuse(request, token, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._serve(request, token, now, Shard.consumer_group_heartbeat)

    def _refuse_consumer_group_describe(
        self, request: Request, token: ReplyToken, _now: Now
    ) -> None:
        """The answer while the protocol is turned off, whatever groups the log has."""
        assert isinstance(request, ConsumerGroupDescribeRequest)
        refused = describe_consumer_refusals(request.group_ids, ErrorCode.UNSUPPORTED_VERSION)
        self._reply(token, ConsumerGroupDescribeResponse(groups=refused))

    def _shard_for(self, request: GroupRequest, token: ReplyToken) -> Shard | None:
        """The shard that serves the group; None if the request is refused for want of one."""
        partition = partition_of(request.group_id, self._partitions)
        shard = self._active[partition]
        if shard is None:
            self._refuse(request, token, self._absence(partition))
        return shard

    def _refusal(self, shard: Shard, request: GroupRequest, now: Now) -> ErrorCode | None:
        """Why the log or the number of groups does not allow it; None if they do."""
        if not shard.has_room_for(request, now):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if may_create_group(request) and self._is_one_too_many(shard, request.group_id):
            return ErrorCode.POLICY_VIOLATION
        return None

    def _failed(
        self,
        failure: Exception,
        shard: Shard,
        request: GroupRequest,
        token: ReplyToken,
        now: Now,
    ) -> None:
        """A bug in the turn of a request: it fails the request alone if nothing was changed."""
        if isinstance(failure, DecisionFailed):
            self._refuse(request, token, ErrorCode.UNKNOWN_SERVER_ERROR)
            raise failure.failure  # for the broker, which counts and logs it
        answered = self._close(shard.partition, now)
        try:
            if token not in answered:
                self._refuse(request, token, ErrorCode.NOT_COORDINATOR)
        finally:  # a bug in the refusal, too, must not keep the partition from being loaded again
            self._shard_failed(shard.partition, failure)

    def _is_one_too_many(self, shard: Shard, group_id: GroupId) -> bool:
        """Would this be a group beyond rollcall.groups.max? Kafka differs: it has no limit."""
        groups = self.group_counts.groups + self.group_counts.unrestored
        return groups >= self._settings.groups_max and not shard.knows(group_id)

    def _absence(self, partition: int) -> ErrorCode:
        """Why no shard serves this partition."""
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def _refuse(
        self,
        request: GroupRequest,
        token: ReplyToken,
        error_code: ErrorCode,
        member_id: MemberId = UNKNOWN_MEMBER_ID,
    ) -> None:
        authorizer = self.authorizer
        response = refuse(request, token, self._topics, error_code, authorizer, member_id)
        self._reply(token, response)

    def _find_coordinator(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, FindCoordinatorRequest)
        endpoint, find = self._endpoint(token), self._find_transactions
        self._reply(token, find_coordinator(request, token, endpoint, find, self.authorizer))

    # ------------------------------------------------------------ partitions come and go

    def begin_load(self, partition: int, log: Log) -> None:
        """From now on the partition is ours, and loading."""
        assert partition not in self._loading, f"partition {partition} is loading already"
        assert self._active[partition] is None, f"partition {partition} is served already"
        self._loading[partition] = Shard(partition, log, self._context)

    def load_from(self, partition: int, load_start: LoadStart) -> None:
        """Forget what was loaded of it so far, and begin with this; the log goes on from there."""
        self._loading[partition].load_from(load_start)

    def load(self, partition: int, records: Sequence[LoadedRecord], next_offset: int) -> None:
        """A slice of the log, up to `next_offset`. May raise UnreadableRecord: `fail_load` then."""
        shard = self._loading[partition]
        shard.load(records)
        shard.loaded_to = next_offset

    def finish_load(self, partition: int, now: Now) -> None:
        """The log is read: served from now on. `restore_slice` gets the groups ready."""
        shard = self._loading.pop(partition)
        self._active[partition] = shard
        shard.finish_load(now)
        for topic in self._deleted.pending(partition):
            shard.topic_deleted(topic)

    def restore_slice(self, partition: int, now: Now, budget: int) -> bool:
        """Get some groups ready that nobody asked for yet; False when all are."""
        shard = self._active[partition]
        if shard is None:
            return False
        try:
            loaded = shard.restore_slice(now, budget)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
            self._fail(shard, failure, now)
            return False
        if loaded is not None:
            self._observe(loaded)
        return shard.loading is not None

    def load_left(self, partition: int) -> tuple[int, int]:
        """How many groups of a partition are not ready yet, and what that takes, in bytes."""
        shard = self._loading.get(partition) or self._active[partition]
        if shard is None or shard.loading is None:
            return 0, 0
        return shard.unrestored, shard.loading.cost

    def fail_load(self, partition: int, reason: str) -> None:
        """It cannot be read: its requests get NOT_COORDINATOR until it is loaded again."""
        del self._loading[partition]
        self._observe(PartitionLoadFailed(partition, reason))

    def resign(self, partition: int, now: Now) -> None:
        """The partition is not ours any more."""
        if self._loading.pop(partition, None) is None:
            self._close(partition, now)

    def on_stored(self, partition: int, position: Position, now: Now) -> None:
        """Everything before `position` is durable."""
        shard = self._active[partition]
        if shard is None:
            return  # it was stored for a shard that has ended since
        try:
            shard.on_stored(position, now)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
            self._fail(shard, failure, now)

    def on_log_failed(self, partition: int, now: Now) -> None:
        """What is not stored by now never will be. The shell loads what is there."""
        self._close(partition, now)

    def _close(self, partition: int, now: Now) -> set[ReplyToken]:
        shard = self._active[partition]
        if shard is None:
            return set()
        self._active[partition] = None  # first: the answers below may bring new requests
        self._deleted.closed(partition)
        return shard.close(now)

    def _fail(self, shard: Shard, failure: Exception, now: Now) -> None:
        """A bug: what this shard has in memory may be wrong, so it is closed and loaded again."""
        if isinstance(failure, DecisionFailed):
            failure = failure.failure  # of a timer: its op has ended and would be missing
        self._close(shard.partition, now)
        self._shard_failed(shard.partition, failure)

    # ------------------------------------------------------------ time, and news of topics

    def use(self, changed: GroupSettings) -> None:
        apply_dynamic_settings(self._settings, changed)

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is due; it may find that it came in vain."""
        return self._next_deadline.at_ms

    def tick(self, now: Now) -> None:
        self._next_deadline.at_ms = None
        for shard in self._active:
            if shard is None:
                continue
            deadline_ms = shard.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now.mono_ms:
                try:
                    shard.tick(now)
                except Exception as failure:  # noqa: BLE001 - it ends the shard alone
                    self._fail(shard, failure, now)
                    continue
                deadline_ms = shard.next_deadline_ms()
            if deadline_ms is not None:
                self._next_deadline.lower(deadline_ms)

    def expire_session(self, group_id: GroupId, member_id: MemberId, now: Now) -> None:
        """End a member's session now, as if it had been silent. For tests (testing/)."""
        shard = self._active[self.partition_for(group_id)]
        if shard is not None:
            shard.expire_session(group_id, member_id, now)

    def topics_deleted(
        self,
        topics: Sequence[tuple[TopicName, TopicId]],
        now: Now,
        client_id: str = "",
        client_host: str = "",
        principal: str | None = None,
    ) -> None:
        """Whatever was committed for them is forgotten, a slice at each tick."""
        for name, topic_id in topics:
            topic = self._deleted.add(name, topic_id, client_id, client_host, principal)
            for shard in self._active:
                if shard is not None:
                    shard.topic_deleted(topic)
        self.partitions_changed({name for name, _ in topics}, now)

    def partitions_changed(self, names: AbstractSet[TopicName], now: Now) -> None:
        """Topics came, went, or got more partitions (rollcall.rebalance.on.partition.change)."""
        for loading in self._loading.values():
            loading.partitions_changed(names, now)  # noted, until its groups are there
        for shard in tuple(self._active):
            if shard is None:
                continue
            try:
                shard.partitions_changed(names, now)
            except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
                self._fail(shard, failure, now)

    # ------------------------------------------------------------ for metrics and the console

    def groups(self) -> Iterator[AnyGroupView]:
        """Every group that is served here; for counts there is `group_counts`."""
        for shard in self._active:
            if shard is not None:
                yield from shard.groups.values()

    def groups_of(self, partition: int) -> tuple[AnyGroupView, ...]:
        """Those of one partition, as they are now: for who walks over all and takes breaths."""
        shard = self._active[partition]
        return () if shard is None else tuple(shard.groups.values())

    def group(self, group_id: GroupId) -> AnyGroupView | None:
        shard = self._active[self.partition_for(group_id)]
        return None if shard is None else shard.groups.get(group_id)

    def knows(self, group_id: GroupId) -> bool:
        """While a partition loads, nobody can tell: then there may be."""
        shard = self._active[self.partition_for(group_id)]
        return shard is None or shard.knows(group_id)

    def purgatories(self) -> Iterator[Purgatory[Command]]:
        """Where ops wait, one for each partition that is served."""
        for shard in self._active:
            if shard is not None:
                yield shard.purgatory

    @property
    def delayed_operations(self) -> int:
        """How many ops wait (Kafka's NumDelayedOperations)."""
        return sum(shard.purgatory.delayed for shard in self._active if shard is not None)
