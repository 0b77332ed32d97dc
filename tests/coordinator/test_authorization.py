"""Authorization: the answer of each API to each missing right is that of a real Kafka 4.3.1."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pytest

from coordinator.find_coordinator import find_coordinator
from coordinator.settings import GroupSettings
from protocol.messages import Request
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.sync_group import SyncGroupRequest
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from protocol.names import (
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    MemberId,
    ProducerId,
    TopicName,
)
from seams.reply_token import ReplyToken
from tests.coordinator.transaction_givens import P1, Verifier
from tests.rights import ON_CLUSTER, Right, Rights, error_codes, refusals_in
from tests.world import Topics, World, kafka_settings

G, T, M = GroupId("g"), TopicName("t"), MemberId("m")
T_ID: Final = Topics().id_of(T)
BY_ID_SINCE: Final = 10

NONE = ErrorCode.NONE
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

GROUP_READ: Final = ("READ", "group g")
GROUP_DESCRIBE: Final = ("DESCRIBE", "group g")
GROUP_DELETE: Final = ("DELETE", "group g")
TOPIC_READ: Final = ("READ", "topic t")
TOPIC_DESCRIBE: Final = ("DESCRIBE", "topic t")
TXN_WRITE: Final = ("WRITE", "txn x")
TXN_DESCRIBE: Final = ("DESCRIBE", "txn x")


class Need(NamedTuple):
    """A right, and where the answer says that it is missing: by version."""

    right: Right
    error_code: ErrorCode
    place: Callable[[int], str]


class Row(NamedTuple):
    """One API: its request, and what it needs in the order in which Kafka asks for it."""

    request: Callable[[int], Request]
    versions: Sequence[int]
    needs: Sequence[Need]


def need(right: Right, error_code: ErrorCode, place: str = "error_code") -> Need:
    return Need(right, error_code, lambda _: place)


def find(key: str, key_type: int) -> Callable[[int], Request]:
    def made(version: int) -> Request:
        if version >= 4:
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return FindCoordinatorRequest(key, key_type)

    return made


def found_at(version: int) -> str:
    return "coordinators.error_code" if version >= 4 else "error_code"


def commit(_version: int) -> Request:
    partitions = [OffsetCommitRequestPartition(0, 7)]
    topics = [OffsetCommitRequestTopic(T, T_ID, partitions)]
    return OffsetCommitRequest(G, GenerationId(-1), MemberId(""), topics=topics)


def fetch(version: int) -> Request:
    if version < 8:
        return OffsetFetchRequest(G, [OffsetFetchRequestTopic(T, [0])])
    topics = [OffsetFetchRequestTopics(T, T_ID, [0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, topics=topics)])


def fetch_group_at(version: int) -> str:
    if version < 2:  # it has no other place
        return "topics.partitions.error_code"
    return "groups.error_code" if version >= 8 else "error_code"


def fetch_topic_at(version: int) -> str:
    place = "topics.partitions.error_code"
    return f"groups.{place}" if version >= 8 else place


def leave(version: int) -> Request:
    if version < 3:
        return LeaveGroupRequest(G, M)
    return LeaveGroupRequest(G, members=[MemberIdentity(M)])


def txn_commit(_version: int) -> Request:
    partitions = [TxnOffsetCommitRequestPartition(0, 7)]
    topics = [TxnOffsetCommitRequestTopic(T, partitions)]
    return TxnOffsetCommitRequest("x", G, ProducerId(P1), 0, topics=topics)


PER_PARTITION: Final = "topics.partitions.error_code"

ROWS: Final = {
    "FindCoordinator of a group": Row(
        find("g", 0), (0, 2, 4, 6), [Need(GROUP_DESCRIBE, NO_GROUP, found_at)]
    ),
    "FindCoordinator of a transaction": Row(
        find("x", 1), (1, 2, 4, 6), [Need(TXN_DESCRIBE, NO_ID, found_at)]
    ),
    "JoinGroup": Row(
        lambda _: JoinGroupRequest(G, session_timeout_ms=10_000, rebalance_timeout_ms=10_000),
        (0, 9),
        [need(GROUP_READ, NO_GROUP)],
    ),
    "SyncGroup": Row(
        lambda _: SyncGroupRequest(
            G, GenerationId(1), M, protocol_type="consumer", protocol_name="range"
        ),
        (0, 5),
        [need(GROUP_READ, NO_GROUP)],
    ),
    "Heartbeat": Row(
        lambda _: HeartbeatRequest(G, GenerationId(1), M), (0, 4), [need(GROUP_READ, NO_GROUP)]
    ),
    "LeaveGroup": Row(leave, (0, 5), [need(GROUP_READ, NO_GROUP)]),
    "OffsetCommit": Row(
        commit,
        (2, 8, BY_ID_SINCE),
        [need(GROUP_READ, NO_GROUP, PER_PARTITION), need(TOPIC_READ, NO_TOPIC, PER_PARTITION)],
    ),
    "OffsetFetch": Row(
        fetch,
        (1, 2, 7, 8, BY_ID_SINCE),
        [
            Need(GROUP_DESCRIBE, NO_GROUP, fetch_group_at),
            Need(TOPIC_DESCRIBE, NO_TOPIC, fetch_topic_at),
        ],
    ),
    "OffsetDelete": Row(
        lambda _: OffsetDeleteRequest(
            G, [OffsetDeleteRequestTopic(T, [OffsetDeleteRequestPartition(0)])]
        ),
        (0,),
        [need(GROUP_DELETE, NO_GROUP), need(TOPIC_READ, NO_TOPIC, PER_PARTITION)],
    ),
    "DescribeGroups": Row(
        lambda _: DescribeGroupsRequest([G]),
        (0, 5, 6),
        [need(GROUP_DESCRIBE, NO_GROUP, "groups.error_code")],
    ),
    "DeleteGroups": Row(
        lambda _: DeleteGroupsRequest([G]),
        (0, 2),
        [need(GROUP_DELETE, NO_GROUP, "results.error_code")],
    ),
    "ConsumerGroupHeartbeat": Row(
        lambda _: ConsumerGroupHeartbeatRequest(
            GroupId("g"), M, 0, rebalance_timeout_ms=10_000, subscribed_topic_names=[T],
            topic_partitions=[],
        ),
        (0, 1),
        [need(GROUP_READ, NO_GROUP), need(TOPIC_DESCRIBE, NO_TOPIC)],
    ),
    "ConsumerGroupDescribe": Row(
        lambda _: ConsumerGroupDescribeRequest([G]),
        (0, 1),
        [need(GROUP_DESCRIBE, NO_GROUP, "groups.error_code")],
    ),
    "TxnOffsetCommit": Row(
        txn_commit,
        (0, 3, 5),
        [
            need(TXN_WRITE, NO_ID, PER_PARTITION),
            need(GROUP_READ, NO_GROUP, PER_PARTITION),
            need(TOPIC_READ, NO_TOPIC, PER_PARTITION),
        ],
    ),
}  # fmt: skip

CASES: Final = [(name, version) for name, row in ROWS.items() for version in row.versions]


class GuardedWorld(World):
    def __init__(self, rights: Rights, settings: GroupSettings | None = None) -> None:
        self.authorizer = rights
        self.verifier = Verifier()
        super().__init__(settings)


def given_offsets(rights: Rights) -> GuardedWorld:
    """A simple group `g` has committed an offset."""
    world = GuardedWorld(rights)
    granted, rights.granted = rights.granted, {GROUP_READ, TOPIC_READ}
    assert world.commit("g") is NONE
    rights.granted = granted
    rights.asked.clear()
    return world


@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_right_is_asked_for_and_suffices(name: str, version: int) -> None:
    row = ROWS[name]
    rights = Rights(*(wanted.right for wanted in row.needs))
    world = given_offsets(rights)
    response = world.ask(row.request(version), version=version).response
    assert refusals_in(response) == set()
    assert set(rights.asked) == {wanted.right for wanted in row.needs}


@pytest.mark.parametrize(("name", "version"), CASES)
def test_each_missing_right_is_named_where_kafka_names_it(name: str, version: int) -> None:
    row = ROWS[name]
    for wanted in row.needs:
        rights = Rights()
        world = given_offsets(rights)
        rights.lacks(wanted.right)
        response = world.ask(row.request(version), version=version).response
        assert refusals_in(response) == {(wanted.place(version), wanted.error_code)}
        assert rights.logged == [wanted.right]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_of_all_missing_rights_the_first_is_named_and_nothing_happens(
    name: str, version: int
) -> None:
    row = ROWS[name]
    rights = Rights()
    world = given_offsets(rights)
    written = world.log.end_position
    response = world.ask(row.request(version), version=version).response
    first = row.needs[0]
    unused = ("error_code", NONE)  # the place of other versions
    assert set(error_codes(response)) - {unused} == {(first.place(version), first.error_code)}
    assert rights.asked == [first.right]
    assert world.log.end_position == written


@pytest.mark.parametrize("name", ROWS)
def test_rights_come_before_a_coordinator_that_loads_or_is_elsewhere(name: str) -> None:
    row = ROWS[name]
    version, first = row.versions[-1], row.needs[0]
    world = given_offsets(Rights())
    world.coordinator.resign(0, world.now)
    for is_loading in (False, True):
        if is_loading:
            world.coordinator.begin_load(0, world.log)
        response = world.ask(row.request(version), version=version).response
        assert refusals_in(response) == {(first.place(version), first.error_code)}


def test_without_acls_the_handlers_are_left_alone() -> None:
    world = World()
    world.coordinator.authorizer = Rights()  # too late
    heartbeat = world.coordinator.handlers[ApiKey.HEARTBEAT]
    assert heartbeat == world.coordinator._heartbeat


# ---------------------------------------------------------------- FindCoordinator


def test_many_keys_are_judged_one_by_one() -> None:
    world = GuardedWorld(Rights(("DESCRIBE", "group a"), ("DESCRIBE", "group c")))
    request = FindCoordinatorRequest(coordinator_keys=["a", "b", "c", "b"])
    response = world.ask(request, version=4).response
    assert isinstance(response, FindCoordinatorResponse)
    assert [(found.key, found.error_code, found.port) for found in response.coordinators] == [
        ("a", NONE, 9092),
        ("b", NO_GROUP, -1),
        ("c", NONE, 9092),
        ("b", NO_GROUP, -1),
    ]
    assert {found.error_message for found in response.coordinators} == {""}


@pytest.mark.parametrize(
    ("key_type", "text"),
    [(0, "Group authorization failed."), (1, "Transactional Id authorization failed.")],
)
def test_old_versions_have_kafkas_text(key_type: int, text: str) -> None:
    response = GuardedWorld(Rights()).ask(FindCoordinatorRequest("x", key_type), version=1).response
    assert isinstance(response, FindCoordinatorResponse)
    assert (response.error_message, response.node_id) == (text, -1)


def test_a_client_without_rights_does_not_begin_the_topic_of_transactions() -> None:
    asked: list[str] = []

    def find() -> ErrorCode:
        asked.append("begun")
        return NONE

    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["x", "x"])
    token = ReplyToken(4, "", "")
    here = (1, "localhost", 9092)
    find_coordinator(request, token, here, find, Rights())
    assert asked == []
    find_coordinator(request, token, here, find, Rights(TXN_DESCRIBE))
    assert asked == ["begun"]


# ---------------------------------------------------------------- membership


def test_a_sync_that_does_not_name_its_protocol_is_refused_for_that() -> None:
    request = SyncGroupRequest(G, GenerationId(1), M)
    asked = GuardedWorld(Rights()).ask(request, version=5)
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_id_needs_rights_too() -> None:
    world = GuardedWorld(Rights())
    assert world.beat("", "m", 1).error is NO_GROUP
    assert world.join("").error is NO_GROUP


def test_a_member_that_loses_its_right_is_refused_at_its_next_heartbeat() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    group = world.given_stable_group("g", members=1)
    assert world.heartbeat(group, group.leader_id) is NONE
    rights.lacks(GROUP_READ)
    assert world.heartbeat(group, group.leader_id) is NO_GROUP
    assert world.leave("g", group.leader_id).error is NO_GROUP
    assert group.leader_id in world.group("g").members


def test_a_consumer_protocol_that_is_turned_off_comes_before_rights() -> None:
    settings = kafka_settings(group_coordinator_rebalance_protocols=("classic",))
    world = GuardedWorld(Rights(), settings)
    assert world.heartbeat_consumer().error is ErrorCode.UNSUPPORTED_VERSION
    response = world.ask(ConsumerGroupDescribeRequest([G]), version=1).response
    assert set(error_codes(response)) == {("groups.error_code", ErrorCode.UNSUPPORTED_VERSION)}


def test_a_heartbeat_without_a_subscription_needs_no_topic() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    epoch = world.heartbeat_consumer(topics=["t"]).beaten.member_epoch
    rights.lacks(TOPIC_DESCRIBE)
    assert world.heartbeat_consumer(epoch=epoch).error is NONE
    assert world.heartbeat_consumer(epoch=epoch, topics=["t"]).error is NO_TOPIC


# ---------------------------------------------------------------- offsets


def commits(world: World, *topics: str, version: int = 9) -> list[tuple[str, ErrorCode]]:
    named = [
        OffsetCommitRequestTopic(
            TopicName(name), Topics().id_of(name), [OffsetCommitRequestPartition(0, 7)]
        )
        for name in topics
    ]
    response = world.ask(OffsetCommitRequest(G, topics=named), version=version).response
    assert isinstance(response, OffsetCommitResponse)
    return [(topic.name, topic.partitions[0].error_code) for topic in response.topics]


@pytest.mark.parametrize("version", [9, BY_ID_SINCE])
def test_topics_that_may_be_read_are_kept(version: int) -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(a=1, b=1)
    rights.lacks(("READ", "topic b"), ("READ", "topic gone"))
    # An id that nobody knows has no name to be asked about.
    gone = ("gone", NO_TOPIC) if version < BY_ID_SINCE else ("gone", ErrorCode.UNKNOWN_TOPIC_ID)
    assert commits(world, "b", "a", "gone", version=version) == [("b", NO_TOPIC), gone, ("a", NONE)]
    assert list(world.group("g").offsets) == ["a"]


@pytest.mark.parametrize("version", [9, BY_ID_SINCE])
def test_a_refusal_of_the_coordinator_leaves_forbidden_topics_their_reason(version: int) -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(a=1, b=1)
    rights.lacks(("READ", "topic b"))
    world.log.full = True
    assert commits(world, "a", "b", version=version) == [
        ("b", NO_TOPIC),
        ("a", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ]


def test_transactional_commits_of_readable_topics_are_kept() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(a=1, b=1)
    rights.lacks(("READ", "topic b"))
    topics = [
        TxnOffsetCommitRequestTopic(TopicName(name), [TxnOffsetCommitRequestPartition(0, 7)])
        for name in ("b", "a")
    ]
    request = TxnOffsetCommitRequest("x", G, ProducerId(P1), 0, topics=topics)
    expected = {("b", NO_TOPIC), ("a", NONE)}
    for is_full in (False, True):
        world.log.full = is_full
        response = world.ask(request, version=3).response
        assert isinstance(response, TxnOffsetCommitResponse)
        found = {(topic.name, topic.partitions[0].error_code) for topic in response.topics}
        assert found == expected
        expected = {("b", NO_TOPIC), ("a", ErrorCode.COORDINATOR_NOT_AVAILABLE)}


def test_all_offsets_are_those_of_topics_that_may_be_seen() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(a=1, b=1)
    commits(world, "a", "b")
    rights.lacks(("DESCRIBE", "topic a"))
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, topics=None)])
    response = world.ask(request, version=8).response
    assert isinstance(response, OffsetFetchResponse)
    assert [topic.name for topic in response.groups[0].topics] == ["b"]
    assert refusals_in(response) == set()


def test_groups_of_a_fetch_are_judged_one_by_one() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(a=1, b=1)
    commits(world, "a", "b")
    rights.lacks(("DESCRIBE", "group h"), ("DESCRIBE", "topic a"))
    topics = [OffsetFetchRequestTopics(TopicName(name), partition_indexes=[0]) for name in "ab"]
    wanted = [OffsetFetchRequestGroup(GroupId(name), topics=topics) for name in "hg"]
    response = world.ask(OffsetFetchRequest(groups=wanted), version=9).response
    assert isinstance(response, OffsetFetchResponse)
    h, g = response.groups
    assert (h.group_id, h.error_code, h.topics) == ("h", NO_GROUP, ())
    assert [
        (topic.name, topic.partitions[0].error_code, topic.partitions[0].committed_offset)
        for topic in g.topics
    ] == [("b", NONE, 7), ("a", NO_TOPIC, -1)]


def test_offsets_of_readable_topics_are_deleted() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(a=1, b=1)
    commits(world, "a", "b")
    rights.lacks(("READ", "topic b"))
    topics = [
        OffsetDeleteRequestTopic(TopicName(name), [OffsetDeleteRequestPartition(0)])
        for name in "ab"
    ]
    response = world.ask(OffsetDeleteRequest(G, topics), version=0).response
    assert isinstance(response, OffsetDeleteResponse)
    assert [(topic.name, topic.partitions[0].error_code) for topic in response.topics] == [
        ("b", NO_TOPIC),
        ("a", NONE),
    ]
    assert list(world.group("g").offsets) == ["b"]


# ---------------------------------------------------------------- many groups


def listed(world: World) -> set[str]:
    response = world.ask(ListGroupsRequest(), version=4).response
    assert isinstance(response, ListGroupsResponse)
    assert response.error_code is NONE
    return {group.group_id for group in response.groups}


def test_groups_are_listed_that_may_be_described() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    for name in ("a", "b"):
        world.commit(name)
    rights.allows_all = False
    assert listed(world) == set()
    rights.granted = {("DESCRIBE", "group a")}
    assert listed(world) == {"a"}
    assert rights.logged == []  # what is left out is no refusal
    rights.granted = {("DESCRIBE", ON_CLUSTER)}
    assert listed(world) == {"a", "b"}


def test_a_list_that_is_not_there_yet_is_refused_for_that() -> None:
    world = given_offsets(Rights())
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, world.log)
    asked = world.ask(ListGroupsRequest(), version=4)
    assert asked.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_forbidden_groups_stand_first_in_a_description() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.commit("a")
    rights.lacks(("DESCRIBE", "group b"))
    response = world.ask(DescribeGroupsRequest([GroupId("a"), GroupId("b")]), version=5).response
    assert isinstance(response, DescribeGroupsResponse)
    assert [(group.group_id, group.error_code) for group in response.groups] == [
        ("b", NO_GROUP),
        ("a", NONE),
    ]
    consumers = ConsumerGroupDescribeRequest([GroupId("a"), GroupId("b")])
    described = world.ask(consumers, version=1).response
    assert isinstance(described, ConsumerGroupDescribeResponse)
    assert [(group.group_id, group.error_code) for group in described.groups] == [
        ("b", NO_GROUP),
        ("a", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_forbidden_groups_stand_last_in_a_deletion() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.commit("a")
    world.commit("b")
    rights.lacks(("DELETE", "group b"))
    request = DeleteGroupsRequest([GroupId("b"), GroupId("a"), GroupId("b")])
    response = world.ask(request, version=2).response
    assert isinstance(response, DeleteGroupsResponse)
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("a", NONE),
        ("b", NO_GROUP),
    ]
    assert world.has_group("b")


def test_a_description_says_what_the_client_may_do() -> None:
    world = given_offsets(Rights(GROUP_READ, GROUP_DESCRIBE))
    request = DescribeGroupsRequest([G], include_authorized_operations=True)
    response = world.ask(request, version=5).response
    assert isinstance(response, DescribeGroupsResponse)
    assert response.groups[0].authorized_operations == 1 << 3 | 1 << 8
    world = GuardedWorld(Rights(GROUP_READ, GROUP_DESCRIBE, TOPIC_DESCRIBE))
    assert world.heartbeat_consumer().error is NONE
    consumers = ConsumerGroupDescribeRequest([G], include_authorized_operations=True)
    described = world.ask(consumers, version=1).response
    assert isinstance(described, ConsumerGroupDescribeResponse)
    assert described.groups[0].authorized_operations == 1 << 3 | 1 << 8


def test_a_consumer_group_with_a_hidden_topic_is_refused_as_a_whole() -> None:
    rights = Rights(allows_all=True)
    world = GuardedWorld(rights)
    world.given_topics(t=2)
    assert world.heartbeat_consumer("g", "m1").error is NONE
    rights.lacks(TOPIC_DESCRIBE)
    response = world.ask(ConsumerGroupDescribeRequest([G]), version=1).response
    assert isinstance(response, ConsumerGroupDescribeResponse)
    (group,) = response.groups
    assert (group.group_id, group.error_code, group.members) == ("g", NO_TOPIC, ())
    assert group.error_message == (
        "The group has described topic(s) that the client is not authorized to describe."
    )
