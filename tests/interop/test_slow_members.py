"""Slow members: how they are treated, on real sockets and with the real clock.

The seven cases of the protocol's design, (a) to (g), each with members that the test drives request
by request; what is decided is tested in virtual time, under tests/coordinator/. And the other way
round: a coordinator that was slow itself does not count the silence of its members.
"""

import time

import pytest

from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.names import UNKNOWN_MEMBER_ID, ErrorCode
from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.drills.crowd import TIMEOUT_S, Crowd, Place, RawMember
from tests.interop.conftest import SETTINGS, GivenTopic, create_topic

SESSION_MS = 3_000
REBALANCE_MS = 4_000
STALL_S = 6.0  # a stall of the daemon that outlasts its members' sessions

FIND_VERSION = 6


class Group:
    """Two members, `quick` with a long session and `slow` with a short one, both inside."""

    def __init__(
        self,
        port: int,
        topic: str,
        group: str,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> None:
        self.port = port
        self.topic = topic
        self.group = group
        self.rebalance_ms = rebalance_ms
        self.quick = self.member("quick", session_timeout_ms=60_000)
        self.slow = self.member("slow", session_timeout_ms=session_ms)
        Crowd(port, [self.quick]).complete_rebalance()  # who comes first leads: never the slow one
        self.generation = Crowd(port, [self.quick, self.slow]).complete_rebalance()
        for member in (self.quick, self.slow):
            self.finish(member)

    def member(self, name: str, *, session_timeout_ms: int) -> RawMember:
        return RawMember(
            *(name, self.group, self.topic, 0),
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_ms,
        )

    def newcomer(self) -> RawMember:
        """One that has been given its id, and whose JoinGroup waits for the others."""
        member = self.member("newcomer", session_timeout_ms=60_000)
        member.connect(self.port)
        member.send_join()
        member.hear()
        member.send_join()
        return member

    def finish(self, member: RawMember) -> None:
        """Take the answer that is still to come."""
        if member.asked is not None:
            member.hear()

    def rejoin(self, member: RawMember) -> None:
        """Send a JoinGroup; it will be answered when the others have come, or are given up."""
        member.place = Place.OUTSIDE
        member.send_join()

    def sync(self, *members: RawMember) -> None:
        """Hear the answers to the joins, the leader last, and sync."""
        for member in members:
            member.hear()
            assert member.place is Place.JOINED, member.errors
            member.act()
        for member in members:
            member.hear()
            assert member.place is Place.INSIDE, member.errors


@pytest.fixture
def group(shared_daemon: Daemon, given_topic: GivenTopic) -> Group:
    topic = given_topic(1)
    return Group(shared_daemon.port, topic, f"slow-{topic}")


@pytest.fixture
def in_time(shared_daemon: Daemon, given_topic: GivenTopic) -> Group:
    """One in which the slow member comes in time, on a machine of any speed."""
    topic = given_topic(1)
    return Group(shared_daemon.port, topic, f"slow-{topic}", 60_000, 60_000)


def until_answer_other_than(member: RawMember, but: ErrorCode = ErrorCode.NONE) -> ErrorCode:
    """The first thing that its heartbeats hear besides that all is well."""
    deadline = time.monotonic() + TIMEOUT_S
    while (heard := member.beat()) is but:
        assert time.monotonic() < deadline, f"{member.name} hears nothing but {heard!r}"
        time.sleep(0.02)  # a client's pace, not a wait
    return heard


def until_logged(daemon: Daemon, words: str, member: RawMember) -> None:
    def logged() -> bool:
        lines = daemon.log().splitlines()
        return any(words in line and member.member_id in line for line in lines)

    deadline = time.monotonic() + TIMEOUT_S
    while not logged():
        assert time.monotonic() < deadline, f"{words!r} is not in {daemon.log()[-2_000:]}"
        time.sleep(0.02)


def test_a_silent_for_its_session_it_is_removed_and_the_others_learn_it(group: Group) -> None:
    assert until_answer_other_than(group.quick) is ErrorCode.REBALANCE_IN_PROGRESS

    assert group.slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    group.rejoin(group.quick)
    group.sync(group.quick)
    assert group.quick.generation == group.generation + 1


def test_b_heard_from_before_any_member_knew_it_stays_a_member(
    shared_daemon: Daemon, group: Group
) -> None:
    until_logged(shared_daemon, "Member was silent for its whole session", group.slow)

    assert group.slow.beat() is ErrorCode.NONE
    assert group.quick.beat() is ErrorCode.NONE
    assert group.slow.generation == group.quick.generation == group.generation


def test_c_heard_from_in_the_rebalance_it_rejoins_in_time_and_is_in(in_time: Group) -> None:
    group = in_time
    newcomer = group.newcomer()
    assert until_answer_other_than(group.quick) is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.quick)

    assert group.slow.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.slow)

    group.sync(newcomer, group.slow, group.quick)
    assert {m.generation for m in (newcomer, group.slow, group.quick)} == {group.generation + 1}


