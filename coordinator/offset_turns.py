"""Offset turns: what a shard does about the offsets of its groups, apart from OffsetCommit.

Transactional commits, OffsetFetch, OffsetDelete, DeleteGroups, expiry, and the deletion of topics.
Each finds the group, lets a decision see it with its pending offsets, and has the shard carry out
the outcome. OffsetCommit, the most frequent, is in shard.py.
Kafka's counterpart: `GroupCoordinatorShard`, the methods that call `OffsetMetadataManager`.
"""

from collections.abc import Callable, Iterable
from functools import partial

from coordinator.decision_failed import DecisionFailed
from coordinator.delete_groups import decide_delete_group
from coordinator.group_store import GroupStore
from coordinator.group_types import AnyGroup
from coordinator.offsets.deleted_topics import DeletedTopic
from coordinator.offsets.expire_offsets import decide_topic_deleted, ids_of
from coordinator.offsets.expiry import OffsetExpiry
from coordinator.offsets.namesakes import NamesakeCommit, pending_of, written_again
from coordinator.offsets.offset_delete import decide_offset_delete
from coordinator.offsets.offset_fetch import (
    NOTHING_UNSTABLE,
    Undescribable,
    Unstable,
    fetch_offsets_of_group,
)
from coordinator.offsets.txn_offset_commit import (
    TxnOffsetCommit,
    decide_txn_offset_commit,
    txn_offset_commit_refusal,
)
from coordinator.outcome import Outcome, Reply
from coordinator.shard_context import ShardContext
from protocol.messages.delete_groups import DeletableGroupResult
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from protocol.names import ErrorCode, GroupId
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Log, Position

CarryOut = Callable[[GroupId, AnyGroup | None, Outcome, Now], None]


class OffsetTurns:
    __slots__ = (
        "_authorizer",
        "_carry_out",
        "_log",
        "_restore",
        "_settings",
        "_store",
        "_topics",
    )

    def __init__(
        self,
        log: Log,
        store: GroupStore,
        context: ShardContext,
        *,
        restore: Callable[[GroupId, Now], None],
        carry_out: CarryOut,
    ) -> None:
        """`restore` gets a group ready that was loaded and that nobody asked for yet."""
        self._log = log
        self._store = store
        self._settings = context.settings
        self._topics = context.topics
        self._authorizer = context.consumer.authorizer
        self._restore = restore
        self._carry_out = carry_out

    # ------------------------------------------------------------ requests

    def txn_offset_commit(self, commit: TxnOffsetCommit, token: ReplyToken, now: Now) -> None:
        """The transaction coordinator has agreed."""
        is_fenced = self._store.transactions.producers.is_fenced(*commit.producer)
        settings, log = self._settings, self._log

        def decide(group: AnyGroup | None) -> Outcome:
            if is_fenced:
                refusal = txn_offset_commit_refusal(
                    commit, token.api_version, ErrorCode.INVALID_PRODUCER_EPOCH
                )
                return Outcome((Reply(token, refusal),))
            # The group is restored by now, which may have appended records.
            first_offset = log.end_position
            return decide_txn_offset_commit(group, commit, token, now, settings, first_offset)

        self._turn(commit.request.group_id, decide, now)

    def offset_delete(self, request: OffsetDeleteRequest, token: ReplyToken, now: Now) -> None:
        group_id, topics, authorizer = request.group_id, self._topics, self._authorizer
        pending = self._store.transactions.pending.of_group(group_id)
        self._turn(
            group_id,
            lambda group: decide_offset_delete(
                group, request, token, now, topics, pending, authorizer
            ),
            now,
        )

    def _turn(
        self, group_id: GroupId, decide: Callable[[AnyGroup | None], Outcome], now: Now
    ) -> None:
        self._restore(group_id, now)
        group = self._store.groups.get(group_id)
        try:
            outcome = decide(group)
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        self._carry_out(group_id, group, outcome, now)

    def fetch(
        self,
        wanted: OffsetFetchRequestGroup,
        token: ReplyToken,
        now: Now,
        *,
        require_stable: bool = False,
    ) -> tuple[OffsetFetchResponseGroup, Position]:
        """The group's offsets, and the position that must be stored before anybody is told."""
        group_id = wanted.group_id
        self._restore(group_id, now)
        group = self._store.groups.get(group_id)
        unstable: Unstable = NOTHING_UNSTABLE
        if require_stable:
            unstable = self._store.transactions.pending.of_group(group_id)
        undescribable: Undescribable | None = None
        if self._authorizer.is_enabled:
            undescribable = partial(self._authorizer.undescribable_topics, token)
        try:
            found = fetch_offsets_of_group(
                group, wanted, token.api_version, self._topics, unstable, undescribable
            )
        except Exception as failure:
            raise DecisionFailed(failure) from failure
        return found, self._store.offsets_position(group_id)

    def delete_groups(
        self, group_ids: Iterable[GroupId], token: ReplyToken, now: Now
    ) -> tuple[list[DeletableGroupResult], Position]:
        results: list[DeletableGroupResult] = []
        position = 0
        for group_id in group_ids:
            self._restore(group_id, now)
            group = self._store.groups.get(group_id)
            pending = self._store.transactions.pending.of_group(group_id)
            try:
                error_code, outcome = decide_delete_group(
                    group, now, token.client_id, token.client_host, pending, token.named_principal
                )
            except Exception as failure:
                if results:
                    raise  # those before it are gone by now
                raise DecisionFailed(failure) from failure
            self._carry_out(group_id, group, outcome, now)
            results.append(DeletableGroupResult(group_id, error_code))
            position = max(position, self._store.offsets_position(group_id))
        return results, position

    # ------------------------------------------------------------ chores

    def expire(self, expiry: OffsetExpiry, now: Now) -> None:
        """A slice of the sweep."""
        groups, pending = self._store.groups, self._store.transactions.pending.by_group
        for group_id, outcome in expiry.next_slice(groups, now, pending):
            self._carry_out(group_id, groups[group_id], outcome, now)

    def forget_topic(self, group_id: GroupId, topic: DeletedTopic, now: Now) -> None:
        self._restore(group_id, now)
        group = self._store.groups.get(group_id)
        pending = self._store.transactions.pending.of_group(group_id)
        if group is not None and (topic.name in group.offsets or topic.name in pending):
            outcome = decide_topic_deleted(group, topic, now, pending)
            before = pending_of(self._store.transactions.pending, group_id, topic.name)
            self._carry_out(group_id, group, outcome, now)
            self._keep_namesakes(group_id, group, topic, before, now)

    def _keep_namesakes(
        self,
        group_id: GroupId,
        group: AnyGroup,
        topic: DeletedTopic,
        before: Iterable[NamesakeCommit],
        now: Now,
    ) -> None:
        """Write again what the tombstones removed and what is not of the deleted topic."""
        pending, producers = self._store.transactions.pending, self._store.transactions.producers
        for commit in before:
            left = pending.of_group(group_id).get(topic.name, {}).get(commit.partition, {})
            if commit.producer_id in left or commit.offset.commit.topic_id in ids_of(topic):
                continue
            outcome = written_again(
                commit,
                group_id,
                topic.name,
                producers.producers,
                self._log.end_position,
                self._settings.offsets_value_version,
                now,
            )
            self._carry_out(group_id, group, outcome, now)
