"""Moved topic: a folder from a Kafka in the data directory, read by consumers here.

What they read is compared with what the Kafka itself gave them: its folder and that record are
tests/storage/golden/transactions, made by make_transactions.py beside it.
"""

import json
import shutil
from pathlib import Path

from confluent_kafka import Producer

from tests.conftest import StartDaemon
from tests.storage.golden.make_transactions import FOLDER, KEPT, TOPIC, fetch, read

READ = json.loads((FOLDER / "read.json").read_text())
ISOLATIONS = ("read_committed", "read_uncommitted")


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
        assert here["last_stable_offset"] == here["high_watermark"] == 26
    assert "they count as aborted" in daemon.log()

    # It is a topic like any other: what is written now is read at once, here and after a kill.
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "enable.idempotence": True})
    producer.produce(TOPIC, b"of today")
    assert not producer.flush(60)
    daemon.kill()
    daemon.start()
    for isolation in ISOLATIONS:
        assert read(daemon.bootstrap, isolation) == [*READ[isolation], "of today"]
