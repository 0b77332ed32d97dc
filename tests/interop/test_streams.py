"""Kafka Streams: the word count of its examples, at least once and exactly once."""

import struct
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.broker.daemon import Daemon
from tests.interop.kafka_apps import (
    LONG_ONLY,
    WORD_COUNT,
    App,
    Reader,
    given_server,
    produce,
    running,
    wait_until,
    write_properties,
)

pytestmark = LONG_ONLY

INPUT = "streams-plaintext-input"
OUTPUT = "streams-wordcount-output"
APPLICATION = "words"
LINES = [f"all streams lead to {place}" for place in ("kafka", "rollcall", "all", "to")] * 25
PURGE_INTERVAL_MS = 500


def given_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(INPUT, num_partitions=3), NewTopic(OUTPUT, num_partitions=3)]
    for created in admin.create_topics(topics).values():
        created.result(60)


def given_app(bootstrap: str, folder: Path, guarantee: str, number: int = 1) -> App:
    config = write_properties(
        folder / f"streams-{number}.properties",
        application_id=APPLICATION,
        bootstrap_servers=bootstrap,
        processing_guarantee=guarantee,
        commit_interval_ms=100,
        state_dir=folder / f"state-{number}",
        statestore_cache_max_bytes=0,
        repartition_purge_interval_ms=PURGE_INTERVAL_MS,
        group_protocol="classic",
        transaction_timeout_ms=10_000,
    )
    return App(WORD_COUNT, folder / f"streams-{number}.log", config)


def expected(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def counts(reader: Reader) -> dict[str, int]:
    """The last count of each word."""
    return {
        (word or b"").decode(): struct.unpack(">q", count or b"")[0]
        for word, count in reader.read()
    }


def repartition_topic(bootstrap: str) -> str:
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    (name,) = (name for name in topics if name.endswith("-repartition"))
    return name


def deleted_records(bootstrap: str, topic: str) -> int:
    """Below the log starts of all partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    wanted = {TopicPartition(topic, n): OffsetSpec.earliest() for n in partitions}
    return sum(found.result(60).offset for found in admin.list_offsets(wanted).values())


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_word_count(tmp_path: Path, guarantee: str) -> None:
    with given_server(tmp_path, {}) as server:
        given_topics(server.bootstrap)
        app = given_app(server.bootstrap, tmp_path, guarantee)
        reader = Reader(server.bootstrap, OUTPUT)
        with running(app):
            produce(server.bootstrap, INPUT, *LINES)
            wait_until("the counts", lambda: counts(reader) == expected(LINES), app)
            topic = repartition_topic(server.bootstrap)
            wait_until(
                "the purge of what was processed",
                lambda: deleted_records(server.bootstrap, topic) > 0,
                app,
            )
        reader.close()


def test_exactly_once_while_the_daemon_and_the_application_are_killed(tmp_path: Path) -> None:
    with given_server(tmp_path, {}) as server:
        if not isinstance(server, Daemon):
            pytest.skip("a Kafka is not killed here")
        given_topics(server.bootstrap)
        apps = [given_app(server.bootstrap, tmp_path, "exactly_once_v2", n) for n in (1, 2)]
        reader = Reader(server.bootstrap, OUTPUT)
        written: list[str] = []
        with running(*apps):
            for round_number in range(4):
                produce(server.bootstrap, INPUT, *LINES)
                written += LINES
                if round_number % 2:
                    apps[0].kill()
                    apps[0].start()
                server.kill()
                server.start()
            wait_until("the counts", lambda: counts(reader) == expected(written), *apps)
        # Every count of a word appears exactly once, in order: nothing was counted twice.
        by_word: dict[bytes | None, list[int]] = {}
        for word, count in reader.read():
            by_word.setdefault(word, []).append(struct.unpack(">q", count or b"")[0])
        for word, seen in by_word.items():
            assert seen == list(range(1, len(seen) + 1)), word
        reader.close()
