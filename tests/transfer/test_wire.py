"""Brokers of other ages and moods: what `--bootstrap` makes of what they answer.

A broker of a few lines, on a real socket, answers what the test has put down; real ones are asked
in tests/interop.
"""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import client.cluster as client_cluster
from client.errors import ClusterFault
from protocol.codec import decode_request, encode_response
from protocol.messages import Request, Response
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.names import ApiKey, ErrorCode, GroupId, TopicName
from tests.transfer.given import commit, shown
from transfer import wire
from transfer.contents import Contents, GroupContents
from transfer.text_files import to_json
from transfer.wire import ClusterClient, _kind_of

G, T = GroupId("g"), TopicName("t")
NEW = {
    ApiKey.METADATA: 13,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
    ApiKey.FIND_COORDINATOR: 6,
    ApiKey.LIST_GROUPS: 5,
}
OLD = {
    ApiKey.METADATA: 5,
    ApiKey.OFFSET_COMMIT: 3,
    ApiKey.OFFSET_FETCH: 3,
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.LIST_GROUPS: 1,
}


class FakeBroker:
    """Answers by its `answers`; remembers what it was asked, and in which version."""

    def __init__(self, versions: dict[ApiKey, int]) -> None:
        self.asked: list[tuple[ApiKey, int]] = []
        self.errors: list[ErrorCode] = []  # for the next answers of a group's coordinator
        self.committed: dict[tuple[str, str, int], int] = {}
        self.close_on: ApiKey | None = None
        self._versions = versions
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._answers: dict[type[Request], Callable[[Request, int], Response]] = {
            ApiVersionsRequest: self._api_versions,
            MetadataRequest: lambda *_: MetadataResponse(
                brokers=[MetadataResponseBroker(1, "127.0.0.1", self.port)]
            ),
            ListGroupsRequest: lambda *_: ListGroupsResponse(
                error_code=self._error(), groups=[ListedGroup(G, "consumer", "Empty", "Classic")]
            ),
            FindCoordinatorRequest: self._find_coordinator,
            OffsetFetchRequest: self._fetch,
            OffsetCommitRequest: self._commit,
        }
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _error(self) -> ErrorCode:
        return self.errors.pop(0) if self.errors else ErrorCode.NONE

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while len(size := stream.read(4)) == 4:
            frame = stream.read(struct.unpack(">i", size)[0])
            header, request = decode_request(frame, 0, len(frame))
            key, version = header.api_key, header.api_version
            self.asked.append((key, version))
            if key is self.close_on:
                return
            answer = self._answers[type(request)](request, version)
            connection.sendall(encode_response(key, version, header.correlation_id, answer))

    def _api_versions(self, _request: Request, _version: int) -> Response:
        served = [ApiVersion(key, 0, newest) for key, newest in self._versions.items()]
        return ApiVersionsResponse(api_keys=served)

    def _find_coordinator(self, request: Request, version: int) -> Response:
        assert isinstance(request, FindCoordinatorRequest)
        where = (1, "127.0.0.1", self.port)
        if version < 4:
            return FindCoordinatorResponse(node_id=1, host=where[1], port=where[2])
        found = [Coordinator(key, *where) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    def _fetch(self, _request: Request, version: int) -> Response:
        error = self._error()
        places = [(0, 5, "m", ErrorCode.NONE), (1, -1, "", ErrorCode.NONE)]
        places.append((2, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT))
        if version < 8:
            old = [OffsetFetchResponsePartition(n, offset, -1, m, e) for n, offset, m, e in places]
            topics = [OffsetFetchResponseTopic(T, old)] if not error else []
            return OffsetFetchResponse(error_code=error, topics=topics)
        new = [OffsetFetchResponsePartitions(n, offset, 3, m, e) for n, offset, m, e in places]
        named = [OffsetFetchResponseTopics(name=T, partitions=new)] if not error else []
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(G, named, error)])

    def _commit(self, request: Request, _version: int) -> Response:
        assert isinstance(request, OffsetCommitRequest)
        answers = []
        for topic in request.topics:
            error = self._error()
            for partition in topic.partitions:
                if not error:
                    place = (request.group_id, topic.name, partition.partition_index)
                    self.committed[place] = partition.committed_offset
            said = [
                OffsetCommitResponsePartition(p.partition_index, error) for p in topic.partitions
            ]
            answers.append(OffsetCommitResponseTopic(name=topic.name, partitions=said))
        return OffsetCommitResponse(topics=answers)


@contextmanager
def cluster_of(broker: FakeBroker) -> Iterator[ClusterClient]:
    cluster = ClusterClient(f"127.0.0.1:{broker.port}")
    try:
        yield cluster
    finally:
        cluster.close()
        broker.close()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_cluster, "_PAUSE_S", 0.0)


