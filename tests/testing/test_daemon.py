"""A test's daemon: its clock, its groups, holds and failures, seen by members on raw sockets."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from client.wire import connect_wire
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.names import ErrorCode, GroupId, MemberId
from rollcall.testing import (
    DaemonDied,
    ForkServer,
    NotPossible,
    Rollcall,
    WaitTimedOut,
    WrongQuestion,
)
from tests.testing.raw_member import TOPIC, RawMember

Start = Callable[..., Rollcall]


# Time.


def test_a_jump_ends_the_session_of_a_silent_member(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap).enter()

    rollcall.advance(44)
    assert rollcall.group("billing").state == "Stable"
    rollcall.advance(2)

    assert rollcall.group("billing").state == "Empty"
    assert member.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_between_two_jumps_keeps_a_member(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap).enter()

    for _ in range(3):
        rollcall.advance(30)
        assert member.beat() is ErrorCode.NONE

    rollcall.wait("billing", state="Stable", members=1)


def test_sessions_end_in_the_order_of_their_deadlines_in_one_jump(rollcall: Rollcall) -> None:
    RawMember(rollcall.bootstrap, "slow", session_s=45).enter()
    RawMember(rollcall.bootstrap, "fast", session_s=10).enter()

    rollcall.advance(3_600)

    ended = [
        (datetime.fromisoformat(line.split()[0]), line.split()[1])
        for line in rollcall.timeline().splitlines()
        if "members_removed: expired" in line
    ]
    assert [group for _, group in ended] == ["fast", "slow"]
    assert 30 < (ended[1][0] - ended[0][0]).total_seconds() < 40


def test_what_follows_from_a_deadline_happens_within_the_jump(rollcall: Rollcall) -> None:
    """The waiting member gets its answer at 45 s, and its own silence counts from there."""
    silent = RawMember(rollcall.bootstrap, session_s=30).enter()
    waiting = RawMember(rollcall.bootstrap, session_s=60)
    waiting.send_join()
    waiting.receive_join_id()
    rollcall.wait("billing", state="PreparingRebalance")

    rollcall.advance(40)

    waiting.receive_join()
    assert waiting.sync() is ErrorCode.NONE
    rollcall.wait("billing", state="Stable", members=1)
    assert silent.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    rollcall.advance(70)
    rollcall.wait("billing", state="Empty", members=0)


def test_a_jump_of_a_day_has_all_its_deadlines_and_ends(rollcall: Rollcall) -> None:
    RawMember(rollcall.bootstrap).enter()
    before_ms = rollcall.now_ms()

    rollcall.advance(86_400)  # thousands of deadlines: sweeps, checks of retention

    assert rollcall.now_ms() - before_ms >= 86_400_000
    assert rollcall.group("billing").state in ("Empty", "Dead")


def test_the_clock_also_runs_by_itself(rollcall_factory: Start) -> None:
    daemon = rollcall_factory(group_min_session_timeout_ms=1)
    RawMember(daemon.bootstrap, session_s=0.05, instance_id="i-1").join()

    daemon.wait("billing", state="Empty", members=0)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 31 * 86_400])
def test_a_time_that_is_none_is_refused(rollcall_session: Rollcall, seconds: float) -> None:
    with pytest.raises(WrongQuestion, match="0 to 30 days"):
        rollcall_session.advance(seconds)


# Groups.


def test_one_member_is_expired_by_any_of_its_names(rollcall_session: Rollcall) -> None:
    daemon = rollcall_session
    for name in ("member id", "client id", "instance id"):
        group = f"expire by {name}"
        member = RawMember(
            daemon.bootstrap,
            group,
            client_id="worker-1",
            instance_id="i-1" if name == "instance id" else None,
        ).enter()
        known_as = {"member id": member.member_id, "client id": "worker-1", "instance id": "i-1"}

        daemon.expire(group, known_as[name])

        assert daemon.group(group).state == "Empty"
        assert member.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_expiring_nobody_says_who_is_there(rollcall: Rollcall) -> None:
    with pytest.raises(WrongQuestion, match="no group billing; there are: none"):
        rollcall.expire("billing", "m")
    member = RawMember(rollcall.bootstrap).enter()
    with pytest.raises(WrongQuestion, match=f"no member m; it has: {member.member_id}"):
        rollcall.expire("billing", "m")


def test_a_wait_that_is_in_vain_says_how_the_group_is(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap)
    member.join()

    with pytest.raises(
        WaitTimedOut,
        match=r"group billing is not Stable with 2 members after 0\.05 s: "
        rf"it is CompletingRebalance with 1 member \({member.member_id}\), generation 1\. .*wait",
    ):
        rollcall.wait("billing", state="Stable", members=2, timeout=0.05)
    with pytest.raises(WaitTimedOut, match="group other is not Empty after 0 s: it is Dead with 0"):
        rollcall.wait("other", state="Empty", timeout=0)


def test_a_wait_for_a_state_that_does_not_exist_is_refused(rollcall_session: Rollcall) -> None:
    with pytest.raises(WrongQuestion, match="there is no state stable; did you mean Stable"):
        rollcall_session.wait("billing", state="stable")
    with pytest.raises(WrongQuestion, match="give a state"):
        rollcall_session.wait("billing")
    with pytest.raises(WrongQuestion, match="timeout is a number of seconds, not nan"):
        rollcall_session.wait("billing", state="Stable", timeout=float("nan"))


async def test_a_coroutine_waits_while_its_loop_runs_on(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap).enter()

    group = await rollcall.wait_async("billing", state="Stable", members=1)

    assert [each.member_id for each in group.members] == [member.member_id]
    with pytest.raises(WaitTimedOut):
        await rollcall.wait_async("billing", members=2, timeout=0.02)


# Faults.


def test_held_requests_wait_and_are_handled_when_the_hold_ends(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap)
    member.join()

    with rollcall.hold("SyncGroup") as hold:
        member.send_sync()
        hold.wait(1)
        assert hold.count == 1
        assert rollcall.group("billing").state == "CompletingRebalance"

    assert member.receive_sync() is ErrorCode.NONE
    rollcall.wait("billing", state="Stable")


def test_two_holds_of_an_api_end_with_the_second(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap)
    member.join()

    with rollcall.hold("SyncGroup") as outer:
        with rollcall.hold("SyncGroup"):
            member.send_sync()
            outer.wait(1)
        assert outer.count == 1

    assert member.receive_sync() is ErrorCode.NONE


def test_a_held_request_of_a_client_that_has_gone_is_not_handled(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap)
    member.join()

    with rollcall.hold("SyncGroup") as hold:
        member.send_sync()
        hold.wait(1)
        member.wire.reset()
        until(lambda: hold.count == 0)

    assert rollcall.group("billing").state == "CompletingRebalance"


def test_a_hold_in_which_nothing_comes_says_so(rollcall_session: Rollcall) -> None:
    with (
        rollcall_session.hold("DeleteGroups") as hold,
        pytest.raises(WaitTimedOut, match="0 of 2 DeleteGroups requests came within 0 s"),
    ):
        hold.wait(2, timeout=0)


def test_the_next_requests_fail_in_every_partition_and_then_no_more(rollcall: Rollcall) -> None:
    rollcall.create_topic(TOPIC, 3)
    member = RawMember(rollcall.bootstrap).enter()

    rollcall.fail_next("OffsetCommit", "REBALANCE_IN_PROGRESS", times=2)

    for _ in range(2):
        assert member.commit(0, 2) == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert member.commit(0, 2) == [ErrorCode.NONE] * 2


def test_failures_come_in_the_order_in_which_they_were_asked_for(rollcall: Rollcall) -> None:
    member = RawMember(rollcall.bootstrap).enter()
    rollcall.fail_next("Heartbeat", "NOT_COORDINATOR")
    rollcall.fail_next("Heartbeat", "COORDINATOR_NOT_AVAILABLE")

    with rollcall.hold("Heartbeat"):  # what fails needs not wait
        assert member.beat() is ErrorCode.NOT_COORDINATOR
        assert member.beat() is ErrorCode.COORDINATOR_NOT_AVAILABLE

    assert member.beat() is ErrorCode.NONE


def test_names_that_kafka_does_not_have_are_refused(rollcall_session: Rollcall) -> None:
    daemon = rollcall_session
    with pytest.raises(WrongQuestion, match="no API OffsetsCommit; did you mean OffsetCommit"):
        daemon.fail_next("OffsetsCommit", "REBALANCE_IN_PROGRESS")
    with pytest.raises(WrongQuestion, match="no error rebalance_in_progress; did you mean REB"):
        daemon.fail_next("OffsetCommit", "rebalance_in_progress")
    with pytest.raises(WrongQuestion, match="times is 0"):
        daemon.fail_next("OffsetCommit", "REBALANCE_IN_PROGRESS", times=0)
    with (
        pytest.raises(WrongQuestion, match="no API syncgroup; did you mean SyncGroup"),
        daemon.hold("syncgroup"),
    ):
        pass


# Topics, the admin port, configuration.


def test_a_topic_is_there_at_once(rollcall: Rollcall) -> None:
    rollcall.create_topic(TOPIC, partitions=2)

    with pytest.raises(WrongQuestion, match="topic orders: TOPIC_ALREADY_EXISTS"):
        rollcall.create_topic(TOPIC)
    with pytest.raises(WrongQuestion, match="INVALID_PARTITIONS"):
        rollcall.create_topic("none", partitions=0)


def test_the_admin_port_answers(rollcall_session: Rollcall) -> None:
    with urllib.request.urlopen(f"http://{rollcall_session.admin}/readyz", timeout=60) as answer:
        assert json.load(answer)["ready"] is True


def test_properties_have_underscores_or_kafkas_names(
    rollcall_factory: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_GROUP_MAX_SIZE", "7")  # not meant for a test's daemon
    daemon = rollcall_factory({"group.max.size": 1}, auto_create_topics_enable=False)
    RawMember(daemon.bootstrap).enter()

    second = RawMember(daemon.bootstrap)
    with pytest.raises(AssertionError, match="GROUP_MAX_SIZE_REACHED"):
        second.join()


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"group_max_sizes": 1}, "group.max.sizes"),
        ({"group_max_size": "many"}, "group.max.size"),
        ({"log_dir": "/tmp"}, "a data directory of its own"),
    ],
)
def test_a_property_that_the_daemon_refuses_is_named(
    rollcall_factory: Start, properties: dict[str, str], words: str
) -> None:
    with pytest.raises(WrongQuestion, match=words):
        rollcall_factory(**properties)


# The end.


def until(is_so: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_nothing_is_left_of_a_daemon_that_was_closed() -> None:
    with ForkServer() as server:
        daemon = server.start()
        assert (daemon.folder / "data").is_dir()
        daemon.close()
        assert not is_running(daemon.pid)
        with pytest.raises(NotPossible, match="advance: this daemon was closed"):
            daemon.advance(1)
        other = server.start()
    assert not is_running(other.pid)
    assert not other.folder.parent.exists()


def test_a_daemon_that_has_died_says_so(rollcall_factory: Start) -> None:
    daemon = rollcall_factory()
    os.kill(daemon.pid, signal.SIGTERM)

    until(lambda: "Shutdown complete" in daemon.log())
    until(lambda: not is_running(daemon.pid))
    with pytest.raises(DaemonDied, match=r"has ended: (.|\n)*Shutdown complete"):
        daemon.now_ms()


# The consumer protocol (KIP-848).


def test_sessions_of_the_consumer_protocol_end_too(rollcall: Rollcall) -> None:
    rollcall.create_topic(TOPIC)
    wire = connect_wire(rollcall.bootstrap, "raw")
    for member_id in ("m-1", "m-2"):
        answer = wire.ask(
            ConsumerGroupHeartbeatRequest(
                GroupId("billing"),
                MemberId(member_id),
                rebalance_timeout_ms=300_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            ),
            ConsumerGroupHeartbeatResponse,
            1,
        )
        assert answer.error_code is ErrorCode.NONE, answer
    assert {member.client_id for member in rollcall.wait("billing", members=2).members} == {"raw"}

    rollcall.expire("billing", "m-1")
    assert [each.member_id for each in rollcall.group("billing").members] == ["m-2"]
    rollcall.advance(46)
    rollcall.wait("billing", state="Empty", members=0)


def _close(daemon: Rollcall) -> None:
    daemon.close()


def _kill(daemon: Rollcall) -> None:
    os.kill(daemon.pid, signal.SIGKILL)
    until(lambda: not is_running(daemon.pid))


def _end_while_held(daemon: Rollcall, end: Callable[[Rollcall], None]) -> None:
    with daemon.hold("SyncGroup"):
        end(daemon)
        raise KeyError


@pytest.mark.parametrize("end", [_close, _kill])
def test_a_hold_on_a_daemon_that_has_ended_leaves_the_error_of_the_test_alone(
    rollcall_factory: Callable[[], Rollcall], end: Callable[[Rollcall], None]
) -> None:
    with pytest.raises(KeyError):
        _end_while_held(rollcall_factory(), end)
