"""Large assignments of consumer groups: a daemon makes them in its thread, over heartbeats."""

import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.interop.raw_consumer import RawConsumer

TIMEOUT_S = 60
PARTITIONS = 8


def owned(*members: RawConsumer) -> list[int]:
    return sorted(n for member in members for numbers in member.owned.values() for n in numbers)


def test_members_get_what_the_thread_assigns(tmp_path: Path) -> None:
    settings = {
        **TEST_SETTINGS,
        "rollcall.consumer.assignor.inline.max": "0",
        "group.consumer.assignment.interval.ms": "0",
    }
    daemon = Daemon(tmp_path, settings)
    daemon.start()
    try:
        admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(TIMEOUT_S)
        a, b = (RawConsumer(daemon.bootstrap, "g", name, topics=("t",)) for name in "ab")
        answer = a.heartbeat()
        assert (answer.member_epoch, owned(a)) == (1, [])  # it is being made
        deadline = time.monotonic() + TIMEOUT_S
        while owned(a, b) != list(range(PARTITIONS)) or not owned(b):
            assert time.monotonic() < deadline, (a.owned, b.owned)
            for member in (a, b):
                member.heartbeat()
                held = owned(a, b)
                assert len(held) == len(set(held)), "a partition has two owners"
        assert len(owned(a)) == len(owned(b)) == PARTITIONS // 2
    finally:
        daemon.close()
