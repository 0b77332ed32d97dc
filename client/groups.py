"""Groups: lists, describes and deletes groups of any type, and reads their offsets.

Kafka's counterpart: `ConsumerGroupCommand` with its admin client.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from client.cluster import ATTEMPTS, RETRIABLE, Cluster
from client.connection import BrokerConnection
from client.errors import NotThere, RequestRefused
from client.log_offsets import END, Place, read_log_offsets
from protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from protocol.names import ApiKey, ErrorCode, GroupId
from protocol.primitives import Malformed

CLASSIC_TYPE: Final = "classic"
CONSUMER_TYPE: Final = "consumer"
DEAD: Final = "Dead"
GROUPS_PER_REQUEST: Final = 500
"""Described at once: an answer names all members."""


class GroupListing(Struct, frozen=True):
    """`members` is None for a type that is not described here (share, streams)."""

    group: str
    type: str
    state: str
    members: int | None


class DescribedMember(Struct, frozen=True):
    """`assignment` is None for a protocol that is not a consumer's."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Mapping[str, Sequence[int]] | None

    @property
    def places(self) -> Iterable[Place]:
        for topic, partitions in (self.assignment or {}).items():
            for partition in partitions:
                yield topic, partition


class GroupOffset(Struct, frozen=True):
    """None for what is not known: nothing is committed, the topic is gone, nobody owns it."""

    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    client_id: str | None
    host: str | None


class ClusterGroup(Struct, frozen=True):
    """`assignor`: the classic group's protocol, or the consumer group's server-side assignor."""

    group: str
    type: str
    state: str
    coordinator: str
    assignor: str
    epoch: int | None  # of a consumer group; a classic group's generation is not told
    members: Sequence[DescribedMember]


def read_group_listings(cluster: Cluster) -> list[GroupListing]:
    """All groups of all brokers, by name. Raises ClusterFault, RequestRefused."""
    found: dict[str, GroupListing] = {}
    for broker in cluster.brokers():
        answer = _list_at(cluster, broker)
        types = {
            group.group_id: group.group_type.lower() or CLASSIC_TYPE for group in answer.groups
        }  # brokers before 3.8 tell no type, and have no other
        states = {group.group_id: group.group_state for group in answer.groups}
        counts = _member_counts(broker, types)
        for group_id, group_type in types.items():
            found[group_id] = GroupListing(
                group_id, group_type, states[group_id], counts.get(group_id)
            )
    return [found[name] for name in sorted(found)]


def _list_at(cluster: Cluster, broker: BrokerConnection) -> ListGroupsResponse:
    answer = broker.ask(ListGroupsRequest(), ListGroupsResponse)
    for _ in range(ATTEMPTS):
        if answer.error_code not in RETRIABLE:
            break
        cluster.wait()
        answer = broker.ask(ListGroupsRequest(), ListGroupsResponse)
    if answer.error_code is ErrorCode.NONE:
        return answer
    raise RequestRefused(f"{broker.name}: groups cannot be listed", answer.error_code)


def _member_counts(broker: BrokerConnection, types: Mapping[GroupId, str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    classic = [group_id for group_id, group_type in types.items() if group_type == CLASSIC_TYPE]
    for part in _parts(classic):
        described = broker.ask(DescribeGroupsRequest(part), DescribeGroupsResponse)
        counts |= {g.group_id: len(g.members) for g in described.groups if not g.error_code}
    consumer = [group_id for group_id, group_type in types.items() if group_type == CONSUMER_TYPE]
    for part in _parts(consumer):
        answer = broker.ask(ConsumerGroupDescribeRequest(part), ConsumerGroupDescribeResponse)
        counts |= {g.group_id: len(g.members) for g in answer.groups if not g.error_code}
    return counts


def _parts(group_ids: Sequence[GroupId]) -> Iterable[Sequence[GroupId]]:
    for start in range(0, len(group_ids), GROUPS_PER_REQUEST):
        yield group_ids[start : start + GROUPS_PER_REQUEST]


def read_group(cluster: Cluster, group_id: str) -> ClusterGroup:
    """Raises ClusterFault, NotThere, RequestRefused."""
    found = find_group(cluster, group_id)
    if found is None:
        raise NotThere(f"there is no group {group_id!r}; `rollcall group list` shows all")
    return found


def find_group(cluster: Cluster, group_id: str) -> ClusterGroup | None:
    """None if there is none. Raises ClusterFault, RequestRefused."""
    error, group = cluster.at_coordinator(
        GroupId(group_id), lambda broker: _describe_at(broker, GroupId(group_id))
    )
    if error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NONE) and group is None:
        return None
    if group is None:
        raise RequestRefused(f"group {group_id!r} cannot be described", error)
    return group


def _describe_at(
    broker: BrokerConnection, group_id: GroupId
) -> tuple[ErrorCode, ClusterGroup | None]:
    if broker.serves(ApiKey.CONSUMER_GROUP_DESCRIBE):
        request = ConsumerGroupDescribeRequest((group_id,))
        (consumer,) = broker.ask(request, ConsumerGroupDescribeResponse).groups
        if consumer.error_code is ErrorCode.NONE:
            return ErrorCode.NONE, _consumer_group(consumer, broker.name)
        if consumer.error_code not in (
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.UNSUPPORTED_VERSION,  # the consumer protocol is off
        ):
            return consumer.error_code, None
    (classic,) = broker.ask(DescribeGroupsRequest((group_id,)), DescribeGroupsResponse).groups
    if classic.error_code is not ErrorCode.NONE:
        return classic.error_code, None
    if classic.group_state == DEAD:  # as brokers say that there is none
        return ErrorCode.NONE, None
    return ErrorCode.NONE, _classic_group(classic, broker.name)


def _classic_group(group: DescribedGroup, coordinator: str) -> ClusterGroup:
    members = [
        DescribedMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _classic_assignment(group.protocol_type, member.member_assignment),
        )
        for member in group.members
    ]
    return ClusterGroup(
        group.group_id,
        CLASSIC_TYPE,
        group.group_state,
        coordinator,
        group.protocol_data,
        None,
        sorted(members, key=lambda member: (member.client_id, member.member_id)),
    )