def test_d_it_rejoins_after_the_answers_went_out_and_the_next_round_begins(group: Group) -> None:
    newcomer = group.newcomer()
    assert until_answer_other_than(group.quick) is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.quick)
    # Given a round that is completed without it, for it is only heard from, again and again.
    heard = until_answer_other_than(group.slow, but=ErrorCode.REBALANCE_IN_PROGRESS)
    group.sync(newcomer, group.quick)
    assert group.quick.generation == group.generation + 1

    assert heard is ErrorCode.UNKNOWN_MEMBER_ID
    group.slow.member_id = UNKNOWN_MEMBER_ID
    group.slow.send_join()
    group.slow.hear()  # its new id
    group.slow.send_join()
    for member in (group.quick, newcomer):
        assert until_answer_other_than(member) is ErrorCode.REBALANCE_IN_PROGRESS
        group.rejoin(member)
    group.sync(group.slow, newcomer, group.quick)
    assert group.slow.generation == group.generation + 2


def test_e_it_pauses_before_its_join_and_is_not_in_the_generation(group: Group) -> None:
    newcomer = group.newcomer()
    assert until_answer_other_than(group.quick) is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.quick)

    group.sync(newcomer, group.quick)
    assert group.slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    ((_, roster),) = [led for led in group.quick.led + newcomer.led if led[0] > group.generation]
    assert roster == {group.quick.member_id, newcomer.member_id}


def test_f_it_pauses_after_its_join_counts_and_expires_later(group: Group) -> None:
    newcomer = group.newcomer()
    assert until_answer_other_than(group.quick) is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.slow.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.slow)
    group.rejoin(group.quick)

    # It joined, so it is in; it never syncs, and the group is stable without that.
    group.sync(newcomer, group.quick)
    assert group.slow.member_id in (group.quick.led + newcomer.led)[-1][1]

    # Its session ran from the answer that it never read.
    assert until_answer_other_than(group.quick) is ErrorCode.REBALANCE_IN_PROGRESS


def test_g_its_client_times_out_finds_the_coordinator_again_and_rejoins_with_its_id(
    shared_daemon: Daemon, in_time: Group
) -> None:
    group = in_time
    newcomer = group.newcomer()
    assert group.slow.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.slow)

    # Given a client that does not want to wait so long, and asks who coordinates its group.
    group.slow.disconnect()
    group.slow.connect(group.port)
    request = FindCoordinatorRequest(coordinator_keys=[group.group])
    answer = group.slow.ask(request, FindCoordinatorResponse, FIND_VERSION)
    assert isinstance(answer, FindCoordinatorResponse)
    (coordinator,) = answer.coordinators
    assert f"{coordinator.host}:{coordinator.port}" == shared_daemon.bootstrap

    # When it joins again with its id, its first request is forgotten, and it is one member.
    member_id = group.slow.member_id
    group.rejoin(group.slow)
    assert group.quick.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    group.rejoin(group.quick)
    group.sync(group.slow, newcomer, group.quick)
    assert group.slow.member_id == member_id
    assert len((group.quick.led + newcomer.led)[-1][1]) == 3


def test_a_coordinator_that_stalled_itself_expires_nobody(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, "orders", 1)
    group = Group(daemon.port, "orders", "billing")

    # Given a daemon that is stopped for longer than the session, while its members go on.
    daemon.pause()
    for member in (group.slow, group.quick):
        member.place = Place.INSIDE
        member.act()
    time.sleep(STALL_S)
    daemon.resume()

    # Then it hears what they said meanwhile, before it looks at its clock.
    for member in (group.slow, group.quick):
        member.hear()
        assert member.beat() is ErrorCode.NONE
    assert group.slow.generation == group.quick.generation == group.generation
