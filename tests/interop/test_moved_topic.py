"""Moved topic: a folder from a Kafka in the data directory, read by consumers here.

What they read is compared with what the Kafka itself gave them: its folder and that record are
tests/storage/golden/transactions, made by make_transactions.py beside it.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conftest import StartDaemon
from tests.interop.kafka_apps import Reader, wait_until
from tests.interop.kafka_broker import KafkaBroker
from tests.interop.kafka_tools import require_kafka_tools
from tests.storage.golden.make_transactions import FOLDER, KEPT, TOPIC, fetch, read

READ = json.loads((FOLDER / "read.json").read_text())
ISOLATIONS = ("read_committed", "read_uncommitted")
LONG_ONLY = pytest.mark.skipif(
    os.environ.get("DATA_TOOLS", "") in ("", "0"), reason="DATA_TOOLS is not set"
)


def test_consumers_read_here_what_they_read_there(
    tmp_path: Path, start_daemon: StartDaemon
) -> None:
    folder = tmp_path / "node" / "data" / f"{TOPIC}-0"
    folder.mkdir(parents=True)
    for pattern in KEPT:
        for file in FOLDER.glob(pattern):
            shutil.copy(file, folder)

    daemon = start_daemon()

    for isolation in ISOLATIONS:
        assert read(daemon.bootstrap, isolation) == READ[isolation]
    for offset, there in enumerate(READ["fetch"][:26]):
        here = fetch(daemon.port, offset)
        assert here["aborted"] == there["aborted"]
        # The transaction that was left open has its ABORT marker now.
        assert here["last_stable_offset"] == here["high_watermark"] == 27
    assert "they count as aborted" in daemon.log()

    # It is a topic like any other: what is written now is read at once, here and after a kill.
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "enable.idempotence": True})
    producer.produce(TOPIC, b"of today")
    assert not producer.flush(60)
    daemon.kill()
    daemon.start()
    for isolation in ISOLATIONS:
        assert read(daemon.bootstrap, isolation) == [*READ[isolation], "of today"]


@LONG_ONLY
def test_a_kafka_opens_a_topic_that_was_written_here(
    tmp_path: Path, start_daemon: StartDaemon
) -> None:
    """With its transactions: segments, indexes, `.txnindex` and producer snapshots."""
    tools = require_kafka_tools()
    daemon = start_daemon()
    configs = {"segment.bytes": "1048576", "internal.segment.bytes": "2000"}
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.create_topics([NewTopic("moved", 1, config=configs)])["moved"].result(60)
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "transactional.id": "mover"})
    producer.init_transactions(60)
    for number in range(30):
        producer.begin_transaction()
        for record in range(5):
            producer.produce("moved", f"{number}.{record} {'x' * 50}")
        if number % 3:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    here = {isolation: everything(daemon.bootstrap, isolation) for isolation in ISOLATIONS}
    assert len(here["read_uncommitted"]) == 150
    assert len(here["read_committed"]) == 100
    assert daemon.stop() == 0
    written = daemon.data_dir / "moved-0"
    assert len(list(written.glob("*.log"))) > 2
    assert any(path.stat().st_size for path in written.glob("*.txnindex"))
    assert list(written.glob("*.snapshot"))

    kafka = KafkaBroker(tools, tmp_path / "kafka").start()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("moved", 1)])["moved"].result(60)
    kafka.stop()
    folder = kafka.log_dir / "moved-0"
    for path in folder.iterdir():
        if path.name != "partition.metadata":  # the id that its catalog has
            path.unlink()
    for path in written.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, folder)
    kafka.start()
    try:
        for isolation in ISOLATIONS:
            assert everything(kafka.bootstrap, isolation) == here[isolation]
    finally:
        kafka.stop()
    broker_log = (tmp_path / "kafka" / "broker.log").read_text()
    assert "Rebuilding producer state" not in broker_log
    assert "corrupt" not in broker_log.lower()


def everything(bootstrap: str, isolation: str) -> list[str]:
    reader = Reader(bootstrap, "moved", isolation=isolation)
    wait_until("the first record", lambda: bool(reader.read()))
    values = reader.values()
    reader.close()
    return values
