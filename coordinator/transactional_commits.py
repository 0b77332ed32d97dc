"""Transactional commits: offsets that are committed with a producer's transaction.

TxnOffsetCommit is asked of the transaction coordinator first: is the partition of the group in the
producer's transaction (from version 5 on it is put there)? Its answer may come later, so the group
is looked up and asked after that. Between that answer and the append nothing can happen, so no
commit slips in behind the marker of its transaction: Kafka needs a verification guard for that.
Also the partitions' side of markers, and what readers of the offsets topic need to know of its
transactions. Kafka's counterparts: `CoordinatorRuntime.scheduleTransactionalWriteOperation`,
`AddPartitionsToTxnManager`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from coordinator.markers import AGAIN, MarkerDone
from coordinator.offsets.log_producers import LogProducer, LogProducers
from coordinator.offsets.txn_offset_commit import (
    TxnOffsetCommit,
    txn_offset_commit_of,
    txn_offset_commit_refusal,
)
from coordinator.pending_answers import Send
from coordinator.shard import Shard
from protocol.messages import Request
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from protocol.names import OFFSETS_TOPIC, ApiKey, ErrorCode, TransactionalId
from protocol.primitives import fits_string
from seams.authorizer import Authorizer
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView
from seams.transactions import PartitionErrors, TransactionMarker, TransactionVerifier
from storage.api import TopicPartition

_ADD_SINCE: Final = 5
_TRANSACTION_ABORTABLE_SINCE: Final = 4


class Serve(Protocol):
    """`GroupCoordinator._serve`: lets the shard of the request's group act, or refuses it."""

    def __call__(
        self,
        request: TxnOffsetCommitRequest,
        token: ReplyToken,
        now: Now,
        act: Callable[[Shard, TxnOffsetCommitRequest, ReplyToken, Now], None],
        /,
    ) -> None: ...


