"""Consumer group transfer: from a real Kafka to Rollcall and back, each goes on with the group.

The members keep their ids and their epochs; neither side begins a new epoch when it takes over.
Two starts of a Kafka take half a minute, so this runs with CONSUMER_TRANSFER=1 only.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.structs import replace

from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.names import ErrorCode
from tests.conftest import StartDaemon
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import DUMP_LOG, require_kafka_tools
from tests.interop.raw_consumer import RawConsumer, reconcile_all

ROLLCALL = Path(sys.executable).with_name("rollcall")
TOPIC, PARTITIONS = "orders", 5
QUIET_S = 3.0  # longer than group.consumer.assignment.interval.ms

pytestmark = pytest.mark.skipif(
    os.environ.get("CONSUMER_TRANSFER", "") in ("", "0"), reason="CONSUMER_TRANSFER is not set"
)


def rollcall(*arguments: str | Path) -> str:
    done = subprocess.run(
        [ROLLCALL, "offsets", *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def without_hosts(group: DescribedConsumerGroup) -> DescribedConsumerGroup:
    """A heartbeat updates the address that its member is at."""
    return replace(group, members=[replace(m, client_host="") for m in group.members])


def test_members_continue_in_their_epochs_there_and_back(
    tmp_path: Path, start_daemon: StartDaemon
) -> None:
    tools = require_kafka_tools()
    with kafka_broker(tools, tmp_path / "kafka") as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            created.result(60)
        first = RawConsumer(kafka.bootstrap, "g", "m-1", topics=(TOPIC,), instance_id="i-1")
        second = RawConsumer(kafka.bootstrap, "g", "m-2", regex="ord.*")
        reconcile_all(first)
        reconcile_all(first, second)
        members = [first, second]
        (partitions,) = first.owned.values()
        assert first.commit(TOPIC, dict.fromkeys(partitions, 0)) is ErrorCode.NONE
        in_kafka = first.describe()
        assert in_kafka.group_state == "Stable"
        assert in_kafka.group_epoch > 2
        kafka.stop()

        # Into Rollcall, with the topic's folders.
        daemon = start_daemon()
        daemon.stop()
        for folder in kafka.log_dir.glob(f"{TOPIC}-*"):
            shutil.copytree(folder, daemon.data_dir / folder.name)
        report = rollcall(
            "import", "--from", kafka.log_dir, "--data-dir", daemon.data_dir, "--keep-topic-ids"
        )
        assert "types not served" not in report
        daemon.start()
        for member in members:
            member.address = daemon.bootstrap
        assert first.describe() == in_kafka
        for member in members:
            before = member.epoch, member.owned
            member.heartbeat()
            assert (member.epoch, member.owned) == before
        time.sleep(QUIET_S)
        reconcile_all(*members)
        assert first.describe() == in_kafka
        assert second.commit(TOPIC, {min(*second.owned.values()): 0}) is ErrorCode.NONE

        # A third member: what Rollcall decides is continued by the Kafka.
        third = RawConsumer(daemon.bootstrap, "g", "m-3", topics=(TOPIC,))
        members.append(third)
        reconcile_all(*members)
        in_rollcall = first.describe()
        assert in_rollcall.group_state == "Stable"
        assert in_rollcall.group_epoch == in_kafka.group_epoch + 1
        assert all(member.owned for member in members)
        daemon.stop()

        rollcall(
            "export", "--for-kafka", kafka.log_dir, "--data-dir", daemon.data_dir, "--overwrite"
        )
        (log,) = [
            path
            for path in kafka.log_dir.glob("__consumer_offsets-*/*.log")
            if b"m-3" in path.read_bytes()
        ]
        shown = tools.run(DUMP_LOG, "--offsets-decoder", "--files", log)
        assert "ConsumerGroup" not in shown.err
        assert shown.exit_code == 0
        kafka.start()
        for member in members:
            member.address = kafka.bootstrap
        assert first.describe() == in_rollcall
        for member in members:
            before = member.epoch, member.owned
            member.heartbeat()
            assert (member.epoch, member.owned) == before
        time.sleep(QUIET_S)
        reconcile_all(*members)
        assert without_hosts(first.describe()) == without_hosts(in_rollcall)
        assert third.commit(TOPIC, {min(*third.owned.values()): 0}) is ErrorCode.NONE
