"""History commands: `rollcall why` and `history` against a real daemon, and the topic behind them.

To clients the topic is internal, readable and not writable; it is kept over restarts and limited.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgpack
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.structs import OffsetAndMetadata

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.raw_member import RawMember

TIMEOUT_S = 60
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "rollcall.history.memory.rebalances.per.group": "2",  # older ones come from the topic
    "rollcall.log.level": "warning",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    running = Daemon(tmp_path_factory.mktemp("why"), SETTINGS)
    running.start()
    create_topic(running.bootstrap, "read", 2)
    yield running
    running.close()


def rollcall(*words: str) -> "subprocess.CompletedProcess[str]":
    command = str(Path(sys.executable).with_name("rollcall"))
    return subprocess.run([command, *words], capture_output=True, text=True, check=False)


def why(daemon: Daemon, group: str, *words: str) -> str:
    done = rollcall("why", group, "--admin", daemon.admin, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def member(daemon: Daemon, group: str, client_id: str = "raw") -> RawMember:
    return RawMember(daemon.bootstrap, group, client_id, "read", 60_000)


def until(what: str, fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not fact():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def come_and_go(daemon: Daemon, group: str, times: int) -> None:
    for n in range(times):
        visitor = member(daemon, group, f"visitor-{n}")
        visitor.enter()
        visitor.leave(f"visit {n} is over")
        visitor.hang_up()


# ---------------------------------------------------------------- the command


def test_the_story_in_plain_lines(daemon: Daemon) -> None:
    come_and_go(daemon, "told", 1)
    head, _, *lines = why(daemon, "told").splitlines()
    assert head == "Group told: Empty, generation 2, 0 members"
    left = lines[:4]
    assert "generation 1 -> 2, members 1 -> 0" in left[0]
    assert left[1].startswith("  Cause: member_left. visitor-0 (visitor-0-")
    assert left[2] == "  Its own reason: visit 0 is over"
    assert any("Cause: member_joined. visitor-0" in line for line in lines)


def test_as_json_newest_first_and_older_ones_from_the_topic(daemon: Daemon) -> None:
    come_and_go(daemon, "many", 4)
    rebalances = json.loads(why(daemon, "many", "--json"))
    assert [rebalance["generation_after"] for rebalance in rebalances] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert {rebalance["cause"] for rebalance in rebalances} == {"member_joined", "member_left"}
    two = json.loads(why(daemon, "many", "--json", "--limit", "2"))
    assert two == rebalances[:2]
    (third,) = json.loads(why(daemon, "many", "--json", "--generation", "3"))
    assert third == rebalances[5]
    assert "that led to generation 99" in why(daemon, "many", "--generation", "99")


def test_a_stuck_group_says_whom_it_waits_for_and_until_when(daemon: Daemon) -> None:
    stuck, late = member(daemon, "stuck", "slowcoach"), member(daemon, "stuck", "late")
    stuck.enter()
    late.begin_join()
    until("the rebalance", lambda: "PreparingRebalance" in why(daemon, "stuck"))
    text = why(daemon, "stuck")
    assert "waits for 1 member to rejoin, until 20" in text
    assert "  - slowcoach (slowcoach-" in text
    assert "It ends when all of them have rejoined, left or expired" in text
    assert "members 1, running" in text
    running = json.loads(why(daemon, "stuck", "--json"))[0]
    assert (running["duration_ms"], running["generation_after"]) == (None, None)
    (wait,) = running["waited_for"]
    assert (wait["client_id"], wait["how_it_ended"]) == ("slowcoach", "waiting")
    stuck.leave("to let the other one go on")
    late.end_join()
    text = why(daemon, "stuck")
    assert "CompletingRebalance" in text
    assert "waits for the assignment of the leader" in text
    late.sync()
    assert "waits" not in why(daemon, "stuck")


def test_an_error_is_one_line(daemon: Daemon) -> None:
    done = rollcall("why", "nobody-ever", "--admin", daemon.admin)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "there is no group 'nobody-ever'" in done.stderr
    done = rollcall("history", "nobody-ever", "--admin", daemon.admin)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = rollcall("why", "g", "--admin", "127.0.0.1:1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no daemon answers at 127.0.0.1:1" in done.stderr
    assert rollcall("why", "--generation", "1").returncode == 2
    assert rollcall("why", "--since", "25:61").returncode == 2
    for query in ("", "?group=g&limit=0", "?group=g&limit=x", "?group=g&generation=x"):
        assert daemon.get(f"/api/rebalances{query}")[0] == 400


def test_a_group_whose_name_has_odd_letters(daemon: Daemon) -> None:
    name = "a/b?c=d&e f+ü%2F"
    come_and_go(daemon, name, 1)
    assert f"Group {name}: Empty" in why(daemon, name)


def test_a_group_that_is_gone_is_known_outside_the_time_that_was_asked_for(
    daemon: Daemon,
) -> None:
    tool = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "gone"})
    tool.commit(offsets=[TopicPartition("read", 0, 1)], asynchronous=False)
    tool.close()
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.delete_consumer_groups(["gone"])["gone"].result()

    def ask(*words: str) -> "subprocess.CompletedProcess[str]":
        return rollcall(*words, "--admin", daemon.admin)

    until("the deletion to be readable", lambda: "group_deleted" in ask("history", "gone").stdout)
    for span in (("--until", "1"), ("--since", "2999-01-01")):
        done = ask("history", "gone", *span)
        assert (done.returncode, done.stdout) == (0, "The history has no such events.\n")
    for words in ((), ("--generation", "7"), ("--until", "1")):
        done = ask("why", "gone", *words)
        assert done.returncode == 0
        assert "Group gone does not exist any more." in done.stdout
        assert "The history has no rebalance" in done.stdout
    status, said = daemon.get("/api/timeline?group=gone&since=99999999999999")
    assert (status, "none in this time" in said) == (404, True)


def test_the_empty_group_id_has_a_history(daemon: Daemon) -> None:
    tool = KafkaConsumer(bootstrap_servers=daemon.bootstrap, group_id="", enable_auto_commit=False)
    tool.commit({KafkaPartition("read", 0): OffsetAndMetadata(4, "", -1)})
    tool.close()

    def events() -> str:
        return rollcall("history", "", "--admin", daemon.admin).stdout

    until("the commit to be readable", lambda: "read-0 none -> 4" in events())
    assert "Group : Empty" in rollcall("why", "", "--admin", daemon.admin).stdout


def test_history_lists_events_and_who_moved_offsets(daemon: Daemon) -> None:
    tool = Consumer(
        {"bootstrap.servers": daemon.bootstrap, "group.id": "nightly", "client.id": "a-tool"}
    )
    for offset in (10, 3):
        tool.commit(offsets=[TopicPartition("read", 0, offset)], asynchronous=False)
    tool.close()

    def moved() -> list[list[str]]:
        done = rollcall("history", "nightly", "--admin", daemon.admin, "--offsets")
        return [line.split() for line in done.stdout.splitlines()]

    until("both to be readable", lambda: len(moved()) > 2)
    rows = moved()
    assert rows[0] == ["AT", "BY", "TOPIC", "PARTITION", "OLD", "NEW", "CLIENT-ID", "HOST"]
    assert [row[1:] for row in rows[1:]] == [
        ["commit", "read", "0", "-", "10", "a-tool", "127.0.0.1"],
        ["commit", "read", "0", "10", "3", "a-tool", "127.0.0.1"],
    ]
    done = rollcall("history", "nightly", "--admin", daemon.admin, "--json")
    events = json.loads(done.stdout)
    assert [event["type"] for event in events] == ["offsets_moved"] * 2 + ["group_created"]
    assert events[0]["changes"] == [{"topic": "read", "partition": 0, "old": 10, "new": 3}]
    assert (
        "group_created: by a commit of a client that is no member"
        in rollcall("history", "nightly", "--admin", daemon.admin).stdout
    )


def test_what_happened_at_a_time_in_any_group(daemon: Daemon) -> None:
    come_and_go(daemon, "before", 1)
    time.sleep(0.01)  # another millisecond
    since = time.time_ns() // 1_000_000  # down, as the daemon does
    come_and_go(daemon, "night-1", 1)
    come_and_go(daemon, "night-2", 1)
    until_ms = time.time_ns() // 1_000_000
    time.sleep(0.01)
    come_and_go(daemon, "after", 1)
    span = ("--since", str(since), "--until", str(until_ms), "--admin", daemon.admin)
    rebalances = json.loads(rollcall("why", "--json", *span).stdout)
    found = [(rebalance["group"], rebalance["cause"]) for rebalance in rebalances]
    assert found == [
        ("night-2", "member_left"),
        ("night-2", "member_joined"),
        ("night-1", "member_left"),
        ("night-1", "member_joined"),
    ]
    text = rollcall("why", *span).stdout
    assert text.count("Group night-1") == 2
    of_one_group = json.loads(rollcall("why", "night-1", "--json", *span).stdout)
    assert of_one_group == rebalances[2:]
    assert json.loads(rollcall("why", "after", "--json", *span).stdout) == []

    def events(*words: str) -> list[dict]:
        return json.loads(rollcall("history", *words, "--json", *span).stdout)

    until("the last of it to be readable", lambda: len(events()) >= 2 * 9)
    assert {event["group_id"] for event in events()} == {"night-1", "night-2"}
    assert events() == sorted(events(), key=lambda event: -event["offset"])
    assert len(events("night-1")) * 2 == len(events())
    lines = rollcall("history", *span, "--limit", "3").stdout.splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("These are the last 3 events. Older ones exist")
    assert "  night-2  rebalance_ended: member_left, generation 1 -> 2" in "\n".join(lines)
    for query in ("all=true&group=g", "all=true&generation=1", "all=true&since=2&until=1"):
        assert daemon.get(f"/api/rebalances?{query}")[0] == 400


# ---------------------------------------------------------------- the topic


def test_any_client_can_read_the_topic_and_none_can_write_it(daemon: Daemon) -> None:
    come_and_go(daemon, "read-back", 1)
    consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "a-reader"})
    consumer.assign([TopicPartition("__group_history", 0, 0)])
    found: list[dict] = []

    def read() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None and message.key() == b"read-back":
            found.append(msgpack.unpackb(message.value()))
        return any(event["type"] == "group_emptied" for event in found)

    until("the group's end", read)
    consumer.close()
    assert [event["type"] for event in found] == [
        "group_created",
        "member_joined",
        "rebalance_began",
        "generation_began",
        "generation_assigned",
        "rebalance_ended",
        "members_removed",
        "rebalance_began",
        "group_emptied",
    ]
    assert {(event["v"], event["group_id"]) for event in found} == {(1, "read-back")}

    failures: list[object] = []
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    producer.produce("__group_history", b"x", on_delivery=lambda error, _: failures.append(error))
    producer.flush(60)
    assert failures[0] is not None
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    with pytest.raises(KafkaException):
        admin.delete_topics(["__group_history"])["__group_history"].result(60)
    asked = ConfigResource(ResourceType.TOPIC, "__group_history")
    configs = admin.describe_configs([asked])[asked].result(60)
    assert configs["cleanup.policy"].value == "delete"
    assert configs["retention.ms"].value == str(30 * 24 * 3_600_000)


def test_it_survives_a_kill_and_a_clean_stop(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, SETTINGS)
    try:
        daemon.start()
        create_topic(daemon.bootstrap, "read", 2)
        come_and_go(daemon, "g", 2)
        stays = member(daemon, "g", "stays")
        stays.enter()
        stays.hang_up()
        rebalances = json.loads(why(daemon, "g", "--json"))
        daemon.kill()
        daemon.start()
        after = json.loads(why(daemon, "g", "--json"))
        assert after[1:] == rebalances
        assert (after[0]["cause"], after[0]["generation_after"]) == ("coordinator_moved", 5)
        assert after[0]["stopped"] == "killed"
        assert 0 <= after[0]["away_ms"] < 60_000
        text = why(daemon, "g", "--limit", "1")
        assert "restarted after it was killed or had crashed; it was away for at most" in text
        assert daemon.stop() == 0
        daemon.start()
        again = json.loads(why(daemon, "g", "--json"))
        assert again[1:] == after
        assert (again[0]["cause"], again[0]["stopped"]) == ("coordinator_moved", "stopped")
    finally:
        daemon.close()


def test_retention_takes_the_oldest_and_why_goes_on(tmp_path: Path) -> None:
    """Files are closed after a second here, and dropped when all in them is as old."""
    daemon = Daemon(
        tmp_path,
        {
            **SETTINGS,
            "rollcall.history.retention.ms": "1000",
            "log.retention.check.interval.ms": "200",
        },
    )
    try:
        daemon.start()
        create_topic(daemon.bootstrap, "read", 2)
        come_and_go(daemon, "g", 3)

        def ends() -> tuple[int, int]:
            consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "a-reader"})
            log = TopicPartition("__group_history", 0)
            start, end = consumer.get_watermark_offsets(log, 60)
            consumer.close()
            return start, end

        _, end = ends()
        until("the log to begin after all of that", lambda: ends()[0] >= end > 0)
        assert len(json.loads(why(daemon, "g", "--json"))) == 2  # what memory has
        come_and_go(daemon, "g", 1)
        assert json.loads(why(daemon, "g", "--json"))[0]["generation_after"] == 8
        daemon.kill()
        daemon.start()
        come_and_go(daemon, "g", 1)
        assert json.loads(why(daemon, "g", "--json"))[0]["generation_after"] == 10
    finally:
        daemon.close()


def test_without_history_it_is_said_so(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, {**SETTINGS, "rollcall.history.enable": "false"})
    try:
        daemon.start()
        create_topic(daemon.bootstrap, "read", 2)
        come_and_go(daemon, "g", 1)
        done = rollcall("why", "g", "--admin", daemon.admin)
        assert done.returncode == 2
        assert "rollcall.history.enable is false" in done.stderr
        assert not (daemon.data_dir / "__group_history-0").exists()
    finally:
        daemon.close()
