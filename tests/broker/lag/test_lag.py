"""Lag as a running daemon tells it: at one instant, in seconds, over restarts, and in JSON."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from history.lag.records import decode_sample
from tests.broker.daemon import TEST_SETTINGS, Daemon

TIMEOUT_S = 60
StartDaemon = Callable[..., Daemon]


@pytest.fixture
def sampled(tmp_path: Path):
    """Sampled often, and over a window that no test outlives."""
    settings = {
        **TEST_SETTINGS,
        "rollcall.lag.interval.ms": "100",
        "rollcall.lag.window.commits": "1000",
    }
    daemon = Daemon(tmp_path, settings)
    daemon.start()
    yield daemon
    daemon.close()


def given_records(daemon: Daemon, topic: str, times_ms: list[int], partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    new = NewTopic(topic, num_partitions=partitions, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result(60)
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "linger.ms": 50})
    for time_ms in times_ms:
        producer.produce(topic, b"x", partition=0, timestamp=time_ms)
    assert producer.flush(60) == 0


def commit(daemon: Daemon, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """As a simple consumer does: without being a member."""
    consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
    consumer.close()


def lag_of(daemon: Daemon, group: str) -> dict:
    status, body = daemon.get(f"/api/lag?group={group}")
    assert status == 200, body
    return json.loads(body)


def wait_for(daemon: Daemon, group: str, fact: Callable[[dict], bool]) -> dict:
    deadline = time.monotonic() + TIMEOUT_S
    lag: dict = {}
    while time.monotonic() < deadline:
        lag = lag_of(daemon, group)
        if fact(lag["partitions"][0]):
            return lag
        time.sleep(0.05)
    raise AssertionError(f"in vain; last: {lag}\n{daemon.log()[-2_000:]}")


def wait_until_written(daemon: Daemon, offset: int) -> None:
    """A commit that was seen is in a sample soon after; here it can be read."""
    reader = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "watcher"})
    reader.assign([TopicPartition("__group_lag", 0, 0)])
    deadline = time.monotonic() + TIMEOUT_S
    seen: set[int] = set()
    while offset not in seen:
        assert time.monotonic() < deadline, f"written: {seen}"
        message = reader.poll(1.0)
        if message is not None and message.error() is None:
            sample = decode_sample(message.key(), message.value())
            seen |= {partition.committed_offset for partition in sample.partitions.get(0, [])}
    reader.close()


def test_the_seconds_are_those_of_the_record_at_the_committed_offset(sampled: Daemon) -> None:
    now_ms = int(time.time() * 1000)
    times = [now_ms - (100 - n) * 60_000 for n in range(100)]
    given_records(sampled, "orders", times)
    for offset in (0, 1, 37, 99):
        commit(sampled, "g", "orders", offset)
        lag = lag_of(sampled, "g")
        (partition,) = lag["partitions"]
        assert partition["lag"] == 100 - offset
        assert partition["seconds_exact"] is True
        assert lag["at_ms"] - partition["seconds"] * 1000 == pytest.approx(times[offset], abs=2)
        assert (lag["lag"], lag["state"], lag["verdict"]) == (100 - offset, "Empty", "OK")
    commit(sampled, "g", "orders", 100)
    (partition,) = lag_of(sampled, "g")["partitions"]
    assert (partition["lag"], partition["seconds"], partition["catch_up_seconds"]) == (0, 0.0, 0.0)


def test_odd_offsets_are_flagged_and_never_negative(sampled: Daemon) -> None:
    given_records(sampled, "orders", [1_700_000_000_000] * 10)
    commit(sampled, "g", "orders", 500)
    (partition,) = lag_of(sampled, "g")["partitions"]
    assert (partition["lag"], partition["note"]) == (0, "beyond_end")
    assert "beyond the end" in partition["note_words"]


def test_a_member_without_a_commit_has_no_lag_and_is_named(sampled: Daemon) -> None:
    given_records(sampled, "orders", [1_700_000_000_000] * 10, partitions=2)
    member = Consumer(
        {
            "bootstrap.servers": sampled.bootstrap,
            "group.id": "g",
            "client.id": "ann",
            "enable.auto.commit": False,
        }
    )
    member.subscribe(["orders"])
    deadline = time.monotonic() + TIMEOUT_S
    while not member.assignment():
        assert time.monotonic() < deadline, "it is assigned nothing"
        member.poll(0.1)
    member.commit(offsets=[TopicPartition("orders", 0, 4)], asynchronous=False)

    lag = lag_of(sampled, "g")
    assert lag["protocol_type"] == "consumer"
    assert [partition["lag"] for partition in lag["partitions"]] == [6, None]
    assert [partition["note"] for partition in lag["partitions"]] == [None, "no_commit"]
    assert [partition["member"]["client_id"] for partition in lag["partitions"]] == ["ann", "ann"]
    assert [(member["client_id"], member["lag"]) for member in lag["members"]] == [("ann", 6)]
    assert [(topic["topic"], topic["lag"]) for topic in lag["topics"]] == [("orders", 6)]
    member.close()


def test_the_window_survives_a_restart(sampled: Daemon) -> None:
    """With one commit there is no rate: after the restart it is known from before."""
    given_records(sampled, "orders", [1_700_000_000_000] * 100)
    commit(sampled, "g", "orders", 10)
    wait_for(sampled, "g", lambda lag: lag["produced_per_second"] is not None)
    commit(sampled, "g", "orders", 60)
    wait_for(sampled, "g", lambda lag: bool(lag["consumed_per_second"]))
    wait_until_written(sampled, 60)
    sampled.kill()
    sampled.start()
    again = wait_for(sampled, "g", lambda lag: bool(lag["consumed_per_second"]))
    assert again["lag"] == 40


def test_samples_are_records_that_any_consumer_reads(sampled: Daemon) -> None:
    given_records(sampled, "orders", [1_700_000_000_000] * 100)
    commit(sampled, "g", "orders", 10)
    reader = Consumer(
        {
            "bootstrap.servers": sampled.bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    reader.assign([TopicPartition("__group_lag", 0, 0)])
    message = reader.poll(TIMEOUT_S)
    assert message is not None
    assert message.error() is None
    sample = decode_sample(message.key(), message.value())
    assert (sample.group_id, sample.topic) == ("g", "orders")
    ((_, offset, lag),) = sample.partitions[0]
    assert (offset, lag) == (10, 90)
    reader.close()


def test_all_groups_the_worst_first_and_what_nobody_knows(sampled: Daemon) -> None:
    """Two wait for records of one moment, so the order is that of how many they are behind."""
    given_records(sampled, "orders", [1_700_000_000_000] * 100)
    for group, offset in (("a", 100), ("b", 10), ("c", 60)):
        commit(sampled, group, "orders", offset)
    day_s = 86_400  # the records are older; a time that is only estimated is that of their append

    def has_seconds(group: dict) -> bool:
        return group["seconds_max"] is not None and (
            group["seconds_max"] > day_s or not group["lag"]
        )

    def answer(path: str) -> dict:
        status, body = sampled.get(path)
        assert status == 200
        return json.loads(body)

    deadline = time.monotonic() + TIMEOUT_S
    groups: list[dict] = []
    while time.monotonic() < deadline:
        groups = answer("/api/lag")["groups"]
        if len(groups) == 3 and all(map(has_seconds, groups)):
            break
        time.sleep(0.05)
    assert [(group["group"], group["lag"]) for group in groups] == [("b", 90), ("c", 40), ("a", 0)]
    few = answer("/api/lag?limit=1")
    assert (len(few["groups"]), few["groups_total"]) == (1, 3)
    assert sampled.get("/api/lag?limit=none")[0] == 400
    assert sampled.get("/api/lag?limit=0")[0] == 400
    assert sampled.get("/api/lag?group=nobody")[0] == 404
    assert sampled.get("/api/verdicts?group=nobody")[0] == 404


def rollcall(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = str(Path(sys.executable).with_name("rollcall"))
    return subprocess.run(
        [command, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_command_shows_tables_and_json(sampled: Daemon) -> None:
    given_records(sampled, "orders", [1_700_000_000_000] * 100)
    commit(sampled, "g", "orders", 10)
    wait_for(sampled, "g", lambda lag: lag["produced_per_second"] is not None)

    shown = rollcall("lag", "g", "--admin", sampled.admin)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("Group g: Empty, status ")
    header, row = shown.stdout.splitlines()[2:4]
    assert header.split()[:5] == ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert row.split()[:5] == ["orders", "0", "10", "100", "90"]

    everything = rollcall("lag", "--json", "--admin", sampled.admin)
    assert [group["group"] for group in json.loads(everything.stdout)["groups"]] == ["g"]
    table = rollcall("lag", "--admin", sampled.admin)
    assert table.stdout.splitlines()[1].split()[:5] == ["g", "Empty", "0", "1", "90"]

    absent = rollcall("lag", "nobody", "--admin", sampled.admin)
    assert (absent.returncode, absent.stdout) == (2, "")
    assert absent.stderr == "rollcall: there is no group 'nobody'\n"
    assert rollcall("verdicts", "--admin", sampled.admin).returncode == 0


def test_a_port_where_no_daemon_listens_is_one_clear_line() -> None:
    # 1 is the word for bad news, and no answer is not that.
    for words in (["lag"], ["verdicts"]):
        done = rollcall(*words, "--admin", "127.0.0.1:1")
        assert done.returncode == 2
        assert done.stderr.startswith("rollcall: no daemon answers at 127.0.0.1:1: ")
        assert rollcall(*words, "--admin", "nonsense").returncode == 2
