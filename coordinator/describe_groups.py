"""DescribeGroups, ConsumerGroupDescribe: how a shard describes groups for each of these APIs.

Each API knows the groups of one type; to it, a group of another type does not exist. The two
descriptions are for `Shard.describe`. Kafka's counterpart: `GroupMetadataManager.describeGroups`
and `consumerGroupDescribe`.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from coordinator.classic.decide.describe_group import (
    GROUP_OPERATIONS,
    describe_group,
    described_bytes,
    refuse_describe_group,
)
from coordinator.consumer.decide.describe_group import (
    describe_consumer_group,
    described_consumer_bytes,
    refuse_describe_consumer_group,
)
from coordinator.consumer.group import ConsumerGroup
from coordinator.group_types import AnyGroup, as_classic
from coordinator.settings import GroupSettings
from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.messages.describe_groups import DescribedGroup
from protocol.names import OPERATIONS_NOT_REQUESTED, ErrorCode, GroupId
from seams.topics_view import TopicsView

D = TypeVar("D")


class Description(NamedTuple, Generic[D]):
    """`size` is about what a described group takes in an answer; `refuse` stands for one."""

    describe: Callable[[GroupId, AnyGroup | None, TopicsView, GroupSettings], D]
    size: Callable[[D], int]
    refuse: Callable[[GroupId, ErrorCode], D]


def classic_description(api_version: int, *, operations: bool) -> Description[DescribedGroup]:
    def describe(
        group_id: GroupId, group: AnyGroup | None, _topics: TopicsView, _settings: GroupSettings
    ) -> DescribedGroup:
        return describe_group(
            as_classic(group),
            group_id,
            api_version,
            include_authorized_operations=operations,
            absence="not found." if group is None else "is not a classic group.",
        )

    return Description(describe, described_bytes, refuse_describe_group)


def consumer_description(*, operations: bool) -> Description[DescribedConsumerGroup]:
    allowed = GROUP_OPERATIONS if operations else OPERATIONS_NOT_REQUESTED

    def describe(
        group_id: GroupId, group: AnyGroup | None, topics: TopicsView, settings: GroupSettings
    ) -> DescribedConsumerGroup:
        if isinstance(group, ConsumerGroup):
            return describe_consumer_group(
                group, topics, settings.group_consumer_assignors, allowed
            )
        absence = "not found." if group is None else "is not a consumer group."
        reason = f"Group {group_id} {absence}"
        return refuse_describe_consumer_group(group_id, ErrorCode.GROUP_ID_NOT_FOUND, reason)

    return Description(describe, described_consumer_bytes, refuse_describe_consumer_group)
