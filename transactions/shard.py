"""Transaction shard: one partition of `__transaction_state`; carries out what is decided.

A turn decides, and begins at most one transition: its record is appended, and only when that is
stored the transition is visible, its events are observed and its request is answered. Meanwhile the
transactional id is pending, and requests that would change it are refused, as in Kafka. A commit is
appended only after the data of its partitions is synced. A stored decision leads to markers; these
are tried until every partition has its marker, and then Complete* is appended (ending.py).

No call waits for anything. Partitions and the source of producer ids answer by `post`, so that
turns cannot interleave. Kafka's counterpart: `TransactionStateManager.appendTransactionToLog`.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from typing import Final, NamedTuple

from msgspec.structs import replace

from protocol.names import OFFSETS_TOPIC, ErrorCode, ProducerId, TransactionalId
from seams.now import Now
from storage.api import Log, LoggedRecord, Position, Record, TopicPartition
from transactions import evolve
from transactions.commands import AbortTransaction, AddPartitions, TransactionCommand
from transactions.decide.expiry import is_id_expired
from transactions.decide.timeouts import is_timed_out
from transactions.decide.verify import verify_partitions
from transactions.decision_context import TransactionContext
from transactions.decision_failed import TransactionDecisionFailed
from transactions.decisions import decide_transaction
from transactions.ending import Ending
from transactions.events import (
    AbortCause,
    TransactionalIdExpired,
    TransactionsClosed,
    TransactionsLoaded,
)
from transactions.metadata import UNKNOWN_EPOCH, UNKNOWN_PRODUCER_ID, TransactionState
from transactions.outcome import TransactionAnswer, Transition
from transactions.records import record_bytes_at_most, tombstone, transaction_record
from transactions.restore import Restore
from transactions.shard_context import TransactionShardContext, TurnStep
from transactions.transaction import AnswerDone, Transaction

FULL_LOG_RETRY_MS: Final = 100
"""While the log takes nothing, what has to be written is tried again after this."""

EXPIRED_IDS_PER_TICK_MAX: Final = 500
"""Tombstones of one tick and one batch: about 2 ms. The next tick follows at once."""

END_BYTES_MAX: Final = 64
"""The record that ends a transaction may be longer by this than the one that added its last
partition; room for it is kept, or the transaction could not be ended."""

_CONCURRENT: Final = TransactionAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
_NO_ROOM: Final = TransactionAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_CLOSED: Final = TransactionAnswer(ErrorCode.NOT_COORDINATOR)


class Client(NamedTuple):
    """Who asks, for people."""

    client_id: str = ""
    client_host: str = ""


NOBODY: Final = Client()


class _Waiter(NamedTuple):
    """A request that is asked again when no transition is pending any more."""

    until_ms: int
    command: AddPartitions
    done: AnswerDone


class TransactionShard:
    """The transactional ids of one partition, and everything that waits on them."""

    def __init__(self, partition: int, log: Log, context: TransactionShardContext) -> None:
        self.partition = partition
        self.transactions: dict[TransactionalId, Transaction] = {}
        self.open: dict[TransactionalId, Transaction] = {}
        self.loaded_to: Position = 0
        self._log = log
        self._context = context
        self._settings = context.settings
        self._observe = context.observe
        self._restore = Restore()
        self._stored: deque[tuple[Position, TurnStep]] = deque()
        self._timers: list[tuple[int, int, TurnStep]] = []
        self._timer_number = 0
        self._waiting: dict[TransactionalId, list[_Waiter]] = {}
        self._must_abort: set[TransactionalId] = set()  # their data may be lost
        self._retries_aborts = False  # a timer for all of them is set
        self._abort_check_ms: int | None = None
        self._expiry_check_ms: int | None = None
        self._is_closed = False
        self._ending = Ending(
            context.partitions,
            log,
            context.observe,
            post=self._post,
            at=self._at,
            append=self._append,
        )

    # ------------------------------------------------------------ turns

    def turn(
        self,
        command: TransactionCommand,
        done: AnswerDone,
        now: Now,
        client: Client = NOBODY,
        producer_id: ProducerId | None = None,
    ) -> None:
        """Carry out one command. Raises TransactionDecisionFailed if nothing was changed."""
        transactional_id = command.transactional_id
        if self._is_closed:
            done(_CLOSED)
            return
        if transactional_id in self._must_abort and not isinstance(command, AbortTransaction):
            done(_CONCURRENT)  # it is aborted first, as soon as the log takes that
            return
        transaction = self.transactions.get(transactional_id)
        is_full = self._context.id_count.ids >= self._settings.transactional_ids_max
        context = TransactionContext(self._context.transaction_version(), is_full, producer_id)
        try:
            outcome = decide_transaction(transaction, command, now, context)
        except Exception as failure:
            raise TransactionDecisionFailed(failure) from failure
        if outcome.needs_producer_id:
            self._take_producer_id(command, done, client)
        elif outcome.transition is not None:
            self._begin(transaction, outcome.transition, done, client, now)
        else:
            assert outcome.answer is not None
            done(outcome.answer)

    def _take_producer_id(
        self, command: TransactionCommand, done: AnswerDone, client: Client
    ) -> None:
        """Decide again with a new producer id; meanwhile something else may be decided."""

        def taken(producer_id: ProducerId | None) -> None:
            if producer_id is None:  # as Kafka answers while it has none
                done(TransactionAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            elif self._is_closed:
                done(_CLOSED)
            else:
                self._context.post(self.partition, partial(again, producer_id))

        def again(producer_id: ProducerId, now: Now) -> None:
            if self._is_closed:
                done(_CLOSED)
                return
            with _answering_failures(done):
                self.turn(command, done, now, client, producer_id)

        self._context.producer_ids.take(taken)

    def _begin(
        self,
        transaction: Transaction | None,
        transition: Transition,
        done: AnswerDone,
        client: Client,
        now: Now,
    ) -> None:
        target = transition.target
        if not self._log.has_room():
            done(_NO_ROOM)
            return
        if self._is_too_large(transition):
            done(
                TransactionAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
            )  # as Kafka, of RECORD_LIST_TOO_LARGE
            return
        if transaction is None:
            created = replace(
                target, producer_epoch=UNKNOWN_EPOCH, previous_producer_id=UNKNOWN_PRODUCER_ID
            )
            transaction = self._add(Transaction(created))
        evolve.begin(transaction, target.state, done)
        if client is not NOBODY:
            evolve.asked_by(transaction, *client)
        if target.state is TransactionState.PREPARE_COMMIT and target.partitions:
            self._ending.sync(
                transaction,
                target,
                partial(self._append, transaction, transition),
                partial(self._give_up, transaction),
            )
        else:
            self._append(transaction, transition, now)

    def _is_too_large(self, transition: Transition) -> bool:
        """Would its record not fit, or leave no room for the one that ends the transaction?"""
        if transition.target.state is not TransactionState.ONGOING:
            return False
        record = transaction_record(transition.target, self._context.transaction_version())
        return record_bytes_at_most(record) + END_BYTES_MAX > self._settings.max_batch_bytes

    def _append(self, transaction: Transaction, transition: Transition, now: Now) -> None:
        record = transaction_record(transition.target, self._context.transaction_version())
        position = self._log.append((record,), now.wall_ms)
        self._stored.append((position, partial(self._apply, transaction, transition)))

    def _give_up(self, transaction: Transaction, now: Now) -> None:
        """Nothing was appended: the transaction goes on, and its producer may ask again."""
        done = evolve.give_up(transaction)
        if done is not None:
            done(_NO_ROOM)
        self._wake(transaction, now)

    def _apply(self, transaction: Transaction, transition: Transition, now: Now) -> None:
        """The record is stored: the transition is visible."""
        done = evolve.apply(transaction, transition.target)
        transactional_id = transaction.metadata.transactional_id
        if transaction.metadata.is_open:
            self.open[transactional_id] = transaction
        else:
            self.open.pop(transactional_id, None)
        if transactional_id in self._must_abort:
            self._unsynced_aborted(transactional_id)
        if done is not None:
            done(transition.answer)
        for event in transition.events:
            self._observe(event)
        if transaction.metadata.is_prepared:
            self._ending.begin(transaction, now)
        else:
            self._wake(transaction, now)

    def _add(self, transaction: Transaction) -> Transaction:
        self.transactions[transaction.metadata.transactional_id] = transaction
        self._context.id_count.ids += 1
        return transaction

    # ------------------------------------------------------------ Produce and TxnOffsetCommit

    def verify(
        self,
        transactional_id: TransactionalId,
        producer_id: ProducerId,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
    ) -> Mapping[TopicPartition, ErrorCode]:
        if transactional_id in self._must_abort:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        transaction = self.transactions.get(transactional_id)
        return verify_partitions(transaction, producer_id, producer_epoch, partitions)

    def add_or_wait(
        self, command: AddPartitions, done: AnswerDone, until_ms: int, now: Now
    ) -> None:
        """Add the partitions; while another transition is pending, wait for it until then."""

        def answered(answer: TransactionAnswer) -> None:
            transaction = self.transactions.get(command.transactional_id)
            if (
                answer.error_code is not ErrorCode.CONCURRENT_TRANSACTIONS
                or now.mono_ms >= until_ms
                or transaction is None
                or transaction.pending is None
            ):
                done(answer)
                return
            waiter = _Waiter(until_ms, command, done)
            self._waiting.setdefault(command.transactional_id, []).append(waiter)
            self._at(until_ms, partial(self._end_waiting, command.transactional_id))

        self.turn(command, answered, now)

    def _wake(self, transaction: Transaction, now: Now) -> None:
        """No transition is pending: ask those again that waited for that."""
        transactional_id = transaction.metadata.transactional_id
        waiters = deque(self._waiting.pop(transactional_id, ()))
        try:
            while waiters:
                waiter = waiters.popleft()
                with _answering_failures(waiter.done):
                    self.add_or_wait(waiter.command, waiter.done, waiter.until_ms, now)
        finally:
            if waiters:  # one failed: `close`, which is what comes next, answers the others
                self._waiting.setdefault(transactional_id, []).extend(waiters)

    def _end_waiting(self, transactional_id: TransactionalId, now: Now) -> None:
        waiters = self._waiting.pop(transactional_id, [])
        left = [waiter for waiter in waiters if waiter.until_ms > now.mono_ms]
        if left:
            self._waiting[transactional_id] = left
        for waiter in waiters:
            if waiter.until_ms <= now.mono_ms:
                waiter.done(_CONCURRENT)

    # ------------------------------------------------------------ time

    def tick(self, now: Now) -> None:
        while self._timers and self._timers[0][0] <= now.mono_ms:
            heappop(self._timers)[2](now)
        if self._abort_check_ms is not None and self._abort_check_ms <= now.mono_ms:
            interval = self._settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
            self._abort_check_ms = now.mono_ms + interval
            self._abort_timed_out(now)
        if self._expiry_check_ms is not None and self._expiry_check_ms <= now.mono_ms:
            interval = self._settings.transaction_remove_expired_transaction_cleanup_interval_ms
            pause = self._expire(now)
            self._expiry_check_ms = now.mono_ms + (interval if pause is None else pause)

    def next_deadline_ms(self) -> int | None:
        deadlines = [self._abort_check_ms, self._expiry_check_ms]
        if self._timers:
            deadlines.append(self._timers[0][0])
        return min((d for d in deadlines if d is not None), default=None)

    def _at(self, due_ms: int, step: TurnStep) -> None:
        self._timer_number += 1
        heappush(self._timers, (due_ms, self._timer_number, step))
        self._context.next_deadline.lower(due_ms)

    def _post(self, step: TurnStep) -> None:
        """Run the step soon, unless the shard was closed meanwhile."""

        def run(now: Now) -> None:
            if not self._is_closed:
                step(now)

        self._context.post(self.partition, run)

    def _abort_timed_out(self, now: Now) -> None:
        """One that cannot be aborted now, for want of room in the log, is found again."""
        overdue = [
            transactional_id
            for transactional_id, transaction in self.open.items()
            if is_timed_out(transaction, now)
        ]
        for transactional_id in overdue:
            self.turn(AbortTransaction(transactional_id, AbortCause.TIMEOUT), _ignore, now)

    def _expire(self, now: Now) -> int | None:
        """Write the tombstones of expired ids; the pause before the rest of them, None if that is
        all."""
        if not self._log.has_room():
            return FULL_LOG_RETRY_MS
        expiration_ms = self._settings.transactional_id_expiration_ms
        expired: list[Transaction] = []
        records: list[Record] = []
        size = 0
        for transactional_id, transaction in self.transactions.items():
            if not is_id_expired(transaction, now, expiration_ms):
                continue
            record = tombstone(transactional_id)
            size += record_bytes_at_most(record)
            if records and (
                len(records) == EXPIRED_IDS_PER_TICK_MAX or size > self._settings.max_batch_bytes
            ):
                break
            records.append(record)
            expired.append(transaction)
        else:
            if not records:
                return None
        for transaction in expired:
            evolve.begin(transaction, TransactionState.DEAD, None)
        position = self._log.append(records, now.wall_ms)
        self._stored.append((position, partial(self._forget, expired)))
        return 0

    def _forget(self, expired: Iterable[Transaction], now: Now) -> None:
        for transaction in expired:
            metadata = transaction.metadata
            del self.transactions[metadata.transactional_id]
            self._context.id_count.ids -= 1
            self._observe(
                TransactionalIdExpired(
                    metadata.transactional_id,
                    metadata.producer_id,
                    now.wall_ms,
                    metadata.last_update_at_ms,
                )
            )
            self._wake(transaction, now)

    # ------------------------------------------------------------ the disk

    def on_stored(self, position: Position, now: Now) -> None:
        """Everything before `position` is durable."""
        while self._stored and self._stored[0][0] <= position:
            self._stored.popleft()[1](now)

    # ------------------------------------------------------------ the load

    def load_from_start(self) -> None:
        """The whole log follows."""
        self._restore = Restore()

    def load(self, records: Iterable[LoggedRecord]) -> None:
        """Raises UnreadableTransactionRecord."""
        self._restore.apply(records)

    def finish_load(self, now: Now, *, unsynced_data_lost: bool) -> None:
        """The log is read: complete what was decided; see `_abort_unsynced` for the flag."""
        restored, self._restore = self._restore, Restore()
        for metadata in restored.metadata.values():
            transaction = self._add(Transaction(metadata))
            if metadata.is_open:
                self.open[metadata.transactional_id] = transaction
        prepared = [found for found in self.open.values() if found.metadata.is_prepared]
        settings, deadline = self._settings, self._context.next_deadline
        self._abort_check_ms = (
            now.mono_ms + settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        )
        self._expiry_check_ms = (
            now.mono_ms + settings.transaction_remove_expired_transaction_cleanup_interval_ms
        )
        deadline.lower(min(self._abort_check_ms, self._expiry_check_ms))
        self._observe(
            TransactionsLoaded(
                self.partition,
                now.wall_ms,
                len(self.transactions),
                len(self.open),
                len(prepared),
                self.loaded_to,
                tuple(restored.skipped),
            )
        )
        for transaction in prepared:
            self._ending.begin(transaction, now)
        if unsynced_data_lost:
            self._must_abort.update(self._with_unsynced_data())
            self._abort_unsynced(now)

    def _with_unsynced_data(self) -> Iterator[TransactionalId]:
        """Ongoing ones with records outside of journaled logs."""
        for transactional_id, transaction in self.open.items():
            metadata = transaction.metadata
            if metadata.state is TransactionState.ONGOING and any(
                partition.topic != OFFSETS_TOPIC for partition in metadata.partitions
            ):
                yield transactional_id

    def _abort_unsynced(self, now: Now) -> None:
        """After a power failure: the records of an ongoing transaction may be gone, although its
        producer was told that they were written. So it must not be committed any more."""
        self._retries_aborts = False
        if not self._must_abort:
            self._context.unsynced_aborted(self.partition)
        for transactional_id in tuple(self._must_abort):
            command = AbortTransaction(transactional_id, AbortCause.UNSYNCED_DATA)
            self.turn(command, self._unsynced_abort_answered, now)

    def _unsynced_abort_answered(self, answer: TransactionAnswer) -> None:
        """Try all that are left again if it was refused, unless it is under way."""
        is_refused = answer.error_code not in (
            ErrorCode.NONE,
            ErrorCode.CONCURRENT_TRANSACTIONS,
        )
        if is_refused and not self._retries_aborts:
            self._retries_aborts = True
            self._post(lambda now: self._at(now.mono_ms + FULL_LOG_RETRY_MS, self._abort_unsynced))

    def _unsynced_aborted(self, transactional_id: TransactionalId) -> None:
        """Its abort is stored, whatever the cause: its timeout may have come first."""
        self._must_abort.discard(transactional_id)
        if not self._must_abort:
            self._context.unsynced_aborted(self.partition)

    # ------------------------------------------------------------ the end

    def close(self, now: Now) -> None:
        """Stop serving: every request that waits is answered with NOT_COORDINATOR.

        What was not stored is undone by loading the partition again.
        """
        self._is_closed = True
        waiting = [
            transaction.done
            for transaction in self.transactions.values()
            if transaction.done is not None
        ]
        waiting.extend(waiter.done for waiters in self._waiting.values() for waiter in waiters)
        self._waiting.clear()
        self._stored.clear()
        self._timers.clear()
        self._abort_check_ms = self._expiry_check_ms = None
        count = len(self.transactions)
        self._context.id_count.ids -= count
        self.transactions = {}
        self.open = {}
        for done in waiting:
            done(_CLOSED)
        self._observe(TransactionsClosed(self.partition, now.wall_ms, count))


@contextmanager
def _answering_failures(done: AnswerDone) -> Iterator[None]:
    """Of a decision outside of the request's own call, where nobody else would answer it."""
    try:
        yield
    except TransactionDecisionFailed as failed:
        done(TransactionAnswer(ErrorCode.UNKNOWN_SERVER_ERROR))
        raise failed.failure from None


def _ignore(_answer: TransactionAnswer) -> None:
    """Nobody asked."""