class TransactionalCommits:
    """Reads the coordinator's own table of shards; changes nothing in it."""

    def __init__(
        self,
        active: Sequence[Shard | None],
        topics: TopicsView,
        verifier: TransactionVerifier | None,
        authorizer: Authorizer,
        *,
        serve: Serve,
        reply: Send,
        fail: Callable[[Shard, Exception, Now], None],
    ) -> None:
        """`fail` ends a shard after a bug. Without a verifier the API is not served."""
        self._active = active
        self._topics = topics
        self._verifier = verifier
        self._authorizer = authorizer
        self._serve = serve
        self._reply = reply
        self._fail = fail

    @property
    def handlers(self) -> Mapping[ApiKey, Handler]:
        return {} if self._verifier is None else {ApiKey.TXN_OFFSET_COMMIT: self.commit}

    # ------------------------------------------------------------ TxnOffsetCommit

    def commit(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, TxnOffsetCommitRequest)
        names = (topic.name for topic in request.topics)
        unreadable = self._authorizer.unreadable_topics(token, names)
        commit = txn_offset_commit_of(request, self._topics, unreadable)
        if not commit.known:
            self._refuse(commit, token, ErrorCode.NONE)
        elif not request.group_id:
            self._refuse(commit, token, ErrorCode.INVALID_GROUP_ID)
        elif not fits_string(request.group_id):
            self._refuse(commit, token, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            unknown: list[int] = []
            self._serve(request, token, now, partial(self._commit_or_verify, commit, unknown))
            if unknown:
                self._verify(commit, unknown[0], token, now)

    def _commit_or_verify(
        self,
        commit: TxnOffsetCommit,
        unknown: list[int],
        shard: Shard,
        _request: TxnOffsetCommitRequest,
        token: ReplyToken,
        now: Now,
    ) -> None:
        """A transaction that the log has needs no verification; else note the partition."""
        producers = shard.transactions.producers
        if producers.has_open(*commit.producer) or producers.is_fenced(*commit.producer):
            shard.txn_offset_commit(commit, token, now)
        else:
            unknown.append(shard.partition)

    def _verify(self, commit: TxnOffsetCommit, partition: int, token: ReplyToken, now: Now) -> None:
        request = commit.request
        assert self._verifier is not None
        verification = _Verification(self, commit, partition, token, now)
        self._verifier.add_or_verify(
            TransactionalId(request.transactional_id),
            request.producer_id,
            request.producer_epoch,
            (verification.place,),
            now,
            verification.answered,
            add=token.api_version >= _ADD_SINCE,
            wait=False,
        )
        verification.asked()

    def verified(self, commit: TxnOffsetCommit, token: ReplyToken, now: Now) -> None:
        """Let the group decide, whatever has happened to it since."""

        def append(
            shard: Shard, _request: TxnOffsetCommitRequest, token: ReplyToken, now: Now
        ) -> None:
            shard.txn_offset_commit(commit, token, now)

        self._serve(commit.request, token, now, append)

    def refused(self, commit: TxnOffsetCommit, token: ReplyToken, error_code: ErrorCode) -> None:
        """By the transaction coordinator."""
        self._refuse(commit, token, _for_version(error_code, token.api_version))

    def _refuse(self, commit: TxnOffsetCommit, token: ReplyToken, error_code: ErrorCode) -> None:
        self._reply(token, txn_offset_commit_refusal(commit, token.api_version, error_code))

    def failed(self, partition: int, bug: Exception, now: Now) -> None:
        """A bug in a decision that no request's handler waits for."""
        shard = self._active[partition]
        if shard is not None:
            self._fail(shard, bug, now)

    # ------------------------------------------------------------ markers

    def write_marker(
        self, partition: int, marker: TransactionMarker, now: Now, done: MarkerDone
    ) -> None:
        """End a transaction in a partition; `done` is called once, with NONE when it is stored.

        UNKNOWN_TOPIC_OR_PARTITION: there is no such partition. TRANSACTION_COORDINATOR_FENCED,
        INVALID_PRODUCER_EPOCH: refused for good. NOT_LEADER_OR_FOLLOWER: to be tried again.
        """
        if not 0 <= partition < len(self._active):
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        shard = self._active[partition]
        if shard is None:
            done(AGAIN)
            return
        once = _Once(done)
        try:
            shard.markers.write(marker, now, once)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
            self._fail(shard, failure, now)
            once(AGAIN)

    # ------------------------------------------------------------ for readers of the topic

    def producers(self, partition: int) -> Mapping[int, LogProducer] | None:
        """Those that wrote transactions, for DescribeProducers; None if it is not served."""
        shard = self._active[partition]
        return None if shard is None else shard.transactions.producers.producers

    def aborted(self, partition: int) -> LogProducers | None:
        """What read_committed readers of a partition skip, as far as it was loaded by now and is
        written by its shard; None if it is not served.
        """
        shard = self._active[partition]
        return None if shard is None else shard.transactions.producers

    def cleaned(self, partition: int, up_to: int) -> None:
        """The log cleaner has removed all that was aborted below this offset."""
        shard = self._active[partition]
        if shard is not None:
            shard.transactions.producers.forget_aborted(up_to)


class _Verification:
    """One request, while the transaction coordinator is asked about it.

    A bug in what follows must not end in the transaction coordinator's turn. If the request's
    handler is still there, it gets the exception.
    """

    __slots__ = ("_bug", "_commit", "_commits", "_is_asked", "_now", "_token", "place")

    def __init__(
        self,
        commits: TransactionalCommits,
        commit: TxnOffsetCommit,
        partition: int,
        token: ReplyToken,
        now: Now,
    ) -> None:
        self._commits = commits
        self._commit = commit
        self._token = token
        self._now = now
        self._is_asked = False
        self._bug: Exception | None = None
        self.place = TopicPartition(OFFSETS_TOPIC, partition)

    def answered(self, errors: PartitionErrors) -> None:
        error_code = errors[self.place]
        if error_code is not ErrorCode.NONE:
            self._commits.refused(self._commit, self._token, error_code)
            return
        try:
            self._commits.verified(self._commit, self._token, self._now)
        except Exception as bug:  # noqa: BLE001 - it is reported by `asked`, or as a shard's end
            if self._is_asked:
                self._commits.failed(self.place.partition, bug, self._now)
            else:
                self._bug = bug

    def asked(self) -> None:
        self._is_asked = True
        if self._bug is not None:
            raise self._bug


class _Once:
    """Passes on the first answer only: a shard that fails has answered, or has not."""

    __slots__ = ("_done",)

    def __init__(self, done: MarkerDone) -> None:
        self._done: MarkerDone | None = done

    def __call__(self, error_code: ErrorCode) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(error_code)


def _for_version(error_code: ErrorCode, api_version: int) -> ErrorCode:
    """The transaction coordinator's answer, as the version knows it."""
    match error_code:
        case ErrorCode.TRANSACTION_ABORTABLE if api_version < _TRANSACTION_ABORTABLE_SINCE:
            return ErrorCode.INVALID_TXN_STATE
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.NETWORK_EXCEPTION:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        case _:
            return error_code
