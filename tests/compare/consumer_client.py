"""Consumer client: the requests of a member of the consumer group protocol (KIP-848).

A mixin of `Client`. The member id is the client's name, the member epoch is the one of the last
answer, and every other field is null, "as in the last heartbeat", unless the scenario gives it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from protocol.messages import Request, Response
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.names import (
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicId,
    TopicName,
)

REBALANCE_MS: Final = 300_000
"""A rebalance timeout that never runs out in a scenario."""

Partitions = Mapping[str, Sequence[int]]
"""Topic name -> partitions."""


class Topics(Protocol):
    """What a consumer's steps need of the script."""

    group: GroupId

    def topic_id(self, name: str) -> TopicId: ...


class ConsumerSteps:
    """The steps of a consumer; `Client` has the rest."""

    script: Topics
    name: str
    member_id: MemberId
    generation_id: GenerationId

    def ask(self, request: Request, version: int) -> Response | None:
        raise NotImplementedError

    def consumer_join(
        self,
        *topics: str,
        regex: str | None = None,
        **options: object,
    ) -> Response | None:
        """Join, or join again, with these topics; with a regex without topics they are null."""
        named = {"topics": topics} if topics or regex is None else {}
        defaults = {"epoch": JOIN_EPOCH, "owned": {}, "rebalance_ms": REBALANCE_MS, **named}
        return self.consumer_beat(**{**defaults, "regex": regex, **options})  # type: ignore[arg-type]

    def consumer_beat(
        self,
        epoch: int | None = None,
        *,
        group_id: str | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_ms: int = -1,
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        owned: Partitions | None = None,
        version: int = 1,
    ) -> Response | None:
        """One heartbeat."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.script.group if group_id is None else GroupId(group_id),
            member_id=self.consumer_id if member_id is None else MemberId(member_id),
            member_epoch=self.generation_id if epoch is None else epoch,
            instance_id=None if instance_id is None else GroupInstanceId(instance_id),
            rack_id=rack_id,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=(
                None if topics is None else [TopicName(topic) for topic in topics]
            ),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=(
                None
                if owned is None
                else [
                    HeartbeatTopicPartitions(self.script.topic_id(name), partitions)
                    for name, partitions in owned.items()
                ]
            ),
        )
        return self.ask(request, version)

    def consumer_leave(self, epoch: int = LEAVE_EPOCH, **options: object) -> Response | None:
        """Leave for good, or with another epoch for a while."""
        return self.consumer_beat(epoch, **options)  # type: ignore[arg-type]

    def describe_consumers(
        self, *group_ids: str, operations: bool = False, version: int = 1
    ) -> Response | None:
        groups = [GroupId(group_id) for group_id in group_ids] or [self.script.group]
        return self.ask(ConsumerGroupDescribeRequest(groups, operations), version)

    @property
    def consumer_id(self) -> MemberId:
        """The id that the broker gave, or the client's name: a member makes its own id."""
        return self.member_id or MemberId(self.name)
