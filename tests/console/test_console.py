"""The admin port of a real daemon: what it shows, and what it makes of nonsense."""

import json
import socket

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.daemon import Daemon
from tests.console.live import at, until

pytestmark = pytest.mark.xdist_group("console")


def samples(daemon: Daemon) -> dict[str, float]:
    """All samples, by name and labels as they are written."""
    status, text = daemon.get("/metrics")
    assert status == 200
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{key}={sample.labels[key]}" for key in sorted(sample.labels))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_a_group_is_seen_in_the_metrics(daemon: Daemon) -> None:
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for number in range(10):
        producer.produce("orders", value=str(number))
    assert producer.flush(60) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(60)
    assert message is not None
    assert message.error() is None
    consumer.commit(message, asynchronous=False)

    seen = samples(daemon)
    assert seen["group_coordinator_groups{protocol=classic,state=Stable}"] == 1
    assert seen["group_coordinator_members{}"] == 1
    assert seen["group_coordinator_offsets{}"] == 1
    assert seen["group_coordinator_offset_commits_total{}"] == 1
    assert seen["group_coordinator_rebalances_completed_total{cause=member_joined}"] == 1
    assert seen["group_coordinator_partitions{state=active}"] == 50
    assert seen["rollcall_purgatory_operations{kind=session,operation=Heartbeat}"] == 1
    assert seen["rollcall_connections{}"] >= 2
    assert seen["rollcall_appended_records_total{}"] == 10
    assert seen["rollcall_journal_flushes_total{}"] >= 2
    assert seen["rollcall_ready{}"] == 1
    joins = [
        value for name, value in seen.items() if "rollcall_requests_total{request=Join" in name
    ]
    assert sum(joins) == 2
    assert seen["rollcall_request_errors_total{error=MEMBER_ID_REQUIRED,request=JoinGroup}"] == 1
    assert seen["rollcall_request_seconds_count{request=JoinGroup}"] == 2

    consumer.close()  # its LeaveGroup may still be on its way
    empty = at("group_coordinator_groups", protocol="classic", state="Empty")
    found = until(daemon, lambda found: found.get(empty) == 1)
    assert found[at("group_coordinator_members_removed_total", cause="left")] == 1


def test_a_healthy_daemon_says_so(daemon: Daemon) -> None:
    assert daemon.get("/livez") == (200, "ok\n")
    status, body = daemon.get("/readyz")
    assert status == 200
    assert json.loads(body) == {
        "ready": True,
        "reason": None,
        "partitions": {"total": 50, "owned": 50, "loading": 0, "failed": {}},
        "loading": None,
    }
    status, body = daemon.get("/")
    assert status == 200
    assert "/metrics" in body


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("/api/lag?limit=many", "limit must be a whole number"),
        ("/api/lag?limit=0", "limit must be 1 or more"),
        ("/api/history?group=billing&limit=1e3", "limit must be a whole number"),
        ("/api/rebalances?group=billing&generation=x", "generation must be a whole number"),
        ("/api/rebalances?limit=1", "group=G is missing, or all=true"),
    ],
)
def test_a_wrong_question_is_refused_in_words(busy: Daemon, asked: str, why: str) -> None:
    status, body = busy.get(asked)

    assert status == 400
    assert json.loads(body) == {"error": why}


def test_the_first_page_leads_to_every_other(busy: Daemon) -> None:
    _, page = busy.get("/")

    for path in ("/metrics", "/readyz", "/livez", "/api/lag", "/api/verdicts"):
        assert f'href="{path}"' in page
        assert busy.get(path)[0] == 200
    assert "/api/rebalances?group=" in page
    assert "/api/history?group=" in page


def test_an_unknown_page_and_a_wrong_method_are_refused_plainly(busy: Daemon) -> None:
    assert busy.get("/nope") == (404, "404 Not Found\n")
    answer = ask(busy, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nAllow: GET, HEAD\r\n" in answer


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        bytes.fromhex("0000000a 0012 0000 00000001 ffff"),  # a Kafka client on the wrong port
    ],
)
def test_nonsense_is_answered_with_a_400_and_no_traceback(busy: Daemon, nonsense: bytes) -> None:
    assert ask(busy, nonsense).startswith(b"HTTP/1.0 400 ")
    assert busy.get("/livez")[0] == 200
    assert "Traceback" not in busy.log()


def ask(daemon: Daemon, request: bytes) -> bytes:
    host, _, port = daemon.admin.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as sock:
        sock.sendall(request)
        return sock.recv(65_536)
