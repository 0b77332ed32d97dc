"""Groups that are no consumers': Connect, Schema Registry, and Streams' standby tasks."""

import json
import struct

import pytest

from broker.metrics.group_series import lag_max_of, lag_sum_of
from broker.metrics.labelled import ShownGroup
from history.causes import Cause
from history.recording.attribution import offer_change
from protocol.consumer_protocol import ConsumerProtocolAssignment, write_assignment
from protocol.member_metadata import (
    ConnectAssignment,
    ConnectWorker,
    StreamsTasks,
    connect_assignment,
    connect_worker,
    registry_master,
    streams_tasks,
)
from protocol.names import GroupState
from tests.history.history_world import HistoryWorld, offers


def text(words: str) -> bytes:
    return struct.pack(">h", len(words)) + words.encode()


def worker(offset: int, allocation: bytes = b"") -> bytes:
    """Version, url, config offset, what it runs: ExtendedWorkerState of Connect."""
    head = struct.pack(">h", 1) + text("http://w1.example:8083/") + struct.pack(">q", offset)
    return head + struct.pack(">i", len(allocation)) + allocation


def work(offset: int, *connectors: tuple[str, list[int]]) -> bytes:
    packed = struct.pack(">hh", 1, 0) + text("w-1") + text("http://w1.example:8083/")
    packed += struct.pack(">qi", offset, len(connectors))
    for name, tasks in connectors:
        packed += text(name) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks)
    return packed + struct.pack(">ii", 0, 0)


def streams(version: int, active: int, standby: int) -> bytes:
    packed = struct.pack(">i", version) + (struct.pack(">i", 13) if version >= 3 else b"")
    task = struct.pack(">ii", 0, 1) + (struct.pack(">i", 0) if version >= 10 else b"")
    packed += struct.pack(">i", active) + task * active + struct.pack(">i", standby)
    return packed + (task + struct.pack(">i", 1) + text("t") + struct.pack(">i", 1)) * standby


def group(world: HistoryWorld, protocol_type: str, metadata: bytes) -> list[str]:
    """A Stable group of two that are no consumers."""
    answers = world.given_joined(
        members=2, protocol_type=protocol_type, protocols=[("sessioned", metadata)]
    )
    given = {answer.member_id: work(12, ("a", [-1, 0])) for answer in answers}
    for answer in reversed(answers):
        world.sync(
            "g",
            answer.member_id,
            answer.generation_id,
            assignments=given if answer.member_id == answer.leader else None,
            protocol_type=protocol_type,
            protocol_name="sessioned",
        )
    assert world.group().state is GroupState.STABLE
    return [answer.member_id for answer in answers]


def test_documented_bytes_are_read_and_others_are_opaque() -> None:
    assert connect_worker(worker(12)) == ConnectWorker("http://w1.example:8083/", 12)
    tasks = work(12, ("a", [-1, 0, 1]), ("b", [0]))
    assert connect_assignment(tasks) == ConnectAssignment("http://w1.example:8083/", 12, 1, 3)
    for version in (1, 2, 3, 9, 10, 13):
        assert streams_tasks(streams(version, 2, 3)) == StreamsTasks(2, 3)
    master = {"error": 0, "master": "sr-1", "master_identity": {"host": "h.example", "port": 8081}}
    assert registry_master(json.dumps(master).encode()) == "http://h.example:8081"
    assert registry_master(b'{"error": 1, "master": null}') == ""
    for raw in (b"", b"\x00", b"{}", b"\xff" * 40, bytes(3), tasks[:-9]):
        assert connect_worker(raw[:5]) is None
        assert registry_master(raw) is None
    assert connect_assignment(tasks[:40]) is None
    assert streams_tasks(streams(3, 2, 3)[:-1]) is None
    assert streams_tasks(struct.pack(">iii", 3, 13, 1 << 30)) is None
    assert streams_tasks(struct.pack(">i", 99)) is None


@pytest.mark.parametrize("at", range(0, 60, 3))
def test_cut_bytes_are_opaque_never_an_error(at: int) -> None:
    connect_worker(worker(12)[:at])
    connect_assignment(work(12, ("a", [0]))[:at])
    streams_tasks(streams(10, 2, 3)[:at])


def test_a_new_config_offset_of_connect_says_so(world: HistoryWorld) -> None:
    ids = group(world, "connect", worker(12))
    assert world.last.described == (
        "2 connectors and 2 tasks on 2 workers; the leader is http://w1.example:8083/, "
        "config offset 12"
    )
    changed = [("sessioned", worker(15))]
    world.join("g", ids[1], protocol_type="connect", protocols=changed)
    assert world.last.cause is Cause.SUBSCRIPTION_CHANGED
    assert "config offset went from 12 to 15" in world.last.note
    assert world.last.protocol_type == "connect"


@pytest.mark.parametrize("at", [0, 1])
def test_after_a_restart_a_connect_group_rejoins_for_the_restart(
    world: HistoryWorld, at: int
) -> None:
    ids = group(world, "connect", worker(12))
    world.crash()
    world.advance(300)
    runs = [("sessioned", worker(12, b"what it runs now"))]
    world.join("g", ids[at], protocol_type="connect", protocols=runs)
    assert world.last.cause is Cause.COORDINATOR_MOVED
    assert world.last.began_by in (Cause.SUBSCRIPTION_CHANGED, Cause.LEADER_REJOINED)


def test_what_is_not_documented_is_compared_as_bytes_and_said_so() -> None:
    is_other, note = offer_change([("p", b"a")], [("p", b"b")], "p", "my-own")
    assert is_other
    assert "opaque" in note
    assert "my-own" in note
    assert offer_change([("p", b"a")], [("p", b"a")], "p", "my-own") == (False, "")


def test_a_schema_registry_that_moved() -> None:
    def node(host: str) -> bytes:
        return json.dumps({"version": 1, "host": host, "port": 8081}).encode()

    is_other, note = offer_change(
        [("v0", node("a.example"))], [("v0", node("b.example"))], "v0", "sr"
    )
    assert is_other
    assert (
        note == "Schema Registry: its URL went from http://a.example:8081 to http://b.example:8081"
    )


def test_streams_standby_tasks_are_shown(world: HistoryWorld) -> None:
    answers = world.given_joined(
        members=2, protocols=[("stream", offers("t")[0][1])], rebalance_timeout_ms=30_000
    )
    given = {
        answer.member_id: write_assignment(
            ConsumerProtocolAssignment((), user_data=streams(11, 0, standby))
        )
        for answer, standby in zip(answers, (0, 3), strict=True)
    }
    for answer in reversed(answers):
        is_leader = answer.member_id == answer.leader
        world.sync(
            "g",
            answer.member_id,
            answer.generation_id,
            assignments=given if is_leader else None,
            protocol_name="stream",
        )
    (held,) = world.last.held
    assert (held.member.member_id, held.standby) == (answers[1].member_id, 3)


def test_a_connect_group_has_no_lag_in_the_metrics_rather_than_zero(world: HistoryWorld) -> None:
    group(world, "connect", worker(12))
    shown = ShownGroup(world.group(), None)
    assert (lag_sum_of(shown), lag_max_of(shown)) == (None, None)


def test_a_consumer_group_that_never_committed_has_a_lag_of_zero_in_the_metrics(
    world: HistoryWorld,
) -> None:
    world.consumers(2)
    shown = ShownGroup(world.group(), None)
    assert (lag_sum_of(shown), lag_max_of(shown)) == (0, 0)
