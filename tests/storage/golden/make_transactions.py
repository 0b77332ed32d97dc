"""Golden transactions: what readers get of a topic: tests/storage/golden/transactions/.

    .venv/bin/python -m tests.storage.golden.make_transactions --driver DRIVER [--port 21180]

DRIVER is `start DIR PORT [k=v ...]`, `stop DIR`. The folder is that of the stopped broker, with one
transaction still open; `read.json` has what the broker itself then gave its consumers, once it had
ended that one for want of its producer: the values, and the answer to a Fetch from each offset.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.names import TopicName
from tests.compare.wire import Wire

TOPIC = "moved"
FOLDER = Path(__file__).with_name("transactions")
KEPT = ("*.log", "*.txnindex", "*.snapshot", "partition.metadata", "leader-epoch-checkpoint")
HOUR_MS = 3_600_000
LOG_LEVEL = 2  # of the client library: that a stopped broker does not answer is no news
PROPERTIES = (
    "transaction.state.log.num.partitions=1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=200",
    "group.initial.rebalance.delay.ms=0",
)


class Writing:
    """What is written: a value says whether it should be read, and by whom."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._at_ms = int(time.time() * 1_000)  # as the broker's markers: the records' time rolls
        self._plain = self._producer()
        self._transactional: dict[str, Producer] = {}

    def _producer(self, **config: object) -> Producer:
        fixed = {"bootstrap.servers": self._address, "linger.ms": 0, "log_level": LOG_LEVEL}
        return Producer({**fixed, **config})

    def _send(self, producer: Producer, *values: str) -> None:
        for value in values:
            producer.produce(TOPIC, value.encode(), timestamp=self._at_ms)
        assert not producer.flush(30)

    def plain(self, *values: str) -> None:
        self._send(self._plain, *values)

    def roll(self) -> None:
        """What comes next is another segment's."""
        self._at_ms += 2 * HOUR_MS

    def begin(self, name: str, *values: str, timeout_ms: int = 60_000) -> None:
        if name not in self._transactional:
            config = {"transactional.id": name, "transaction.timeout.ms": timeout_ms}
            self._transactional[name] = self._producer(**config)
            self._transactional[name].init_transactions(30)
        self._transactional[name].begin_transaction()
        self.more(name, *values)

    def more(self, name: str, *values: str) -> None:
        self._send(self._transactional[name], *values)

    def commit(self, name: str) -> None:
        self._transactional[name].commit_transaction(30)

    def abort(self, name: str) -> None:
        self._transactional[name].abort_transaction(30)


def write(address: str) -> Writing:
    writing = Writing(address)
    writing.plain("plain 0", "plain 1")
    writing.begin("a", "committed 0", "committed 1")
    writing.commit("a")
    writing.begin("a", "aborted 0")
    writing.begin("b", "committed 2")  # between the records of one that is aborted
    writing.more("a", "aborted 1")
    writing.plain("plain 2")
    writing.commit("b")
    writing.abort("a")
    writing.begin("a", "committed 3")  # the producer's next one, right behind
    writing.begin("b", "aborted 2")
    writing.roll()
    writing.plain("plain 3")
    writing.more("b", "aborted 3")  # of one that began a segment ago
    writing.more("a", "committed 4")
    writing.roll()
    writing.plain("plain 4")
    writing.commit("a")
    writing.abort("b")
    writing.begin("a", "aborted 4")
    writing.abort("a")
    writing.begin("b", "committed 5")
    writing.commit("b")
    writing.begin("left open", "open 0", "open 1", timeout_ms=20_000)
    writing.plain("plain 5")
    return writing


def read(address: str, isolation: str) -> list[str]:
    """All that a consumer of the client library gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"reads-{isolation}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values = []
    while (message := consumer.poll(30)) is not None:
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            break
        values.append(message.value().decode())
    consumer.close()
    return values


def fetch(port: int, offset: int) -> dict[str, object]:
    """What a Fetch from there says of transactions."""
    wire = Wire(port, None)
    asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = (FetchTopic(TopicName(TOPIC), partitions=(asked,)),)
    wire.send(FetchRequest(max_bytes=1 << 20, isolation_level=1, topics=topics), 12)
    answer = wire.receive(FetchResponse, 12)
    wire.close()
    assert isinstance(answer, FetchResponse)
    data = answer.responses[0].partitions[0]
    return {
        "last_stable_offset": data.last_stable_offset,
        "high_watermark": data.high_watermark,
        "bytes": len(data.records or b""),
        "aborted": [
            [transaction.producer_id, transaction.first_offset]
            for transaction in data.aborted_transactions or ()
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--port", type=int, default=21_180)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        record(options.driver, options.port, Path(home))


def record(driver: str, port: int, home: Path) -> None:
    address = f"127.0.0.1:{port}"
    start = [driver, "start", str(home), str(port), *PROPERTIES]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    try:
        config = {
            "segment.ms": str(HOUR_MS),
            "message.timestamp.after.max.ms": str(24 * HOUR_MS),
            "retention.ms": "-1",
        }
        topic = NewTopic(TOPIC, 1, 1, config=config)
        admin = AdminClient({"bootstrap.servers": address})
        for created in admin.create_topics([topic]).values():
            created.result(30)
        writing = write(address)
    finally:
        subprocess.run([driver, "stop", str(home)], check=True)
    del writing  # a client that goes in order would have aborted what is open
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for pattern in KEPT:
        for file in (home / "data" / f"{TOPIC}-0").glob(pattern):
            shutil.copy(file, FOLDER)
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while (end := fetch(port, 0))["last_stable_offset"] != end["high_watermark"]:
            assert time.monotonic() < deadline, "the open transaction was not ended"
            time.sleep(0.2)
        found: dict[str, object] = {
            isolation: read(address, isolation)
            for isolation in ("read_committed", "read_uncommitted")
        }
        log_end = int(str(end["high_watermark"]))
        found["fetch"] = [fetch(port, offset) for offset in range(log_end + 1)]
    finally:
        subprocess.run([driver, "stop", str(home)], check=True)
    (FOLDER / "read.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
