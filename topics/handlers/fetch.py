"""Fetch: reads record batches from given offsets on, now or when there are enough of them.

Route: dispatch -> FetchHandler.handle -> TopicLog.read -> reply, or through the purgatory until
bytes arrive or the wait is over. Partitions are read in the order of the request. The first batch
of the first partition that has any is returned whole, whatever the limits, so that no consumer is
stuck before a large batch; the limits hold for everything after it. Data in a file that is open,
such as the active segment, is read at once. Otherwise the reader thread reads the whole request.

Of a fetch session (`topics/fetch_session.py`) all partitions are read, and the answer has those
that have something new. There is one replica: a follower's fetch is refused.
Kafka's counterpart: `KafkaApis.handleFetchRequest`, `ReplicaManager.fetchMessages`, `DelayedFetch`.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import Final

from protocol.acl_codes import AclOperation
from protocol.messages import Request
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from protocol.names import ErrorCode, TopicName
from purgatory.purgatory import Purgatory
from seams.authorizer import Authorizer
from seams.client_throttle import ClientThrottle
from seams.io_executor import IoExecutor
from seams.next_deadline import unwatched
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import TopicPartition
from storage.batch.record_batch import iter_batches
from topics.cluster import ClusterView
from topics.delayed_fetch import CompleteFetch, DelayedFetch, FetchPartitionStatus
from topics.events import PartitionFailed, RecordsFetched, TopicEvent
from topics.fetch_answer_size import fetch_answer_size
from topics.fetch_session import NO_SESSION, FetchContext, FetchKey, RequestedPartition
from topics.fetch_session_cache import FetchSessionCache
from topics.leader_epochs import NO_EPOCH
from topics.log_read import (
    LogReadResult,
    ReadablePartition,
    failed_partition,
    failed_read,
    is_follower,
    read_log_partition,
    readable_partition,
    refused_read,
)
from topics.partition import NOT_RESTORED, READ_COMMITTED, Partition
from topics.producer_recovery import ProducerRecovery
from topics.registry import TopicRegistry
from topics.settings import TopicSettings
from topics.topic_rights import NONE_FORBIDDEN, forbidden_topics

ISOLATION_LEVELS: Final = (0, READ_COMMITTED)
_NO_OFFSET: Final = -1
_FIRST_VERSION_WITH_IDS: Final = 13
FIRST_VERSION_WITH_HINTS: Final = 16
LAST_VERSION_WITHOUT_STORAGE_ERROR: Final = 5


class FetchHandler:
    """Answers Fetch; holds the delayed fetches."""

    def __init__(
        self,
        registry: TopicRegistry,
        cluster: ClusterView,
        settings: TopicSettings,
        recovery: ProducerRecovery,
        authorizer: Authorizer,
        throttle: ClientThrottle,
        *,
        reply: Callable[[ReplyToken, FetchResponse], None],
        hang_up: Callable[[ReplyToken], None],
        answer_max_bytes: Callable[[], int] | None,
        observe: Callable[[TopicEvent], None],
        reader: IoExecutor,
    ) -> None:
        self._registry = registry
        self._cluster = cluster
        self._fetch_max_bytes = settings.fetch_max_bytes
        self._recovery = recovery
        self._authorizer = authorizer
        self._throttle = throttle
        self._reply = reply
        self._hang_up = hang_up
        self._answer_max_bytes = answer_max_bytes or (lambda: settings.fetch_max_bytes)
        self._observe = observe
        self._reader = reader
        self._reading: set[ReplyToken] = set()  # in the reader's thread
        # Bytes that the reader's thread has read, and those of them that the loop has taken over.
        self._thread_read_bytes = 0
        self._thread_taken_bytes = 0
        self._is_stopping = False
        self.purgatory: Purgatory[CompleteFetch] = Purgatory()
        self.on_earlier: Callable[[], None] = unwatched  # a deadline became earlier
        self.sessions = FetchSessionCache(
            settings.max_incremental_fetch_session_cache_slots,
            settings.fetch_session_partitions_max,
            registry.topic_name,
        )

    def handle(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, FetchRequest)
        by_id = token.api_version >= _FIRST_VERSION_WITH_IDS
        if request.isolation_level not in ISOLATION_LEVELS:
            self._reply(token, _error_for_all(request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        context = self.sessions.accept(
            request,
            self._requested(request, by_id=by_id),
            _forgotten(request, by_id=by_id),
            now.mono_ms,
            uses_topic_ids=by_id,
        )
        if isinstance(context, ErrorCode):
            self._reply(token, FetchResponse(error_code=context))
            return
        self._start(context, token, now.mono_ms + max(request.max_wait_ms, 0), now)

    def _start(
        self,
        context: FetchContext,
        token: ReplyToken,
        deadline_ms: int | None,
        now: Now | None = None,
    ) -> None:
        """Read, here or in the reader thread. Without a deadline, answer with what there is."""
        request = context.request
        forbidden = NONE_FORBIDDEN
        if self._authorizer.is_enabled:
            # Asked again after a wait: a right that was taken away meanwhile has an effect.
            forbidden = self._forbidden(context, token, logs_refusals=now is not None)
        targets = self._targets(context, forbidden)
        if now is not None and self._must_restore(context, token, targets, deadline_ms, now):
            return
        # On the loop: a thread must not ask for it.
        most = min(self._fetch_max_bytes, self._throttle.fetch_max_bytes(token))
        reads = self._read(request, targets, most, may_open=False)
        if reads is not None:
            self._answer_or_park(context, token, reads, deadline_ms)
            return
        self._reading.add(token)

        def read_in_thread() -> list[LogReadResult] | None:
            reads = self._read(request, targets, most, may_open=True)
            self._thread_read_bytes += _bytes_of(reads)
            return reads

        def done(reads: list[LogReadResult] | Exception | None) -> None:
            if not isinstance(reads, Exception):
                self._thread_taken_bytes += _bytes_of(reads)
            if token not in self._reading:
                return  # the client has left
            self._reading.remove(token)
            if reads is None or isinstance(reads, Exception):
                self._hang_up(token)
                raise reads or AssertionError("nothing was read")
            self._answer_or_park(context, token, reads, deadline_ms)

        self._reader.submit(read_in_thread, done)

    def _must_restore(
        self,
        context: FetchContext,
        token: ReplyToken,
        targets: Sequence[ReadablePartition | LogReadResult],
        deadline_ms: int | None,
        now: Now,
    ) -> bool:
        """Whether the request waits until the last stable offsets are known.

        A log that cannot be restored is tried again for read_committed only: the others may still
        read its records.
        """
        unknown = [
            target.partition
            for target in targets
            if isinstance(target, ReadablePartition)
            and target.partition.first_unstable_offset == NOT_RESTORED
        ]
        if context.request.isolation_level != READ_COMMITTED:
            unknown = [each for each in unknown if not self._recovery.has_failed(each)]
        if not unknown:
            return False
        self._reading.add(token)

        def restored() -> None:
            if token in self._reading:  # the client has not left
                self._reading.remove(token)
                self._start(context, token, deadline_ms)

        self._recovery.ensure(unknown, now, restored)
        return True

    def _answer_or_park(
        self,
        context: FetchContext,
        token: ReplyToken,
        reads: list[LogReadResult],
        deadline_ms: int | None,
    ) -> None:
        """Answer, or park the fetch until there is more."""
        request = context.request
        reads = [self._checked_again(read) for read in reads]
        # Without room an answer still has a batch: that is waited for, not answered with nothing.
        room = max(self._answer_room(), 1)
        most = min(self._fetch_max_bytes, self._throttle.fetch_max_bytes(token))
        min_bytes = min(request.min_bytes, request.max_bytes, most, room)
        readable = [_readable_bytes(request, read, min_bytes) for read in reads]
        if (
            deadline_ms is None
            or request.max_wait_ms <= 0
            or self._is_stopping
            or not any(read.partition for read in reads)
            or sum(readable) >= min_bytes
            or any(read.ends_waiting for read in reads if read.partition)
        ):
            self._answer(context, token, reads)
            return
        awaited = tuple(
            _awaited(read, read.partition, size)
            for read, size in zip(reads, readable, strict=True)
            if read.partition
        )
        is_committed = request.isolation_level == READ_COMMITTED
        op = DelayedFetch(context, token, awaited, min_bytes, deadline_ms, is_committed)
        command = self.purgatory.try_complete_else_watch(op)
        if command is not None:  # more was appended while it was read
            self._complete([command])
        else:
            self.on_earlier()

    def _checked_again(self, read: LogReadResult) -> LogReadResult:
        """The result of the reader thread, checked against the state on the loop."""
        if read.partition is None or read.fault is None:
            return read
        if read.partition.deleted:
            return refused_read(read.requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._observe(PartitionFailed(read.partition.topic_partition, read.fault, offline=False))
        return read

    def readable(self, topic_partition: TopicPartition) -> None:
        """A partition gained or lost records, or was deleted: check its delayed fetches."""
        if not self.purgatory.watching(topic_partition):
            return
        partition = self._registry.partition(*topic_partition)
        if partition is not None:
            partition.update_written_bytes()
        self._complete(self.purgatory.check_and_complete(topic_partition))

    def expire(self, now: Now) -> None:
        self._complete(self.purgatory.expire_due(now.mono_ms))

    def disconnected(self, token: ReplyToken) -> None:
        self._reading.discard(token)
        self.purgatory.cancel(token)

    def answer_all(self) -> None:
        """The daemon stops: answer all delayed fetches with what there is."""
        self._is_stopping = True
        last_ms = self.purgatory.next_deadline_ms
        while last_ms is not None:
            self._complete(self.purgatory.expire_due(last_ms))
            last_ms = self.purgatory.next_deadline_ms

    def _complete(self, commands: list[CompleteFetch]) -> None:
        for context, token in commands:
            self._start(context, token, None)

    # Reading

    def _forbidden(
        self, context: FetchContext, token: ReplyToken, *, logs_refusals: bool
    ) -> frozenset[TopicName]:
        """Topics of the request, and of its session, that the client may not read."""
        names = [each.name for each in context.requested if each.name is not None]
        if is_follower(context.request):
            is_broker = self._authorizer.may_act_as_broker(token)
            return NONE_FORBIDDEN if is_broker else frozenset(names)
        return forbidden_topics(
            self._authorizer, token, AclOperation.READ, names, logs_refusals=logs_refusals
        )

    def _targets(
        self, context: FetchContext, forbidden: AbstractSet[TopicName]
    ) -> list[ReadablePartition | LogReadResult]:
        """Every partition to be read in its order, unknown and forbidden ones last."""
        known: list[ReadablePartition | LogReadResult] = []
        unknown: list[ReadablePartition | LogReadResult] = []
        for requested in context.requested:
            if requested.name is None:
                unknown.append(refused_read(requested, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            if requested.name in forbidden:
                unknown.append(refused_read(requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            partition = self._registry.partition(requested.name, requested.asked.partition)
            if partition is None:
                unknown.append(refused_read(requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            if context.uses_topic_ids and not self._is_current(requested):
                known.append(failed_read(requested, partition, ErrorCode.INCONSISTENT_TOPIC_ID))
                continue
            known.append(readable_partition(context.request, requested, partition))
        return known + unknown

    def _read(
        self,
        request: FetchRequest,
        targets: Sequence[ReadablePartition | LogReadResult],
        most: int,
        *,
        may_open: bool,
    ) -> list[LogReadResult] | None:
        """Read all, in any thread; None if a file must be opened and may not."""
        room = min(request.max_bytes, most, self._answer_room())
        at_least_one = True
        reads: list[LogReadResult] = []
        for target in targets:
            if isinstance(target, LogReadResult):
                reads.append(target)
                continue
            read = read_log_partition(
                request, target, max(room, 0), at_least_one=at_least_one, may_open=may_open
            )
            if read is None:
                return None
            reads.append(read)
            if read.size:
                at_least_one = False
                room -= read.size
        return reads

    def _answer_room(self) -> int:
        """Bytes that an answer may have, so that answers which nobody reads do not fill the memory.

        What the thread has read and the loop has not yet answered counts as unread.
        """
        return self._answer_max_bytes() - (self._thread_read_bytes - self._thread_taken_bytes)

    def _is_current(self, requested: RequestedPartition) -> bool:
        """Whether the topic of that name still has that id: it was not deleted and recreated."""
        assert requested.name is not None
        return self._registry.topic_id(requested.name) == requested.topic_id

    def _requested(self, request: FetchRequest, *, by_id: bool) -> list[RequestedPartition]:
        """The requested partitions; of one that is requested twice the later one counts."""
        found: dict[FetchKey, RequestedPartition] = {}
        for topic in request.topics:
            name = self._registry.topic_name(topic.topic_id) if by_id else topic.topic
            for asked in topic.partitions:
                requested = RequestedPartition(name, topic.topic_id, asked)
                found[requested.key] = requested
        return list(found.values())

    # Answering

    def _answer(
        self, context: FetchContext, token: ReplyToken, reads: Sequence[LogReadResult]
    ) -> None:
        throttle = self._throttle
        if throttle.is_active:

            def size() -> int:
                topics = _topics_of(self.sessions.changes(context, reads))
                return fetch_answer_size(topics, token.api_version)

            if throttle.must_fetch_nothing(token, size):
                self._answer_throttled(context, token)
                return
        answer = self.sessions.answer(context, reads)
        if isinstance(answer, ErrorCode):
            session_id = context.request.session_id
            self._reply(token, FetchResponse(error_code=answer, session_id=session_id))
            return
        session_id, reads = answer
        hinted = False
        for read in reads:
            if read.partition is not None:
                hinted |= self._finish(token, read.data, read.partition)
        endpoints: tuple[NodeEndpoint, ...] = ()
        if hinted:
            endpoints = (NodeEndpoint(*self._cluster.endpoint(token), self._cluster.rack),)
        self._reply(
            token,
            FetchResponse(
                session_id=session_id, responses=_topics_of(reads), node_endpoints=endpoints
            ),
        )

    def _answer_throttled(self, context: FetchContext, token: ReplyToken) -> None:
        """Nothing, and the client's session stays as it was: it asks for the same again."""
        session = context.session
        session_id = NO_SESSION if session is None else session.session_id
        error_code = ErrorCode.NONE
        if session is not None and session.epoch != context.epoch:
            error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self._reply(token, FetchResponse(error_code=error_code, session_id=session_id))

    def _finish(self, token: ReplyToken, data: PartitionData, partition: Partition) -> bool:
        """Adapt the result to the version; True if the response must have the leader's address."""
        if data.records:
            self._observe(RecordsFetched(partition.topic_partition, len(data.records)))
            return False
        if data.error_code is ErrorCode.NONE:
            return False
        if (
            data.error_code is ErrorCode.KAFKA_STORAGE_ERROR
            and token.api_version <= LAST_VERSION_WITHOUT_STORAGE_ERROR
        ):
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # which those clients retry
        leader_moved = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        if token.api_version < FIRST_VERSION_WITH_HINTS or data.error_code not in leader_moved:
            return False
        epoch = NO_EPOCH if partition.log is None else partition.log.leader_epoch
        data.current_leader = LeaderIdAndEpoch(self._cluster.node_id, epoch)
        return True


