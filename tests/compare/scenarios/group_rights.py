"""Group rights: what a client without a right is answered, for each request about groups and
transactions, in each version that answers differently.

The requests are those of the tests of the coordinators. The client has all rights that any of them
needs, except those that give the one in question.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages import Request
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.names import ErrorCode, GenerationId, GroupId, MemberId, TopicName
from tests.compare.client import Client
from tests.compare.granting import CLIENT, grant, protect
from tests.compare.script import Script, scenario
from tests.coordinator.test_authorization import ROWS as GROUP_ROWS
from tests.rights import Right as Named
from tests.topics.rights import Right, cluster_right, topic_right
from tests.transactions.test_authorization_table import ROWS as TRANSACTION_ROWS

PROFILE: Final = "transactions with acls"
TOPICS: Final = ("t", "orders", "secret")
G: Final = GroupId("g")

_KINDS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "txn": ResourceType.TRANSACTIONAL_ID,
}
_IMPLYING: Final = {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE}


class Case(NamedTuple):
    name: str
    request: Request
    version: int
    needs: tuple[Right, ...]


def _right(named: Named) -> Right:
    operation, resource = named
    kind, _, name = resource.partition(" ")
    return Right(AclOperation[operation], _KINDS[kind], name)


def all_cases() -> Iterator[Case]:
    for name, row in GROUP_ROWS.items():
        needs = tuple(_right(need.right) for need in row.needs)
        for version in row.versions:
            yield Case(name, row.request(version), version, needs)
    for name, of_transactions in TRANSACTION_ROWS.items():
        needs = tuple(_right(right) for right, *_ in of_transactions.needs)
        for version in of_transactions.versions:
            yield Case(name, of_transactions.request(), version, needs)


def _gives(right: Right, wanted: Right) -> bool:
    """Whether who has `right` is asked for `wanted` in vain."""
    if wanted.operation is AclOperation.IDEMPOTENT_WRITE:
        return right == wanted or right.operation is AclOperation.WRITE
    is_implied = wanted.operation is AclOperation.DESCRIBE and right.operation in _IMPLYING
    is_same = right.operation is wanted.operation or is_implied
    return is_same and right[1:] == wanted[1:]


@scenario(PROFILE)
def requests_without_the_rights_on_groups_and_transactions(script: Script) -> None:
    protect(script)
    prepare(script)
    client = script.client("a", host=CLIENT)
    cases = list(all_cases())
    everything = list(dict.fromkeys(right for case in cases for right in case.needs))
    for missing in everything:
        grant(
            script,
            [right for right in everything if not _gives(right, missing)],
            asks_controller=False,
        )
        for case in cases:
            if missing in case.needs:
                lacks = f"{missing.operation.name} on {missing.resource_type.name} {missing.name}"
                script.note(f"{case.name} v{case.version} without {lacks}")
                client.ask(case.request, case.version)
    grant(script, [], asks_controller=False)
    for case in cases:
        script.note(f"{case.name} v{case.version} without any right")
        client.ask(case.request, case.version)
    _hidden(script, client)


def _hidden(script: Script, client: Client) -> None:
    """What lists and descriptions leave out."""
    simple, consumers = script.group, GroupId(f"{script.group}.consumers")
    _commit(script, simple)
    script.client("b").ask(
        ConsumerGroupHeartbeatRequest(
            consumers,
            MemberId("m"),
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TopicName("t"), TopicName("secret")],
            topic_partitions=[],
        ),
        1,
    )
    transaction = Right(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, f"{script.group}.x")
    _init(script, transaction.name)
    describe, of_group = AclOperation.DESCRIBE, ResourceType.GROUP
    groups = [Right(describe, of_group, group) for group in (simple, consumers)]
    visible = topic_right(describe, "t")
    for rights in (
        [],
        groups[:1],
        groups[1:],
        [*groups, visible],
        [*groups, visible, topic_right(AclOperation.WRITE, "secret")],
        [cluster_right(describe)],
        [
            Right(AclOperation.READ, of_group, simple),
            topic_right(AclOperation.READ, "secret"),
        ],
        [Right(AclOperation.DELETE, of_group, simple)],
        [
            Right(AclOperation.ALL, of_group, simple),
            transaction,
        ],
    ):
        grant(script, rights, asks_controller=False)
        words = [f"{r.operation.name} on {r.resource_type.name} {r.name}" for r in rights]
        script.note(f"with {', '.join(words) or 'no right'}")
        client.ask(ListGroupsRequest(), 4)
        client.ask(ListTransactionsRequest(), 1)
        client.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(simple, topics=None)]), 8)
        client.ask(DescribeGroupsRequest([simple], include_authorized_operations=True), 5)
        client.ask(ConsumerGroupDescribeRequest([consumers], include_authorized_operations=True), 1)


def prepare(script: Script) -> None:
    """Topics, a group with offsets, and two transactional ids."""
    request = CreateTopicsRequest([CreatableTopic(TopicName(name), 1, 1) for name in TOPICS])
    created = script.ask_aside(request, 7, CreateTopicsResponse)
    script.topics.update({topic.topic_id: topic.name for topic in created.topics})
    for name in TOPICS:
        script.until_topic(name, 1)
    for name in ("x", "tx"):
        _init(script, name)
    _commit(script, G)


def _init(script: Script, transactional_id: str) -> None:
    request = InitProducerIdRequest(transactional_id, 60_000)
    answer = script.ask_aside(request, 4, InitProducerIdResponse)
    assert answer.error_code is ErrorCode.NONE, answer


def _commit(script: Script, group_id: GroupId) -> None:
    partitions = [OffsetCommitRequestPartition(0, 7)]
    topics = [OffsetCommitRequestTopic(TopicName(name), partitions=partitions) for name in TOPICS]
    commit = OffsetCommitRequest(group_id, GenerationId(-1), MemberId(""), topics=topics)
    answer = script.ask_aside(commit, 8, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE, answer
