"""DescribeGroups, ConsumerGroupDescribe: how a shard describes groups for each of these APIs.

Each API knows the groups of one type; to it, a group of another type does not exist. The two
descriptions are for `Shard.describe`. Kafka's counterpart: `GroupMetadataManager.describeGroups`
and `consumerGroupDescribe`.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from coordinator.classic.decide.describe_group import (
    describe_group,
    described_bytes,
    refuse_describe_group,
)
from coordinator.consumer.decide.describe_group import (
    assigned_topics,
    describe_consumer_group,
    described_consumer_bytes,
    refuse_describe_consumer_group,
)
from coordinator.consumer.group import ConsumerGroup
from coordinator.group_types import AnyGroup, as_classic
from coordinator.settings import GroupSettings
from protocol.acl_codes import ResourceType
from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.messages.describe_groups import DescribedGroup
from protocol.names import OPERATIONS_NOT_REQUESTED, ErrorCode, GroupId
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView

D = TypeVar("D")

GROUP_OPERATIONS: Final = ALLOW_ALL.authorized_operations(
    ReplyToken(0, "", ""), ResourceType.GROUP, ""
)
"""A bit for each operation that exists on a group."""


_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)


class Description(NamedTuple, Generic[D]):
    """`size` is about what a described group takes in an answer; `refuse` stands for one."""

    describe: Callable[[GroupId, AnyGroup | None, TopicsView, GroupSettings], D]
    size: Callable[[D], int]
    refuse: Callable[[GroupId, ErrorCode], D]


def classic_description(
    token: ReplyToken, authorizer: Authorizer, *, operations: bool
) -> Description[DescribedGroup]:
    operations_on = _operations_on(token, authorizer, are_wanted=operations)

    def describe(
        group_id: GroupId, group: AnyGroup | None, _topics: TopicsView, _settings: GroupSettings
    ) -> DescribedGroup:
        return describe_group(
            as_classic(group),
            group_id,
            token.api_version,
            operations=operations_on(group_id),
            absence="not found." if group is None else "is not a classic group.",
        )

    return Description(describe, described_bytes, refuse_describe_group)


def consumer_description(
    token: ReplyToken, authorizer: Authorizer, *, operations: bool
) -> Description[DescribedConsumerGroup]:
    """A group whose members have topics that the client may not see is refused as a whole."""
    operations_on = _operations_on(token, authorizer, are_wanted=operations)

    def describe(
        group_id: GroupId, group: AnyGroup | None, topics: TopicsView, settings: GroupSettings
    ) -> DescribedConsumerGroup:
        if isinstance(group, ConsumerGroup):
            assignors = settings.group_consumer_assignors
            described = describe_consumer_group(group, topics, assignors, operations_on(group_id))
            if authorizer.undescribable_topics(token, assigned_topics(described)):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return refuse_describe_consumer_group(group_id, code, _HIDDEN_TOPICS)
            return described
        absence = "not found." if group is None else "is not a consumer group."
        reason = f"Group {group_id} {absence}"
        return refuse_describe_consumer_group(group_id, ErrorCode.GROUP_ID_NOT_FOUND, reason)

    return Description(describe, described_consumer_bytes, refuse_describe_consumer_group)


def _operations_on(
    token: ReplyToken, authorizer: Authorizer, *, are_wanted: bool
) -> Callable[[GroupId], int]:
    if not are_wanted:
        return lambda _: OPERATIONS_NOT_REQUESTED
    if not authorizer.is_enabled:
        return lambda _: GROUP_OPERATIONS
    return partial(authorizer.authorized_operations, token, ResourceType.GROUP)