@pytest.mark.parametrize(("versions", "epoch"), [(NEW, 3), (OLD, -1)], ids=["new", "old"])
def test_offsets_are_read_from_brokers_of_any_age(versions: dict[ApiKey, int], epoch: int) -> None:
    broker, contents = FakeBroker(versions), Contents()
    with cluster_of(broker) as cluster:
        listed = cluster.group_ids()
        refused = cluster.fetch(G, contents)
    assert listed == [(G, "classic")], "as it has a protocol type"
    assert shown(contents) == {"g": {("t", 0): 5}}
    found, _ = contents.groups[G].offsets["t", 0]
    assert (found.metadata, found.leader_epoch) == ("m", epoch)
    assert [(offset.partition, offset.error) for offset in refused] == [
        (2, "UNSTABLE_OFFSET_COMMIT")
    ]
    asked = dict(broker.asked)
    assert asked[ApiKey.OFFSET_FETCH] == min(versions[ApiKey.OFFSET_FETCH], 9), "by name"


@pytest.mark.parametrize("versions", [NEW, OLD], ids=["new", "old"])
def test_offsets_are_committed_to_brokers_of_any_age(versions: dict[ApiKey, int]) -> None:
    group = GroupContents(G, {("t", n): (commit(n), 1) for n in range(3)})
    broker = FakeBroker(versions)
    with cluster_of(broker) as cluster:
        assert cluster.commit(group) == []
    assert broker.committed == {("g", "t", n): n for n in range(3)}


def test_many_partitions_are_committed_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PARTITIONS_PER_COMMIT", 4)
    group = GroupContents(G, {("t", n): (commit(n), 1) for n in range(10)})
    broker = FakeBroker(NEW)
    with cluster_of(broker) as cluster:
        assert cluster.commit(group) == []
    assert len(broker.committed) == 10
    assert [key for key, _ in broker.asked].count(ApiKey.OFFSET_COMMIT) == 3


def test_a_coordinator_that_loads_is_asked_again() -> None:
    broker, contents = FakeBroker(NEW), Contents()
    with cluster_of(broker) as cluster:
        broker.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        assert cluster.group_ids() == [(G, "classic")]
        broker.errors = [ErrorCode.NOT_COORDINATOR] * 3
        cluster.fetch(G, contents)
        broker.errors = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert cluster.commit(GroupContents(G, {("t", 0): (commit(7), 1)})) == []
    assert shown(contents) == {"g": {("t", 0): 5}}
    assert broker.committed == {("g", "t", 0): 7}


def test_what_a_coordinator_refuses_is_reported() -> None:
    broker, contents = FakeBroker(NEW), Contents()
    with cluster_of(broker) as cluster:
        broker.errors = [ErrorCode.GROUP_ID_NOT_FOUND]
        (refused,) = cluster.fetch(G, contents)
        broker.errors = [ErrorCode.UNKNOWN_MEMBER_ID]
        answers = cluster.commit(GroupContents(G, {("t", n): (commit(7), 1) for n in range(2)}))
    assert (refused.group, refused.error) == ("g", "GROUP_ID_NOT_FOUND")
    assert [(answer.topic, answer.partition, answer.error) for answer in answers] == [
        ("t", 0, "UNKNOWN_MEMBER_ID"),
        ("t", 1, "UNKNOWN_MEMBER_ID"),
    ]
    assert contents.groups == {}


def test_a_coordinator_that_loads_for_ever_is_given_up() -> None:
    broker = FakeBroker(NEW)
    with cluster_of(broker) as cluster:
        broker.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100
        (refused,) = cluster.fetch(G, Contents())
        assert refused.error == "COORDINATOR_LOAD_IN_PROGRESS"
        broker.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100
        with pytest.raises(ClusterFault, match="COORDINATOR_LOAD_IN_PROGRESS"):
            cluster.group_ids()


def test_a_broker_that_hangs_up_is_reported_in_one_line() -> None:
    broker = FakeBroker(NEW)
    broker.close_on = ApiKey.OFFSET_FETCH
    with cluster_of(broker) as cluster, pytest.raises(ClusterFault, match="closed the connection"):
        cluster.fetch(G, Contents())


def test_a_broker_that_lacks_an_api_is_reported() -> None:
    broker = FakeBroker({ApiKey.METADATA: 13})
    with cluster_of(broker) as cluster, pytest.raises(ClusterFault, match="LIST_GROUPS"):
        cluster.group_ids()


def test_an_address_without_a_broker_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(1_000)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(ClusterFault, match="does not speak Kafka's protocol"):
            ClusterClient(f"127.0.0.1:{port}")
    with pytest.raises(ClusterFault, match=f"127.0.0.1:{port}: Connection refused"):
        ClusterClient(f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["", "host", "host:", "host:70000", "host:1,other"])
def test_an_address_that_is_none_is_reported(address: str) -> None:
    with pytest.raises(ClusterFault):
        ClusterClient(address)


@pytest.mark.parametrize(
    ("protocol_type", "group_type", "kind"),
    [
        ("consumer", "Classic", "classic"),
        ("", "Classic", "simple"),
        ("consumer", "Consumer", "consumer"),
        ("share", "Share", "share"),
        ("streams", "Streams", "streams"),
        ("consumer", "", "classic"),
        ("", "", "simple"),
    ],
)
def test_a_cluster_says_what_kind_of_group_it_is(
    protocol_type: str, group_type: str, kind: str
) -> None:
    assert _kind_of(ListedGroup(G, protocol_type, "Empty", group_type)) == kind
    group = GroupContents(G)
    group.put_offset(("t", 0), 1, -1, "")
    group.reported_kind = kind
    document = json.loads(to_json(Contents({G: group})))
    assert document["groups"][0]["kind"] == kind
