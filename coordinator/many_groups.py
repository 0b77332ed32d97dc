"""Requests over many groups: which shards are asked, and how their parts become one answer.

OffsetFetch, ListGroups, DescribeGroups, ConsumerGroupDescribe and DeleteGroups name several groups,
or mean all of them.
Each shard that is concerned gives its part; the last part that is stored sends the answer
(combined_answer.py). A group whose id no record can hold does not exist: it is refused without
asking a shard. Kafka's counterpart: the methods of `GroupCoordinatorService` that call
`combineFutures`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, NamedTuple

from coordinator.combined_answer import CombinedAnswer, T
from coordinator.decision_failed import AnswerPending, DecisionFailed
from coordinator.describe_groups import classic_description, consumer_description
from coordinator.offsets.offset_fetch import (
    fetched_bytes,
    is_large,
    offset_fetch_response,
    refuse_offset_fetch,
    wanted_groups,
)
from coordinator.pending_answers import ClientAnswer, Send
from coordinator.refusals import (
    delete_refusals,
    describe_consumer_refusals,
    describe_refusals,
    fetch_refusals,
)
from coordinator.shard import Shard
from protocol.answer_budget import AnswerBudget
from protocol.messages import Request, Response
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from protocol.names import ErrorCode, GroupId
from protocol.primitives import fits_string
from seams.authorizer import Authorizer
from seams.java_hash import partition_of
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Position

ShardAnswer = tuple[Sequence[T], Position]
"""What a shard found, and the position that must be stored before it may be sent."""


NO_PARTITION: Final = -1
"""Of a question that is refused without asking a shard."""


def _may_be_consumer_group(group_id: GroupId) -> bool:
    """A classic group may have the empty id, for old clients."""
    return bool(group_id) and fits_string(group_id)


class ShardQuestion(NamedTuple, Generic[T]):
    """One part of a request: which partition is asked, how, and what stands for a refusal.

    `refusals` None: a refusal is one for the whole answer. `error_code`: refused already.
    """

    partition: int
    run: "Callable[[Shard], ShardAnswer[T] | ErrorCode]"
    refusals: Callable[[ErrorCode], Sequence[T]] | None = None
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchAnswer(ClientAnswer):
    """The answer about the only group of an OffsetFetch; a refusal of it needs the question."""

    __slots__ = ("_group",)

    def __init__(
        self, group: OffsetFetchRequestGroup, token: ReplyToken, response: Response, send: Send
    ) -> None:
        super().__init__(token, response, send)
        self._group = group

    def refuse(self, error_code: ErrorCode) -> None:
        self._send(self._token, _refused_fetch(self._group, self._token, error_code))


def _refused_fetch(
    group: OffsetFetchRequestGroup, token: ReplyToken, error_code: ErrorCode
) -> Response:
    version = token.api_version
    return offset_fetch_response((refuse_offset_fetch(group, version, error_code),), version)


class ManyGroups:
    """Reads the coordinator's own tables of shards; changes none of them."""

    def __init__(
        self,
        active: list[Shard | None],
        loading: dict[int, Shard],
        authorizer: Authorizer,
        *,
        absence: Callable[[int], ErrorCode],
        reply: Send,
        fail: Callable[[Shard, Exception, Now], None],
    ) -> None:
        """`absence` says why no shard serves a partition; `fail` ends a shard after a bug."""
        self._active = active
        self._loading = loading
        self._authorizer = authorizer
        self._absence = absence
        self._reply = reply
        self._fail = fail

    # ------------------------------------------------------------ the APIs

    def fetch_offsets(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, OffsetFetchRequest)
        version = token.api_version
        wanted = wanted_groups(request, version)
        if len(wanted) == 1:
            self._fetch_of_one(request, wanted[0], token, now)
            return
        budget = AnswerBudget()

        def build(found: list[tuple[int, OffsetFetchResponseGroup]], _: ErrorCode) -> Response:
            in_order = [group for _, group in sorted(found, key=lambda pair: pair[0])]
            return offset_fetch_response(in_order, version)

        def fetch(
            place: int, group: OffsetFetchRequestGroup, shard: Shard
        ) -> ShardAnswer[tuple[int, OffsetFetchResponseGroup]] | ErrorCode:
            found, position = shard.offset_turns.fetch(
                group, token, now, require_stable=request.require_stable
            )
            if not budget.takes(fetched_bytes(found)):
                return ErrorCode.INVALID_REQUEST
            return [(place, found)], position

        def questions() -> Iterator[ShardQuestion[tuple[int, OffsetFetchResponseGroup]]]:
            for place, group in enumerate(wanted):
                refusals = partial(fetch_refusals, place, group, version)
                run = partial(fetch, place, group)
                if not self._authorizer.may_describe_group(token, group.group_id):
                    forbidden = ErrorCode.GROUP_AUTHORIZATION_FAILED
                    yield ShardQuestion(NO_PARTITION, run, refusals, forbidden)
                elif not budget:
                    yield ShardQuestion(NO_PARTITION, run, refusals, ErrorCode.INVALID_REQUEST)
                elif not fits_string(group.group_id):
                    yield ShardQuestion(NO_PARTITION, run, refusals, ErrorCode.INVALID_GROUP_ID)
                else:
                    yield ShardQuestion(
                        partition_of(group.group_id, len(self._active)), run, refusals
                    )

        if not wanted:
            self._reply(token, build([], ErrorCode.NONE))
            return
        combined = CombinedAnswer(token, len(wanted), build, self._reply)
        self._ask(questions(), combined, now)

    def _fetch_of_one(
        self,
        request: OffsetFetchRequest,
        group: OffsetFetchRequestGroup,
        token: ReplyToken,
        now: Now,
    ) -> None:
        """The same for a single group, as consumers ask: most often what is found is stored."""
        authorizer = self._authorizer
        if authorizer.is_enabled and not authorizer.may_describe_group(token, group.group_id):
            return self._refuse_fetch(group, token, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not fits_string(group.group_id):
            return self._refuse_fetch(group, token, ErrorCode.INVALID_GROUP_ID)
        partition = partition_of(group.group_id, len(self._active))
        shard = self._active[partition]
        if shard is None:
            return self._refuse_fetch(group, token, self._absence(partition))
        try:
            found, position = shard.offset_turns.fetch(
                group, token, now, require_stable=request.require_stable
            )
        except DecisionFailed as failed:
            self._refuse_fetch(group, token, ErrorCode.UNKNOWN_SERVER_ERROR)
            raise failed.failure from None
        except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
            self._refuse_fetch(group, token, ErrorCode.NOT_COORDINATOR)
            self._fail(shard, failure, now)
            return None
        if is_large(group, found) and not AnswerBudget().takes(fetched_bytes(found)):
            return self._refuse_fetch(group, token, ErrorCode.INVALID_REQUEST)
        response = offset_fetch_response((found,), token.api_version)
        if position <= shard.answers.stored:
            self._reply(token, response)
        else:
            answer = OffsetFetchAnswer(group, token, response, self._reply)
            shard.answers.add(position, answer, now.mono_ms)
        return None

    def _refuse_fetch(
        self, group: OffsetFetchRequestGroup, token: ReplyToken, error_code: ErrorCode
    ) -> None:
        self._reply(token, _refused_fetch(group, token, error_code))

    def list_groups(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, ListGroupsRequest)
        shards = [shard for shard in self._active if shard is not None]
        if self._loading or any(shard.unrestored for shard in shards):
            loading = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            self._reply(token, loading)
            return
        if not shards:
            self._reply(token, ListGroupsResponse())
            return

        def build(found: list[ListedGroup], error_code: ErrorCode) -> Response:
            if error_code is not ErrorCode.NONE:
                return ListGroupsResponse(error_code=error_code)
            if self._authorizer.is_enabled:
                named = (group.group_id for group in found)
                shown = self._authorizer.listable_groups(token, named)
                found = [group for group in found if group.group_id in shown]
            return ListGroupsResponse(groups=found)

        def list_of(shard: Shard) -> ShardAnswer[ListedGroup]:
            return shard.list_groups(request.states_filter, request.types_filter)

        combined = CombinedAnswer(token, len(shards), build, self._reply)
        self._ask((ShardQuestion(shard.partition, list_of) for shard in shards), combined, now)

    def describe_groups(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DescribeGroupsRequest)
        budget = AnswerBudget()
        operations = request.include_authorized_operations
        how = classic_description(token, self._authorizer, operations=operations)
        allowed, forbidden = self._split(token, request.groups, self._authorizer.may_describe_group)
        refused = describe_refusals(forbidden, ErrorCode.GROUP_AUTHORIZATION_FAILED)

        def build(found: list[DescribedGroup], _: ErrorCode) -> Response:
            return DescribeGroupsResponse(groups=[*refused, *found])

        def describe(group_ids: Sequence[GroupId], shard: Shard) -> ShardAnswer[DescribedGroup]:
            return shard.describe(group_ids, how, now, budget)

        self._ask_by_partition(allowed, describe, describe_refusals, build, token, now)

    def describe_consumer_groups(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, ConsumerGroupDescribeRequest)
        budget = AnswerBudget()
        operations = request.include_authorized_operations
        how = consumer_description(token, self._authorizer, operations=operations)
        may_describe = self._authorizer.may_describe_group
        allowed, forbidden = self._split(token, request.group_ids, may_describe)
        refused = describe_consumer_refusals(forbidden, ErrorCode.GROUP_AUTHORIZATION_FAILED)

        def build(found: list[DescribedConsumerGroup], _: ErrorCode) -> Response:
            return ConsumerGroupDescribeResponse(groups=[*refused, *found])

        def describe(
            group_ids: Sequence[GroupId], shard: Shard
        ) -> ShardAnswer[DescribedConsumerGroup]:
            return shard.describe(group_ids, how, now, budget)

        refusals = describe_consumer_refusals
        self._ask_by_partition(
            allowed, describe, refusals, build, token, now, exists=_may_be_consumer_group
        )

    def delete_groups(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DeleteGroupsRequest)
        named = dict.fromkeys(request.groups_names)
        allowed, forbidden = self._split(token, named, self._authorizer.may_delete_group)
        refused = delete_refusals(forbidden, ErrorCode.GROUP_AUTHORIZATION_FAILED)

        def build(found: list[DeletableGroupResult], _: ErrorCode) -> Response:
            return DeleteGroupsResponse(results=[*found, *refused])

        def delete(
            group_ids: Sequence[GroupId], shard: Shard
        ) -> ShardAnswer[DeletableGroupResult] | ErrorCode:
            if not shard.has_room():
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            return shard.offset_turns.delete_groups(group_ids, token, now)

        self._ask_by_partition(allowed, delete, delete_refusals, build, token, now)

    # ------------------------------------------------------------ the steps they share

    def _split(
        self,
        token: ReplyToken,
        group_ids: Iterable[GroupId],
        may: Callable[[ReplyToken, GroupId], bool],
    ) -> tuple[Iterable[GroupId], Sequence[GroupId]]:
        """What the client may ask about, and what it may not. Kafka's counterpart:
        `AuthHelper.partitionSeqByAuthorized`.
        """
        if not self._authorizer.is_enabled:
            return group_ids, ()
        allowed: list[GroupId] = []
        forbidden: list[GroupId] = []
        for group_id in group_ids:
            (allowed if may(token, group_id) else forbidden).append(group_id)
        return allowed, forbidden

    def _ask_by_partition(
        self,
        group_ids: Iterable[GroupId],
        run: Callable[[Sequence[GroupId], Shard], ShardAnswer[T] | ErrorCode],
        refusals: Callable[[Sequence[GroupId], ErrorCode], Sequence[T]],
        build: Callable[[list[T], ErrorCode], Response],
        token: ReplyToken,
        now: Now,
        exists: Callable[[GroupId], bool] = fits_string,
    ) -> None:
        """One question to each partition, about its groups; an id that cannot exist is refused."""
        by_partition: dict[int, list[GroupId]] = {}
        invalid: list[GroupId] = []
        for group_id in group_ids:
            if exists(group_id):
                partition = partition_of(group_id, len(self._active))
                by_partition.setdefault(partition, []).append(group_id)
            else:
                invalid.append(group_id)
        refused = refusals(invalid, ErrorCode.INVALID_GROUP_ID)
        if not by_partition:
            self._reply(token, build([*refused], ErrorCode.NONE))
            return
        combined = CombinedAnswer(token, len(by_partition) + 1, build, self._reply)
        combined.part(refused, None).send()
        questions = (
            ShardQuestion(partition, partial(run, ids), partial(refusals, ids))
            for partition, ids in by_partition.items()
        )
        self._ask(questions, combined, now)

    def _ask(
        self, questions: Iterable[ShardQuestion[T]], combined: CombinedAnswer[T], now: Now
    ) -> None:
        """Each part is found by its shard, or refused; a question is made when its turn comes."""
        bugs: list[Exception] = []
        for question in questions:
            refused = combined.part((), question.refusals)
            if question.error_code is not ErrorCode.NONE:
                refused.refuse(question.error_code)
                continue
            shard = self._active[question.partition]
            if shard is None:
                refused.refuse(self._absence(question.partition))
                continue
            try:
                found = question.run(shard)
            except DecisionFailed as failed:
                refused.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                bugs.append(failed.failure)
            except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
                refused.refuse(ErrorCode.NOT_COORDINATOR)
                self._fail(shard, failure, now)
            else:
                if isinstance(found, ErrorCode):
                    refused.refuse(found)
                else:
                    part = combined.part(found[0], question.refusals)
                    shard.answers.add(found[1], part, now.mono_ms)
        if bugs:  # the client has its answer, or will have it; the broker counts and logs the bug
            raise bugs[0] if combined.is_sent else AnswerPending(bugs[0])
