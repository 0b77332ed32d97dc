"""Fetch sessions with real clients: many partitions, few changes, and a restart.

Each consumer reads twelve partitions in a session and must get every message once and in order,
also after the daemon was killed and has lost the session. librdkafka and aiokafka use no sessions.
"""

import re
from pathlib import Path

import pytest

from tests.broker.daemon import Daemon
from tests.interop.conftest import SETTINGS, create_topic, produce
from tests.interop.group import consumers
from tests.interop.members.client import Options

PARTITIONS = 12
MESSAGES = 360
WITH_SESSIONS = ("kafka_python", "java")


def metric(daemon: Daemon, name: str) -> int:
    _, text = daemon.get("/metrics")
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    assert found is not None, name
    return int(found[1])


@pytest.mark.parametrize("library", WITH_SESSIONS)
def test_every_message_is_read_once_and_in_order(tmp_path: Path, library: str) -> None:
    daemon = Daemon(tmp_path, SETTINGS)
    daemon.start()
    try:
        create_topic(daemon.bootstrap, "wide", PARTITIONS)
        produce(daemon.bootstrap, "wide", PARTITIONS, range(MESSAGES))
        with consumers() as (_, start):
            consumer = start("c", library, Options(daemon.bootstrap, "wide"))
            consumer("assign", list(range(PARTITIONS)))
            each = MESSAGES // PARTITIONS
            assert consumer.read_messages(MESSAGES) == {
                partition: list(range(each)) for partition in range(PARTITIONS)
            }
            assert metric(daemon, "rollcall_fetch_session_partitions") == PARTITIONS

            daemon.kill()
            daemon.start()
            # One partition alone has something new.
            produce(daemon.bootstrap, "wide", 1, range(5))
            assert consumer.read_messages(5) == {0: list(range(each, each + 5))}
            assert metric(daemon, "rollcall_fetch_session_partitions") == PARTITIONS
            consumer.stop()
    finally:
        daemon.close()
