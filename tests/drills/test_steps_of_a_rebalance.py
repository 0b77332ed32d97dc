"""Crash points of a rebalance: what becomes of a group whose coordinator dies at each step?

At each of the steps that the protocol's design names (broker/fail_points.py has them) the daemon
kills itself and is started again on the same data. Three members, who commit all the time, are
joined by a fourth; that is the rebalance. Whatever the step: no acknowledged commit is lost, no
generation is given out twice with different members, and all find together by themselves.
"""

from contextlib import suppress
from pathlib import Path

import pytest

from broker.fail_points import NO_CRASH, Step
from protocol.codec import decode_response
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.names import ApiKey, ErrorCode
from tests.broker.daemon import Daemon
from tests.compare.wire import Closed
from tests.conftest import StartDaemon
from tests.drills.crowd import (
    HEARTBEAT_VERSION,
    Crowd,
    RawMember,
    committed_offsets,
    same_members_in_each_generation,
)
from tests.interop.conftest import SETTINGS, create_topic, produce
from tests.interop.group import members
from tests.interop.members.client import Options
from tests.interop.offsets_log import stored_commits, stored_generations

TOPIC = "orders"
GROUP = "billing"
CRASH_AT = "rollcall.crash.at"

EACH_STEP = pytest.mark.parametrize("step", list(Step))

NEXT_GENERATION_IS_STORED = {
    Step.GENERATION_STORED,
    Step.SOME_JOINS_ANSWERED,
    Step.ASSIGNMENT_STORED,
    Step.SOME_SYNCS_ANSWERED,
}


def restart(daemon: Daemon, crash_at: str) -> None:
    daemon.settings[CRASH_AT] = crash_at
    daemon.start()


def check_stored_generations(data_dir: Path) -> list[int]:
    """One owner a partition, one set of members a generation, no number that falls."""
    stored = stored_generations(data_dir, GROUP)
    for generation in stored:
        given = [p for member in generation.members for p in member.assigned.get(TOPIC, ())]
        assert len(given) == len(set(given)), f"two owners in generation {generation.number}"
    numbers = [generation.number for generation in stored]
    assert numbers == sorted(numbers)
    for number in set(numbers):
        assert len({g.member_ids for g in stored if g.number == number}) == 1, number
    return numbers


@EACH_STEP
def test_members_go_on_with_the_coordinator_that_comes_back(
    start_daemon: StartDaemon, step: Step
) -> None:
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, TOPIC, 4)

    # Given a group of three, on a daemon that was started again meanwhile: nobody minds.
    old = [RawMember(name, GROUP, TOPIC, n) for n, name in enumerate("abc")]
    crowd = Crowd(daemon.port, old)
    before = crowd.complete_rebalance()
    daemon.stop()
    restart(daemon, crash_at=step)
    assert crowd.complete_rebalance() == before

    # When a fourth one comes, and the coordinator dies at this step.
    newcomer = RawMember("d", GROUP, TOPIC, 3)
    crowd.members.append(newcomer)
    heard = {member.name: len(member.errors) for member in old}
    crowd.go_on_until(lambda: not daemon.running, f"the crash at {step}")
    daemon.wait()
    crowd.hear_the_last()
    if step is Step.ALL_NOTIFIED:
        for member in old:
            assert member.errors[heard[member.name] :] == [ErrorCode.REBALANCE_IN_PROGRESS]
    restart(daemon, crash_at=NO_CRASH)

    # Then every commit is there that was acknowledged, and none that was not sent.
    committed = committed_offsets(daemon.port, GROUP, TOPIC, [0, 1, 2])
    for member, offset in zip(old, committed, strict=True):
        assert member.acknowledged_offset <= offset <= member.sent_offset

    # And a member that was told nothing is either still in, or hears that it is behind.
    behind = step in NEXT_GENERATION_IS_STORED
    for member in old:
        if member.generation == before:
            member.connect(daemon.port)
            expected = ErrorCode.ILLEGAL_GENERATION if behind else ErrorCode.NONE
            assert member.beat() is expected

    # And all four meet: in the generation that had begun, else perhaps only in the one after.
    met = crowd.complete_rebalance()
    assert met in ((before + 1,) if behind else (before + 1, before + 2))
    same_members_in_each_generation(crowd.members)
    daemon.stop()
    assert check_stored_generations(daemon.data_dir)[-1] == met


def test_a_notification_behind_commits_is_written_before_the_crash(
    start_daemon: StartDaemon,
) -> None:
    """Consumers that commit all the time beat behind a commit: all of them may."""
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, TOPIC, 4)
    member, newcomer = (RawMember(name, GROUP, TOPIC, n) for n, name in enumerate("ab"))
    crowd = Crowd(daemon.port, [member])
    crowd.complete_rebalance()
    daemon.stop()
    restart(daemon, crash_at=Step.SOME_NOTIFIED)
    crowd.complete_rebalance()
    crowd.finish()

    newcomer.connect(daemon.port)
    newcomer.act()
    newcomer.hear()  # its member id
    newcomer.act()
    answers: list[bytes] = []
    with suppress(Closed):
        while True:  # until the newcomer's JoinGroup has begun the rebalance
            member.send_commits_and_heartbeat(2)
            assert member.wire is not None
            answers = [member.wire.receive_frame() for _ in range(3)]
    daemon.wait()
    assert len(answers) == 3
    frame = answers[2]
    _, notification = decode_response(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, frame, 0, len(frame))
    assert isinstance(notification, HeartbeatResponse)
    assert notification.error_code is ErrorCode.REBALANCE_IN_PROGRESS


@EACH_STEP
def test_consumers_of_librdkafka_recover_by_themselves(
    start_daemon: StartDaemon, step: Step
) -> None:
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, TOPIC, 4)
    produce(daemon.bootstrap, TOPIC, 4, range(400))
    # Longer than a restart takes: a client that hears nothing for a session rejoins by itself, and
    # that would be another rebalance. The coordinator waits as long for a member id that the crash
    # took from its owner.
    options = Options(
        daemon.bootstrap, TOPIC, GROUP, session_timeout_ms=30_000, heartbeat_interval_ms=200
    )
    with members() as (witness, start):
        old = [start(f"m{n}", "confluent", options) for n in range(3)]
        witness.wait_for("three with partitions", lambda: witness.share(old, 4))
        daemon.stop()
        restart(daemon, crash_at=step)

        # When a fourth one comes, and the coordinator dies at this step.
        newcomer = start("m3", "confluent", options)
        daemon.wait()
        restart(daemon, crash_at=NO_CRASH)
        produce(daemon.bootstrap, TOPIC, 4, range(400, 800))

        # Then all four share the topic and everything is read.
        witness.wait_for("four with partitions", lambda: witness.share([*old, newcomer], 4))
        witness.wait_for("all messages", lambda: witness.messages_read == 800)
        for member in (*old, newcomer):
            member.check_alive()
    daemon.stop()
    check_stored_generations(daemon.data_dir)
    commits = stored_commits(daemon.data_dir, GROUP)
    assert commits == {(TOPIC, p): sorted(commits[TOPIC, p]) for p in range(4)}, "one went back"
    for member in (*old, newcomer):
        for fact in witness.said(member.name, "committed"):
            for partition, offset in fact["offsets"].items():
                assert offset in commits[TOPIC, int(partition)], "an acknowledged commit is lost"
