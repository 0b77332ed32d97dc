"""The daemon as a process: how it starts, dies, comes back, and stops."""

import json
import re
import signal
import time

import pytest

from broker.net.sockets import has_ipv6
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.names import ErrorCode, TopicName
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.broker.members import Member, as_other, make_topic
from tests.broker.shell import Client
from tests.conftest import StartDaemon
from tests.ports import held_ports


def test_it_says_where_it_listens_and_stops_cleanly(daemon: Daemon) -> None:
    assert daemon.port > 0
    assert daemon.stop() == 0
    assert (daemon.data_dir / ".kafka_cleanshutdown").exists()
    for words in ("Starting up.", "Startup complete.", "Shutting down.", "Shutdown complete."):
        assert words in daemon.log()
    assert "Elected as the group coordinator" in daemon.log()


def test_an_interrupt_stops_it_as_well(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.wait() == 0
    assert (daemon.data_dir / ".kafka_cleanshutdown").exists()


async def test_a_member_and_its_commits_outlive_kill_9(daemon: Daemon) -> None:
    # Given a member that has committed.
    client = await Client.connect(daemon.port)
    await make_topic(client)
    member = Member(client)
    await member.enter()
    for offset in range(1, 101):
        assert await member.commit(offset) is ErrorCode.NONE

    # When the daemon dies and comes back, on the same port.
    daemon.kill()
    daemon.start()

    # Then the member goes on in its generation, and every commit is there.
    again = as_other(member, await Client.connect(daemon.port))
    assert await again.beat() is ErrorCode.NONE
    assert await again.committed() == 100
    assert (await again.sync()).assignment == b"what the leader says"
    assert await again.commit(101) is ErrorCode.NONE
    assert daemon.stop() == 0


async def test_identity_topics_and_ids_stay_the_same(daemon: Daemon) -> None:
    async def identity() -> tuple[str, dict[TopicName | None, object]]:
        client = await Client.connect(daemon.port)
        await make_topic(client)
        cluster = await client.call(DescribeClusterRequest())
        topics = await client.call(MetadataRequest(topics=None))
        assert isinstance(cluster, DescribeClusterResponse)
        assert isinstance(topics, MetadataResponse)
        return cluster.cluster_id, {topic.name: topic.topic_id for topic in topics.topics}

    before = await identity()
    internal = {"__consumer_offsets", "__group_history", "__group_lag"}
    assert set(before[1]) == {"t", *internal}
    daemon.kill()
    daemon.start()
    assert await identity() == before


async def test_the_leader_epoch_grows_with_each_start(daemon: Daemon) -> None:
    def epochs() -> set[str]:
        files = daemon.data_dir.glob("__consumer_offsets-*/leader-epoch-checkpoint")
        return {file.read_text().splitlines()[-1] for file in files}

    assert epochs() == {"0 0"}
    assert daemon.stop() == 0
    daemon.start()
    assert epochs() == {"1 0"}
    daemon.kill()
    daemon.start()
    assert epochs() == {"2 0"}


async def test_a_stopped_daemon_ends_no_session(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({**TEST_SETTINGS, "group.min.session.timeout.ms": "1"})
    member = Member(await Client.connect(daemon.port), session_timeout_ms=4_000)
    await member.enter()

    # When the daemon is stopped for longer than a session, while the member beats.
    daemon.pause()
    member.client.ask(member.beat_request())
    time.sleep(5)  # noqa: ASYNC251 - it is the stall
    daemon.resume()

    # Then nobody was lost: neither by the beat that waited, nor afterwards.
    _, answer = await member.client.answer()
    assert answer == HeartbeatResponse(error_code=ErrorCode.NONE)
    assert await member.beat() is ErrorCode.NONE
    assert "sessions are extended by as much" in daemon.log()
    assert "has failed, removing it" not in daemon.log()


async def test_who_waits_for_people_is_sent_away_when_it_stops(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({"group.initial.rebalance.delay.ms": "60000"})
    joining = Member(await Client.connect(daemon.port))
    await joining.get_id()
    fetching = await Client.connect(daemon.port)
    await make_topic(fetching)

    # Given a join that waits for the initial delay and a fetch that waits for records.
    joining.client.ask(joining.join_request())
    fetching.ask(
        FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1_000_000,
            topics=[
                FetchTopic(
                    topic=TopicName("t"),
                    partitions=[FetchPartition(0, partition_max_bytes=1_000_000)],
                )
            ],
        ),
        12,
    )
    watcher = await Client.connect(daemon.port)
    await _until_parked(daemon)

    daemon.process.terminate()

    # Then both are answered before their connections are closed, and idle ones are just closed.
    _, join = await joining.client.answer()
    assert isinstance(join, JoinGroupResponse)
    assert join.error_code is ErrorCode.NOT_COORDINATOR
    _, fetch = await fetching.answer()
    assert isinstance(fetch, FetchResponse)
    assert fetch.responses[0].partitions[0].error_code is ErrorCode.NONE
    assert await watcher.closed() == b""
    assert daemon.wait() == 0


async def _until_parked(daemon: Daemon) -> None:
    wanted = (
        re.compile(r'rollcall_purgatory_operations\{operation="Rebalance",kind="\w+"\} 1\n'),
        re.compile(r'rollcall_purgatory_operations\{operation="Fetch",kind="fetch"\} 1\n'),
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        _, text = daemon.get("/metrics")
        if all(sample.search(text) for sample in wanted):
            return
    raise AssertionError("the join and the fetch were not parked")


async def test_commits_in_flight_are_answered_when_it_stops(daemon: Daemon) -> None:
    client = await Client.connect(daemon.port)
    await make_topic(client)
    member = Member(client)
    await member.enter()
    for offset in range(500):
        client.ask(member.commit_request(offset), 9)
    await client.answer()
    daemon.process.terminate()

    # Whatever was answered is there after the restart; nothing is answered that is not.
    answered = 1
    try:
        while True:
            await client.answer()
            answered += 1
    except (EOFError, ConnectionResetError):
        pass
    assert daemon.wait() == 0
    daemon.start()
    again = as_other(member, await Client.connect(daemon.port))
    assert await again.committed() >= answered - 1


async def test_each_listener_advertises_its_own_address(start_daemon: StartDaemon) -> None:
    with held_ports(2) as (inside, outside):
        settings = {
            "listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
            "advertised.listeners": "INSIDE://kafka:9092,OUTSIDE://example.org:19092",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        }
        daemon = start_daemon(settings, listen=None)
    for port, expected in ((inside, ("kafka", 9092)), (outside, ("example.org", 19092))):
        client = await Client.connect(port)
        metadata = await client.call(MetadataRequest(topics=()))
        assert isinstance(metadata, MetadataResponse)
        assert [(broker.host, broker.port) for broker in metadata.brokers] == [expected]
        found = await client.call(FindCoordinatorRequest(coordinator_keys=["g"]))
        assert isinstance(found, FindCoordinatorResponse)
        assert [(coordinator.host, coordinator.port) for coordinator in found.coordinators] == [
            expected
        ]
    assert daemon.stop() == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_clients_come_over_ipv6_too(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(listen="[::1]:0")
    assert daemon.bootstrap.startswith("[::1]:")
    member = Member(await Client.connect(daemon.port, "::1"))
    await member.enter()
    described = await member.client.call(DescribeGroupsRequest(groups=[member.group_id]))
    assert isinstance(described, DescribeGroupsResponse)
    assert [member.client_host for member in described.groups[0].members] == ["/0:0:0:0:0:0:0:1"]
    metadata = await member.client.call(MetadataRequest(topics=()))
    assert isinstance(metadata, MetadataResponse)
    assert [(broker.host, broker.port) for broker in metadata.brokers] == [("::1", daemon.port)]


def test_every_line_of_a_json_log_is_an_object(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({"rollcall.log.format": "json"})
    assert daemon.stop() == 0
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert {"timestamp", "level", "event"} <= set.intersection(*(set(line) for line in lines))
    assert "Shutdown complete." in [line["event"] for line in lines]


def test_it_starts_with_little_memory(daemon: Daemon) -> None:
    assert daemon.resident_bytes() < 80_000_000
