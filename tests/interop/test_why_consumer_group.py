"""History of consumer groups, for users: what the commands, the API and /metrics show.

A real daemon and members of the consumer group protocol on sockets; it is killed while a member is
to give partitions back.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.raw_consumer import RawConsumer

SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "rollcall.lag.interval.ms": "200",
    "rollcall.log.level": "warning",
    "rollcall.metrics.aliases": "kafka-lag-exporter",
    "rollcall.trouble.stuck.ms": "1000",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    running = Daemon(tmp_path_factory.mktemp("why-consumers"), SETTINGS)
    running.start()
    create_topic(running.bootstrap, "read", 4)
    yield running
    running.close()


def rollcall(*words: str) -> str:
    command = str(Path(sys.executable).with_name("rollcall"))
    done = subprocess.run([command, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: some verdicts
    return done.stdout


def metrics(daemon: Daemon) -> list[str]:
    with urllib.request.urlopen(f"http://{daemon.admin}/metrics", timeout=60) as answer:
        return answer.read().decode().splitlines()


def test_a_reconciliation_is_explained_across_a_kill(daemon: Daemon) -> None:
    ann, bob = (
        RawConsumer(daemon.bootstrap, "told", name, topics=("read",)) for name in ("ann", "bob")
    )
    ann.heartbeat()
    assert ann.commit("read", {0: 0, 1: 0}) == 0
    bob.heartbeat()
    ann.heartbeat()  # is told to give two partitions back
    assert "kafka_consumergroup_group_offset" in "\n".join(metrics(daemon))
    while "unrevoked_partitions" not in rollcall("verdicts", "told", "--admin", daemon.admin):
        bob.heartbeat()
    text = rollcall("why", "told", "--admin", daemon.admin)
    assert "Group told: Reconciling, group epoch 3, 2 members" in text
    assert "waits for 1 member to give partitions back" in text
    assert "raw (ann) at 127.0.0.1 has not given back 2 partitions yet, after" in text

    daemon.kill()
    daemon.start()
    ann.heartbeat()
    bob.heartbeat()
    text = rollcall("why", "told", "--admin", daemon.admin)
    assert "Group told: Stable, group epoch 3, 2 members" in text
    assert "raw (ann) at 127.0.0.1 gave back 2 partitions after" in text
    assert "The daemon restarted after it was killed or had crashed" in text
    rebalances = json.loads(rollcall("why", "told", "--json", "--admin", daemon.admin))
    kinds = [(r["cause"], r["generation_before"], r["generation_after"]) for r in rebalances]
    # The restart comes first in time, the rebalance that it did not end ends later.
    assert kinds == [("member_joined", 2, 3), ("coordinator_moved", 3, 3), ("member_joined", 1, 2)]
    assert {r["group_type"] for r in rebalances} == {"consumer"}
    assert rebalances[0]["partitions_moved"] == 2

    history = rollcall("history", "told", "--admin", daemon.admin)
    for words in ("group_epoch_bumped: 3: member_joined", "is to give back read-", "from ann"):
        assert words in history
    lag = rollcall("lag", "told", "--admin", daemon.admin)
    assert "ann" in lag
    lines = metrics(daemon)
    assert 'group_coordinator_groups{protocol="consumer",state="Stable"} 1' in lines
    assert 'group_coordinator_group_generation{group="told"} 3' in lines
    assert any('consumer_id="ann"' in line for line in lines)
    with urllib.request.urlopen(
        f"http://{daemon.admin}/api/rebalances?group=told", timeout=60
    ) as answer:
        state = json.load(answer)
    assert (state["group_type"], state["generation"], state["assignment_epoch"]) == (
        "consumer",
        3,
        3,
    )
