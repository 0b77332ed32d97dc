"""Requests over many groups: who is asked, and how does the whole become one answer?

OffsetFetch, ListGroups, DescribeGroups and DeleteGroups name several groups, or mean all of them.
The coordinator hands them on to here; each shard that is concerned gives its part, once what it
shows is stored, and the last part sends the answer (combined_answer.py). A group whose id no record
can hold does not exist: it is refused without a look at a shard.
Kafka's counterpart: the methods of `GroupCoordinatorService` that call `combineFutures`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from coordinator.classic.decide.describe_group import refuse_describe_group
from coordinator.combined_answer import CombinedAnswer, T
from coordinator.decision_failed import AnswerPending, DecisionFailed
from coordinator.java_hash import partition_of
from coordinator.offsets.offset_fetch import (
    fetched_bytes,
    is_large,
    offset_fetch_response,
    refuse_offset_fetch,
    wanted_groups,
)
from coordinator.pending_answers import Send
from coordinator.refusals import delete_refusals, describe_refusals, fetch_refusals
from coordinator.shard import Shard
from protocol.answer_budget import AnswerBudget
from protocol.messages import Request, Response
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
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponseGroup
from protocol.names import ErrorCode, GroupId
from protocol.primitives import fits_string
from seams.now import Now
from seams.reply_token import ReplyToken


class ManyGroups:
    """Reads the coordinator's own tables of shards; changes none of them."""

    def __init__(
        self,
        active: list[Shard | None],
        loading: dict[int, Shard],
        *,
        absence: Callable[[GroupId], ErrorCode],
        reply: Send,
        fail: Callable[[Shard, Exception, Now], None],
    ) -> None:
        """`absence` says why no shard serves a group; `fail` ends a shard that a bug has hit."""
        self._active = active
        self._loading = loading
        self._absence = absence
        self._reply = reply
        self._fail = fail

    # ------------------------------------------------------------ OffsetFetch

    def fetch_offsets(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, OffsetFetchRequest)
        version = token.api_version
        wanted = wanted_groups(request, version)

        def build(found: list[tuple[int, OffsetFetchResponseGroup]], _: ErrorCode) -> Response:
            in_order = [group for _, group in sorted(found, key=lambda one: one[0])]
            return offset_fetch_response(in_order, version)

        if not wanted:
            self._reply(token, build([], ErrorCode.NONE))
            return
        gather = CombinedAnswer(token, len(wanted), build, self._reply)
        bugs: list[Exception] = []
        room = AnswerBudget()
        for place, one in enumerate(wanted):
            refusals = partial(fetch_refusals, place, one, version)
            if not room:
                gather.part((), refusals).refuse(ErrorCode.INVALID_REQUEST)
                continue
            if not fits_string(one.group_id):
                refused = refuse_offset_fetch(one, version, ErrorCode.INVALID_GROUP_ID)
                gather.part([(place, refused)], None).send()
                continue
            shard = self._active[partition_of(one.group_id, len(self._active))]
            if shard is None:
                gather.part((), refusals).refuse(self._absence(one.group_id))
                continue
            try:
                found, position = shard.fetch_offsets(one, version, now)
            except DecisionFailed as failed:
                gather.part((), refusals).refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                bugs.append(failed.failure)
            except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
                gather.part((), refusals).refuse(ErrorCode.NOT_COORDINATOR)
                self._fail(shard, failure, now)
            else:
                part = gather.part([(place, found)], refusals)
                is_weighed = len(wanted) > 1 or is_large(found)
                if is_weighed and not room.takes(fetched_bytes(found)):
                    part.refuse(ErrorCode.INVALID_REQUEST)
                else:
                    shard.answers.add(position, part, now.mono_ms)
        _raise_first(bugs, gather)

    # ------------------------------------------------------------ ListGroups

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
            return ListGroupsResponse(groups=found)

        gather = CombinedAnswer(token, len(shards), build, self._reply)
        bugs: list[Exception] = []
        for shard in shards:
            try:
                part, position = shard.list_groups(request.states_filter, request.types_filter)
            except DecisionFailed as failed:
                gather.part((), None).refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                bugs.append(failed.failure)
            else:
                shard.answers.add(position, gather.part(part, None), now.mono_ms)
        _raise_first(bugs, gather)

    # ------------------------------------------------------------ DescribeGroups

    def describe_groups(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DescribeGroupsRequest)

        def build(found: list[DescribedGroup], _: ErrorCode) -> Response:
            return DescribeGroupsResponse(groups=found)

        by_partition, invalid = self._by_partition(request.groups)
        refused = [refuse_describe_group(one, ErrorCode.INVALID_GROUP_ID) for one in invalid]
        if not by_partition:
            self._reply(token, build(refused, ErrorCode.NONE))
            return
        gather = CombinedAnswer(token, len(by_partition) + 1, build, self._reply)
        gather.part(refused, None).send()
        bugs: list[Exception] = []
        room = AnswerBudget()
        for partition, group_ids in by_partition.items():
            shard = self._active[partition]
            refusals = partial(describe_refusals, group_ids)
            if shard is None:
                gather.part((), refusals).refuse(self._absence(group_ids[0]))
                continue
            operations = request.include_authorized_operations
            try:
                found, position = shard.describe_groups(
                    group_ids, token.api_version, now, room, operations=operations
                )
            except DecisionFailed as failed:
                gather.part((), refusals).refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                bugs.append(failed.failure)
            except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
                gather.part((), refusals).refuse(ErrorCode.NOT_COORDINATOR)
                self._fail(shard, failure, now)
            else:
                shard.answers.add(position, gather.part(found, refusals), now.mono_ms)
        _raise_first(bugs, gather)

    # ------------------------------------------------------------ DeleteGroups

    def delete_groups(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DeleteGroupsRequest)

        def build(found: list[DeletableGroupResult], _: ErrorCode) -> Response:
            return DeleteGroupsResponse(results=found)

        by_partition, invalid = self._by_partition(dict.fromkeys(request.groups_names))
        refused = delete_refusals(invalid, ErrorCode.INVALID_GROUP_ID)
        if not by_partition:
            self._reply(token, build(refused, ErrorCode.NONE))
            return
        gather = CombinedAnswer(token, len(by_partition) + 1, build, self._reply)
        gather.part(refused, None).send()
        bugs: list[Exception] = []
        for partition, group_ids in by_partition.items():
            shard = self._active[partition]
            refusals = partial(delete_refusals, group_ids)
            part = gather.part((), refusals)
            if shard is None:
                part.refuse(self._absence(group_ids[0]))
            elif not shard.has_room():
                part.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            else:
                try:
                    found, position = shard.delete_groups(group_ids, token, now)
                except DecisionFailed as failed:
                    part.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                    bugs.append(failed.failure)
                except Exception as failure:  # noqa: BLE001 - it ends the shard alone
                    part.refuse(ErrorCode.NOT_COORDINATOR)
                    self._fail(shard, failure, now)
                else:
                    shard.answers.add(position, gather.part(found, refusals), now.mono_ms)
        _raise_first(bugs, gather)

    # ------------------------------------------------------------ for several

    def _by_partition(
        self, group_ids: Iterable[GroupId]
    ) -> tuple[dict[int, list[GroupId]], list[GroupId]]:
        """The ids by the partition that they belong to, and those that no group can have."""
        by_partition: dict[int, list[GroupId]] = {}
        invalid: list[GroupId] = []
        for group_id in group_ids:
            if fits_string(group_id):
                partition = partition_of(group_id, len(self._active))
                by_partition.setdefault(partition, []).append(group_id)
            else:
                invalid.append(group_id)
        return by_partition, invalid


def _raise_first(bugs: Sequence[Exception], gather: CombinedAnswer[T]) -> None:
    """The client has its answer, or will have it; the shell counts the bug and tells the log."""
    if bugs:
        raise bugs[0] if gather.is_sent else AnswerPending(bugs[0])
