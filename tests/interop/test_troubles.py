"""Verdicts with real clients: each is found, and ends with its problem.

One verdict of each family, brought about by real consumers against a daemon whose limits are small.
Evidence and remedy are read from the admin port, as `rollcall verdicts` shows them.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.interop.conftest import create_topic, produce
from tests.interop.group import TIMEOUT_S, consumers
from tests.interop.members.client import Options

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "rollcall.lag.interval.ms": "200",
    "rollcall.trouble.stuck.ms": "1000",
    "rollcall.trouble.slow.join.ms": "1500",
    "rollcall.trouble.settle.ms": "500",
    "rollcall.trouble.no.progress.ms": "1500",
    "rollcall.trouble.commits.per.second": "100",
}

Verdicts = list[dict]


@pytest.fixture(scope="module")
def watchful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("watchful"), SETTINGS)
    daemon.start()
    for topic in ("orders", "bills"):
        create_topic(daemon.bootstrap, topic, 2)
        produce(daemon.bootstrap, topic, 2, range(200))
    yield daemon
    daemon.close()


def verdicts(daemon: Daemon, group: str) -> Verdicts:
    status, body = daemon.get(f"/api/verdicts?group={group}")
    return json.loads(body)["verdicts"] if status == 200 else []


def wait_for(
    daemon: Daemon,
    group: str,
    fact: Callable[[Verdicts], bool],
    meanwhile: Callable[[], object] = lambda: time.sleep(0.05),
) -> Verdicts:
    deadline = time.monotonic() + TIMEOUT_S
    said: Verdicts = []
    while time.monotonic() < deadline:
        meanwhile()
        said = verdicts(daemon, group)
        if fact(said):
            return said
    raise AssertionError(f"in vain; last: {said}\n{daemon.log()[-3_000:]}")


def has(kind: str) -> Callable[[Verdicts], bool]:
    return lambda said: any(verdict["verdict"] == kind for verdict in said)


def lacks(kind: str) -> Callable[[Verdicts], bool]:
    return lambda said: all(verdict["verdict"] != kind for verdict in said)


def the(kind: str, said: Verdicts) -> dict:
    (found,) = [verdict for verdict in said if verdict["verdict"] == kind]
    assert found["summary"]
    assert found["remedy"]
    return found


def consumer(daemon: Daemon, group: str, **config: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": group,
            "client.id": "ann",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 200,
            **config,
        }
    )


def until_assigned(*consumers: Consumer) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        for consumer in consumers:
            consumer.poll(0.05)
        if all(consumer.assignment() for consumer in consumers):
            return
    raise AssertionError("not everybody was assigned something")


def run(daemon: Daemon, *arguments: str) -> "subprocess.CompletedProcess[str]":
    rollcall = str(Path(sys.executable).with_name("rollcall"))
    return subprocess.run(
        [rollcall, *arguments, "--admin", daemon.admin],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_commit_storm(watchful: Daemon) -> None:
    member = consumer(watchful, "storm")
    member.subscribe(["orders"])
    until_assigned(member)
    commit = [TopicPartition("orders", 0, 10)]
    is_over = threading.Event()

    def storm() -> None:
        while not is_over.is_set():
            for _ in range(200):
                member.commit(offsets=commit)
            member.poll(0.05)

    shown: list[str] = []

    def is_shown(_: Verdicts) -> bool:
        shown.append(run(watchful, "verdicts", "storm").stdout)
        return "commit_storm" in shown[-1]

    with ThreadPoolExecutor(1) as aside:
        storming = aside.submit(storm)
        try:
            said = wait_for(watchful, "storm", has("commit_storm"))
            wait_for(watchful, "storm", is_shown)
        finally:
            is_over.set()
        storming.result()

    assert "Remedy:" in shown[-1]
    evidence = the("commit_storm", said)["evidence"]
    assert evidence["client_id"] == "ann"
    assert evidence["commits_per_second"] >= 100
    assert evidence["partitions"] == 1
    assert evidence["bytes_per_second"] > evidence["commits_per_second"] * 61

    wait_for(watchful, "storm", lacks("commit_storm"), lambda: member.poll(0.1))
    member.close()


def test_a_member_that_flaps(watchful: Daemon) -> None:
    stays = consumer(watchful, "flaps", **{"client.id": "bob"})
    stays.subscribe(["orders"])
    until_assigned(stays)

    def come_and_go() -> None:
        guest = consumer(watchful, "flaps")
        guest.subscribe(["orders"])
        until_assigned(guest, stays)
        guest.close()

    said = wait_for(watchful, "flaps", has("flapping_member"), come_and_go)

    verdict = the("flapping_member", said)
    assert verdict["subject"] == "ann@127.0.0.1"
    assert verdict["evidence"]["returns"] >= 3
    assert "group.instance.id" in verdict["remedy"]
    printed = run(watchful, "why", "flaps")
    assert "Verdict flapping_member: ann at 127.0.0.1 rejoined" in printed.stdout
    shown = run(watchful, "verdicts", "flaps", "--json")
    assert shown.returncode == 1
    assert "flapping_member" in {
        verdict["verdict"] for verdict in json.loads(shown.stdout)["verdicts"]
    }
    stays.close()


def test_a_group_that_waits_for_a_stopped_member_and_then_knows_who_was_slow(
    watchful: Daemon,
) -> None:
    options = Options(watchful.bootstrap, "orders", "stuck", session_timeout_ms=30_000)
    with consumers() as (witness, start):
        stopped = start("stopped", "confluent", options)
        stopped("subscribe")
        witness.wait_for(
            "an assignment", lambda: stopped.poll() is not None and bool(witness.owned("stopped"))
        )
        stopped.stall()
        other = consumer(watchful, "stuck", **{"client.id": "bob"})
        other.subscribe(["orders"])

        def long_enough(said: Verdicts) -> bool:
            return any(
                verdict["verdict"] == "stuck_group"
                and time.time() * 1000 - verdict["evidence"]["state_since_ms"] > 2_000
                for verdict in said
            )

        said = wait_for(watchful, "stuck", long_enough, lambda: other.poll(0.05))

        evidence = the("stuck_group", said)["evidence"]
        assert evidence["state"] == "PreparingRebalance"
        assert [waiting["client_id"] for waiting in evidence["waiting_for"]] == ["rdkafka"]
        assert evidence["until_ms"] > evidence["state_since_ms"]

        stopped.go_on()

        def both() -> None:
            stopped.poll()
            other.poll(0.05)

        said = wait_for(
            watchful,
            "stuck",
            lambda said: has("slow_joiner")(said) and lacks("stuck_group")(said),
            both,
        )
        evidence = the("slow_joiner", said)["evidence"]
        assert evidence["member"]["client_id"] == "rdkafka"
        assert evidence["join_delay_ms"] >= 1_500
        other.close()


def test_a_member_that_beats_and_gets_nowhere(watchful: Daemon) -> None:
    member = consumer(watchful, "nowhere")
    member.subscribe(["orders"])
    until_assigned(member)
    member.commit(offsets=[TopicPartition("orders", 0, 10)], asynchronous=False)

    said = wait_for(watchful, "nowhere", has("no_progress"), lambda: member.poll(0.05))

    verdict = the("no_progress", said)
    assert verdict["evidence"]["partitions"] == ["orders-0"]
    assert verdict["evidence"]["lag"] == 90
    assert verdict["evidence"]["member"]["client_id"] == "ann"
    assert "commits nothing" in verdict["summary"]

    member.commit(offsets=[TopicPartition("orders", 0, 11)], asynchronous=False)
    wait_for(watchful, "nowhere", lacks("no_progress"), lambda: member.poll(0.05))
    member.close()

    # Both ends of it stay in the group's history.
    kept = json.loads(run(watchful, "history", "nowhere", "--json").stdout)
    printed = [event["type"] for event in kept if event.get("verdict") == "no_progress"]
    assert printed[-2:] == ["verdict_ended", "verdict_began"]  # newest first, and the first of them


def test_members_that_subscribe_differently(watchful: Daemon) -> None:
    first = consumer(watchful, "mixed")
    first.subscribe(["orders"])
    second = consumer(watchful, "mixed", **{"client.id": "bob"})
    second.subscribe(["bills"])
    until_assigned(first, second)

    def both() -> None:
        first.poll(0.02)
        second.poll(0.02)

    said = wait_for(watchful, "mixed", has("mixed_subscriptions"), both)

    evidence = the("mixed_subscriptions", said)["evidence"]
    assert [members["topics"] for members in evidence["parties"]] == [["bills"], ["orders"]]

    second.close()
    wait_for(watchful, "mixed", lacks("mixed_subscriptions"), lambda: first.poll(0.05))
    first.close()


def test_an_ordinary_group_has_no_verdict(start_daemon: StartDaemon) -> None:
    """Joins, a rebalance, commits, a restart of each member, and the end.

    What lasts longer than a second is no trouble here: it may be the machine that is slow.
    """
    patient = ("stuck", "slow.join", "no.progress")
    limits = {f"rollcall.trouble.{name}.ms": "120000" for name in patient}
    watchful = start_daemon({**SETTINGS, **limits})
    create_topic(watchful.bootstrap, "orders", 2)
    produce(watchful.bootstrap, "orders", 2, range(200))
    first, second = (consumer(watchful, "calm", **{"client.id": name}) for name in ("a", "b"))
    for member in (first, second):
        member.subscribe(["orders"])
    until_assigned(first, second)
    for number in range(10):
        for member in (first, second):
            message = member.poll(1.0)
            if number % 3 == 0 and message is not None and message.error() is None:
                with suppress(KafkaException):  # a rebalance: the next one will do
                    member.commit(message, asynchronous=False)
        if number == 5:
            second.close()
            second = consumer(watchful, "calm", **{"client.id": "b"})
            second.subscribe(["orders"])
            until_assigned(first, second)
    first.close()
    second.close()
    found = [line for line in watchful.log().splitlines() if "Trouble: " in line]
    assert [line for line in found if "group_id=calm" in line] == []
    assert run(watchful, "verdicts", "calm").returncode == 0