def _classic_assignment(protocol_type: str, assignment: bytes) -> Mapping[str, list[int]] | None:
    if protocol_type != PROTOCOL_TYPE:
        return None
    if not assignment:
        return {}
    try:
        topics = read_assignment(assignment).assigned_partitions
    except Malformed:
        return None
    return {topic.topic: sorted(topic.partitions) for topic in topics}


def _consumer_group(group: DescribedConsumerGroup, coordinator: str) -> ClusterGroup:
    members = [
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            {t.topic_name: sorted(t.partitions) for t in member.assignment.topic_partitions},
        )
        for member in group.members
    ]
    return ClusterGroup(
        group.group_id,
        CONSUMER_TYPE,
        group.group_state,
        coordinator,
        group.assignor_name,
        group.group_epoch,
        sorted(members, key=lambda member: (member.client_id, member.member_id)),
    )


def committed_offsets(cluster: Cluster, group_id: str) -> dict[Place, int]:
    """All that the group has committed. Raises ClusterFault, RequestRefused."""
    error, offsets = cluster.at_coordinator(
        GroupId(group_id), lambda broker: _committed_at(broker, GroupId(group_id))
    )
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    if error is not ErrorCode.NONE or offsets is None:
        raise RequestRefused(f"offsets of group {group_id!r} cannot be read", error)
    return offsets


def _committed_at(
    broker: BrokerConnection, group_id: GroupId
) -> tuple[ErrorCode, dict[Place, int]]:
    request = OffsetFetchRequest()
    offsets: dict[Place, int] = {}
    if broker.version_of(request) >= 8:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id, topics=None)])
        (answer,) = broker.ask(request, OffsetFetchResponse).groups
        error = answer.error_code
        for topic in answer.topics:
            for row in topic.partitions:
                error = error or row.error_code
                if row.committed_offset >= 0:
                    offsets[topic.name, row.partition_index] = row.committed_offset
    else:
        request = OffsetFetchRequest(group_id=group_id, topics=None)
        old = broker.ask(request, OffsetFetchResponse)
        error = old.error_code
        for old_topic in old.topics:
            for old_row in old_topic.partitions:
                error = error or old_row.error_code
                if old_row.committed_offset >= 0:
                    offsets[old_topic.name, old_row.partition_index] = old_row.committed_offset
    return error, offsets


def group_offsets(cluster: Cluster, group: ClusterGroup) -> list[GroupOffset]:
    """Where the group is on each partition that it has committed or that a member owns.

    Raises ClusterFault, RequestRefused.
    """
    committed = committed_offsets(cluster, group.group)
    owners = {place: member for member in group.members for place in member.places}
    places = sorted(committed.keys() | owners.keys())
    ends = read_log_offsets(cluster, dict.fromkeys(places, END))
    rows = []
    for topic, partition in places:
        offset, end = committed.get((topic, partition)), ends.get((topic, partition))
        owner = owners.get((topic, partition))
        rows.append(
            GroupOffset(
                topic,
                partition,
                offset,
                end,
                None if offset is None or end is None else end - offset,
                None if owner is None else owner.member_id,
                None if owner is None else owner.client_id,
                None if owner is None else owner.host,
            )
        )
    return rows


def delete_group(cluster: Cluster, group_id: str) -> None:
    """Raises ClusterFault, NotThere, RequestRefused (it has members)."""

    def ask(broker: BrokerConnection) -> tuple[ErrorCode, None]:
        (result,) = broker.ask(
            DeleteGroupsRequest((GroupId(group_id),)), DeleteGroupsResponse
        ).results
        return result.error_code, None

    error, _ = cluster.at_coordinator(GroupId(group_id), ask)
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        raise NotThere(f"there is no group {group_id!r}; `rollcall group list` shows all")
    if error is ErrorCode.NON_EMPTY_GROUP:
        message = "it has members: stop them first (`rollcall group members` shows them)"
        raise RequestRefused(f"group {group_id!r} cannot be deleted", error, message)
    if error is not ErrorCode.NONE:
        raise RequestRefused(f"group {group_id!r} cannot be deleted", error)