def _topics_of(reads: Iterable[LogReadResult]) -> list[FetchableTopicResponse]:
    """Partitions of one topic that follow each other share an entry."""
    return [
        FetchableTopicResponse(name or TopicName(""), topic_id, [read.data for read in of_topic])
        for (name, topic_id), of_topic in groupby(
            reads, lambda read: (read.requested.name, read.requested.topic_id)
        )
    ]


def _error_for_all(request: FetchRequest, error_code: ErrorCode) -> FetchResponse:
    return FetchResponse(
        error_code=error_code,
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [failed_partition(asked.partition, error_code, ()) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _forgotten(request: FetchRequest, *, by_id: bool) -> list[FetchKey]:
    return [
        (topic.topic_id if by_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]


def _awaited(read: LogReadResult, partition: Partition, size: int) -> FetchPartitionStatus:
    asked = read.requested.asked
    return FetchPartitionStatus(
        partition,
        size,
        read.written_bytes,
        asked.partition_max_bytes,
        asked.fetch_offset,
        read.data.last_stable_offset,
    )


def _readable_bytes(request: FetchRequest, read: LogReadResult, min_bytes: int) -> int:
    """What counts for min_bytes: up to the limit, also where the limit is within a batch.

    Kafka sends a part of that batch, so there the bytes that are sent are those that count.
    """
    size = read.size
    if size >= min_bytes or read.limit <= size:
        return size
    data = read.data
    is_committed = request.isolation_level == READ_COMMITTED
    end = data.last_stable_offset if is_committed else data.high_watermark
    next_offset = read.requested.asked.fetch_offset
    for _, header in iter_batches(data.records or b""):
        next_offset = header.next_offset
    return read.limit if next_offset < end else size


def _bytes_of(reads: Sequence[LogReadResult] | None) -> int:
    return sum(read.size for read in reads or ())
