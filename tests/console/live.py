"""Live daemon: known traffic, and its exposition as numbers by name and labels."""

import gzip
import time
import urllib.request
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.broker.daemon import Daemon

TIMEOUT_S = 60
FLUSHES = (
    "rollcall_journal_flushes_total",
    "rollcall_journal_flush_seconds_count",
    "rollcall_journal_flush_partitions_count",
)
RECORDS = 10
COMMITTED = 4
OUTSIDE = 'tool "of\\ mine"\n'

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def fetch(daemon: Daemon, accept: str = "", encoding: str = "") -> tuple[str, dict[str, str]]:
    request = urllib.request.Request(f"http://{daemon.admin}/metrics")
    if accept:
        request.add_header("Accept", accept)
    if encoding:
        request.add_header("Accept-Encoding", encoding)
    with urllib.request.urlopen(request, timeout=60) as answer:
        body = answer.read()
        headers = {name.lower(): value for name, value in answer.headers.items()}
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return body.decode(), headers


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


def at(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def total(found: Samples, name: str) -> float:
    """Of all series of that name."""
    return sum(value for (family, _), value in found.items() if family == name)


def with_traffic(daemon: Daemon) -> None:
    servers = {"bootstrap.servers": daemon.bootstrap}
    create(daemon, "orders", 2)
    producer = Producer(servers)
    for number in range(RECORDS):
        producer.produce("orders", value=str(number), partition=0)
    assert producer.flush(60) == 0
    member = Consumer(
        {
            **servers,
            "group.id": "billing",
            "client.id": "clerk",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe(["orders"])
    message = member.poll(TIMEOUT_S)
    assert message is not None
    assert message.error() is None
    member.commit(
        offsets=[TopicPartition("orders", 0, COMMITTED), TopicPartition("orders", 1, 0)],
        asynchronous=False,
    )
    KEPT.append(member)  # it has to go on living
    outsider = Consumer({**servers, "group.id": OUTSIDE, "enable.auto.commit": False})
    outsider.commit(offsets=[TopicPartition("orders", 0, RECORDS)], asynchronous=False)
    outsider.close()


KEPT: list[Consumer] = []


def create(daemon: Daemon, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(60)


def until(daemon: Daemon, is_there: Callable[[Samples], bool]) -> Samples:
    """The first scrape of which it holds."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        text = fetch(daemon)[0]
        if is_there(found := samples(text)):
            return found
        assert time.monotonic() < deadline, f"waited in vain; last:\n{text}"
        time.sleep(0.05)
