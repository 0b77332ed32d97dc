"""TransactionCoordinator: finds the shard of each request, and refuses what no shard can answer.

The entry of the package: `handlers` has a handler for each API, `add_or_verify` is for Produce and
TxnOffsetCommit. It checks what can be checked without the transactional id's state, finds the
partition (Kafka's hash of the id) and passes a command to its shard. Partitions and the source of
producer ids may answer at any time, without saying what time it is: what follows is kept, and run
at the end of the turn that is under way, or by `tick`, for which `wake` asks. A bug in a decision
fails its request; a failure after something was changed ends the shard, which the broker loads
again. Kafka's counterpart: `TransactionCoordinator`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from protocol.messages import Response
from protocol.names import ErrorCode, ProducerId, TransactionalId
from protocol.primitives import fits_string
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.java_hash import partition_of
from seams.next_deadline import NextDeadline
from seams.now import Now
from seams.producer_ids import ProducerIdSource
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView
from seams.transactions import Done as PartitionsDone
from seams.transactions import TransactionPartitions
from storage.api import Log, LoggedRecord, Position, TopicPartition
from storage.batch.control_batch import logged_records
from transactions.commands import AddPartitions, TransactionCommand
from transactions.decision_failed import TransactionDecisionFailed
from transactions.events import TransactionEvent, TransactionsLoadFailed
from transactions.outcome import TransactionAnswer
from transactions.requests import CLIENT_TRANSACTION_VERSION, TransactionRequests
from transactions.settings import TransactionSettings
from transactions.shard import Client, TransactionShard
from transactions.shard_context import IdCount, TransactionShardContext, TurnStep
from transactions.transaction import AnswerDone, OpenTransaction, Transaction, open_transaction


def _raise(_partition: int, failure: Exception) -> None:
    raise failure


def _nothing() -> None:
    pass


def _newest_version() -> int:
    return CLIENT_TRANSACTION_VERSION


class _Once:
    """The answer to one request; knows whether it was given."""

    __slots__ = ("_answer", "is_answered")

    def __init__(self, answer: AnswerDone) -> None:
        self._answer = answer
        self.is_answered = False

    def __call__(self, answer: TransactionAnswer) -> None:
        assert not self.is_answered, "answered twice"
        self.is_answered = True
        self._answer(answer)


class TransactionCoordinator:
    """All partitions of `__transaction_state`, as far as they are ours.

    The topic may not exist yet: `partition_count` is set when it does.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        partitions: TransactionPartitions,
        producer_ids: ProducerIdSource,
        topics: TopicsView,
        reply: Callable[[ReplyToken, Response], None],
        observe: Callable[[TransactionEvent], None],
        shard_failed: Callable[[int, Exception], None] = _raise,
        wake: Callable[[], None] = _nothing,
        transaction_version: Callable[[], int] = _newest_version,
        authorizer: Authorizer = ALLOW_ALL,
        unsynced_data_lost: bool = False,
    ) -> None:
        """`shard_failed` is called when a bug ended a shard: its partition has to be loaded again.

        `wake` asks for a `tick` as soon as possible. `unsynced_data_lost`: since the last run the
        machine lost what was not synced; see `unsettled_partitions`.
        """
        self._settings = settings
        self.records_of = logged_records  # of a batch, for `load`; called in a thread
        self.quick_records_of: Callable[[bytes], Sequence[LoggedRecord] | None] | None = None
        self._observe = observe
        self._shard_failed = shard_failed
        self._wake = wake
        self._active: list[TransactionShard | None] = []
        self._loading: dict[int, TransactionShard] = {}
        self._next_deadline = NextDeadline()
        self.watch_deadline = self._next_deadline.watch  # steps wake by themselves
        self._id_count = IdCount()
        self._steps: deque[tuple[int, TurnStep]] = deque()
        self._is_in_turn = False
        self._unsynced_data_lost = unsynced_data_lost
        self._unsettled: set[int] = set()
        self._context = TransactionShardContext(
            settings,
            partitions,
            producer_ids,
            transaction_version,
            observe,
            self._post,
            self._unsettled.discard,
            self._next_deadline,
            self._id_count,
        )
        requests = TransactionRequests(
            settings,
            self,
            producer_ids=producer_ids,
            topics=topics,
            authorizer=authorizer,
            reply=reply,
        )
        self.handlers = requests.handlers

    # ------------------------------------------------------------ the topic

    @property
    def partition_count(self) -> int:
        """Of `__transaction_state`; 0 while it does not exist."""
        return len(self._active)

    @partition_count.setter
    def partition_count(self, count: int) -> None:
        if count == len(self._active):
            return
        assert not self._active, "the number of partitions of __transaction_state never changes"
        self._active.extend([None] * count)
        if self._unsynced_data_lost:
            self._unsettled.update(range(count))

    def partition_for(self, transactional_id: str) -> int:
        return partition_of(transactional_id, len(self._active))

    # ------------------------------------------------------------ requests

    def disconnected(self, token: ReplyToken, now: Now) -> None:
        """The client of a request went away. Nothing changes: what it asked for takes its course.

        An open transaction waits for its timeout, because a producer may come back.
        """

    def turn(
        self, command: TransactionCommand, answer: AnswerDone, token: ReplyToken, now: Now
    ) -> None:
        """Let the shard of the transactional id carry out a client's command."""
        transactional_id = command.transactional_id
        error_code = self.absence(transactional_id)
        if error_code is not ErrorCode.NONE:
            answer(TransactionAnswer(error_code))
            return
        shard = self._active[self.partition_for(transactional_id)]
        assert shard is not None
        client = Client(token.client_id, token.client_host)
        self._carry_out(shard, answer, now, lambda done: shard.turn(command, done, now, client))

    def _carry_out(
        self,
        shard: TransactionShard,
        answer: AnswerDone,
        now: Now,
        act: Callable[[AnswerDone], None],
    ) -> None:
        """A bug in the decision fails the request alone; one in what follows ends the shard."""
        once = _Once(answer)
        with self._in_turn(now):
            try:
                act(once)
            except TransactionDecisionFailed as failed:
                once(TransactionAnswer(ErrorCode.UNKNOWN_SERVER_ERROR))
                raise failed.failure from None
            except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
                self._close(shard.partition, now)
                try:
                    if not once.is_answered:
                        once(TransactionAnswer(ErrorCode.NOT_COORDINATOR))
                finally:
                    self._shard_failed(shard.partition, failure)

    def absence(self, transactional_id: str) -> ErrorCode:
        """Why there is no shard for it; NONE if there is one."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not fits_string(transactional_id):
            return ErrorCode.UNKNOWN_SERVER_ERROR  # no record can hold it
        if not self._active:
            return ErrorCode.NOT_COORDINATOR
        partition = self.partition_for(transactional_id)
        if self._active[partition] is not None:
            return ErrorCode.NONE
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    # ------------------------------------------------------------ Produce and TxnOffsetCommit

    def add_or_verify(
        self,
        transactional_id: TransactionalId,
        producer_id: ProducerId,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        now: Now,
        done: PartitionsDone,
        /,
        *,
        add: bool,
        wait: bool,
    ) -> None:
        """Implements TransactionVerifier."""
        if not add:
            found = self.verify(transactional_id, producer_id, producer_epoch, partitions)
            done({at: _epoch_error(error_code) for at, error_code in found.items()})
            return
        error_code = self.absence(transactional_id)
        if error_code is not ErrorCode.NONE:
            done(dict.fromkeys(partitions, error_code))
            return
        shard = self._active[self.partition_for(transactional_id)]
        assert shard is not None
        named = frozenset(partitions)
        version = CLIENT_TRANSACTION_VERSION
        command = AddPartitions(transactional_id, producer_id, producer_epoch, named, version)
        wait_ms = self._settings.add_partitions_to_txn_retry_backoff_max_ms if wait else 0

        def added(answer: TransactionAnswer) -> None:
            done(dict.fromkeys(partitions, _epoch_error(answer.error_code)))

        self._carry_out(
            shard,
            added,
            now,
            lambda once: shard.add_or_wait(command, once, now.mono_ms + wait_ms, now),
        )

    def verify(
        self,
        transactional_id: TransactionalId,
        producer_id: ProducerId,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
    ) -> Mapping[TopicPartition, ErrorCode]:
        error_code = self.absence(transactional_id)
        if error_code is not ErrorCode.NONE:
            return dict.fromkeys(partitions, error_code)
        shard = self._active[self.partition_for(transactional_id)]
        assert shard is not None
        return shard.verify(transactional_id, producer_id, producer_epoch, partitions)

    # ------------------------------------------------------------ partitions come and go

    def begin_load(self, partition: int, log: Log) -> None:
        """From now on the partition is ours, and loading."""
        assert partition not in self._loading, f"partition {partition} is loading already"
        assert self._active[partition] is None, f"partition {partition} is served already"
        self._loading[partition] = TransactionShard(partition, log, self._context)

    def load_from(self, partition: int, load_start: object) -> None:  # noqa: ARG002
        """Forget what was loaded of it so far. There are no snapshots: the whole log follows."""
        self._loading[partition].load_from_start()

    def load(self, partition: int, records: Sequence[LoggedRecord], next_offset: int) -> None:
        """A slice of the log, up to `next_offset`. May raise UnreadableTransactionRecord:
        `fail_load` then."""
        shard = self._loading[partition]
        shard.load(records)
        shard.loaded_to = next_offset

    def finish_load(self, partition: int, now: Now) -> None:
        """The log is read: served from now on. What was decided is completed without a client."""
        shard = self._loading.pop(partition)
        self._active[partition] = shard
        with self._in_turn(now), self._ending_on_failure(partition, now):
            shard.finish_load(now, unsynced_data_lost=partition in self._unsettled)

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def restore_slice(self, partition: int, now: Now, budget: int) -> bool:  # noqa: ARG002
        """Nothing is left to be restored after the load."""
        return False

    def load_left(self, partition: int) -> tuple[int, int]:  # noqa: ARG002
        """How many transactional ids are not ready yet, and what that takes, in bytes."""
        return 0, 0

    def fail_load(self, partition: int, reason: str) -> None:
        """It cannot be read: its requests get NOT_COORDINATOR until it is loaded again."""
        del self._loading[partition]
        self._observe(TransactionsLoadFailed(partition, reason))

    def resign(self, partition: int, now: Now) -> None:
        """The partition is not ours any more."""
        if self._loading.pop(partition, None) is None:
            self._close(partition, now)

    def on_stored(self, partition: int, position: Position, now: Now) -> None:
        """Everything before `position` is durable."""
        shard = self._active[partition]
        if shard is None:
            return  # it was stored for a shard that has ended since
        with self._in_turn(now), self._ending_on_failure(partition, now):
            shard.on_stored(position, now)

    def on_log_failed(self, partition: int, now: Now) -> None:
        """What is not stored by now never will be. The broker loads what is there."""
        self._close(partition, now)

    def _close(self, partition: int, now: Now) -> None:
        shard = self._active[partition]
        if shard is not None:
            self._active[partition] = None  # first: the answers below may bring new requests
            shard.close(now)

    @property
    def unsettled_partitions(self) -> int:
        """After a loss of unsynced data: how many partitions still have transactions to abort.

        While there are any, the next start must get `unsynced_data_lost` again.
        """
        return len(self._unsettled)

    # ------------------------------------------------------------ time, and what follows a turn

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is due; it may find that it came in vain."""
        return 0 if self._steps else self._next_deadline.at_ms

    def tick(self, now: Now) -> None:
        with self._in_turn(now):
            self._next_deadline.at_ms = None
            for partition, shard in enumerate(self._active):
                if shard is None:
                    continue
                deadline_ms = shard.next_deadline_ms()
                if deadline_ms is not None and deadline_ms <= now.mono_ms:
                    with self._ending_on_failure(partition, now):
                        shard.tick(now)
                    deadline_ms = shard.next_deadline_ms()
                if deadline_ms is not None:
                    self._next_deadline.lower(deadline_ms)

    def _post(self, partition: int, step: TurnStep) -> None:
        self._steps.append((partition, step))
        if not self._is_in_turn:
            self._wake()

    @contextmanager
    def _in_turn(self, now: Now) -> Iterator[None]:
        """What is posted meanwhile is run at the end."""
        if self._is_in_turn:
            yield
            return
        self._is_in_turn = True
        try:
            yield
        finally:
            try:
                while self._steps:
                    partition, step = self._steps.popleft()
                    with self._ending_on_failure(partition, now):
                        step(now)
            finally:
                self._is_in_turn = False

    @contextmanager
    def _ending_on_failure(self, partition: int, now: Now) -> Iterator[None]:
        """A bug: what the shard has in memory may be wrong, so it is closed and loaded again."""
        try:
            yield
        except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
            if isinstance(failure, TransactionDecisionFailed):
                failure = failure.failure
            self._close(partition, now)
            self._shard_failed(partition, failure)

    # ------------------------------------------------------------ for metrics and the console

    @property
    def transactional_ids(self) -> int:
        """How many there are."""
        return self._id_count.ids

    def transactions(self) -> Iterator[Transaction]:
        """Of every transactional id that is served here."""
        for shard in self._active:
            if shard is not None:
                yield from shard.transactions.values()

    def transaction(self, transactional_id: TransactionalId) -> Transaction | None:
        if not self._active:
            return None
        shard = self._active[self.partition_for(transactional_id)]
        return None if shard is None else shard.transactions.get(transactional_id)

    def open_transactions(self) -> list[OpenTransaction]:
        """Those that are not completed."""
        return [
            open_transaction(transaction)
            for shard in self._active
            if shard is not None
            for transaction in shard.open.values()
        ]


def _epoch_error(error_code: ErrorCode) -> ErrorCode:
    """Producers know a fenced epoch in Produce and TxnOffsetCommit by the older error."""
    if error_code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error_code
