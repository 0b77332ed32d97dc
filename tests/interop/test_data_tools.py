"""Kafka's tools for data and transactions: what they print here and at a real Kafka is the same.

One session of commands runs at both servers; `make long-data-tools` (DATA_TOOLS=1) compares what
each command printed, on both streams. Times, sizes, rates and paths are left out.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ErrorCode, TopicName
from storage.batch.record_batch import TRANSACTIONAL_FLAG
from tests.broker.daemon import Daemon
from tests.compare.wire import Wire
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import (
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_PERFORMANCE,
    DELETE_RECORDS,
    DUMP_LOG,
    GET_OFFSETS,
    LOG_DIRS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    TRANSACTIONS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    KafkaTools,
    require_kafka_tools,
)
from tests.topics.batches import batch, damaged

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("DATA_TOOLS", "") in ("", "0"), reason="DATA_TOOLS is not set"
    ),
    pytest.mark.timeout(900),
]

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # Only so can a transaction hang: the coordinator knows nothing of it.
    "transaction.partition.verification.enable": "false",
}

TOPIC, MIXED, HANGING = "orders", "mixed", "hanging"
HANGING_PRODUCER: Final = 4_242
LONG_AGO_MS: Final = 1_700_000_000_000

MOMENTS: Final = (
    *("-1", "-2", "-3", "-4", "-5", "-6", "1700000000099", "earliest", "latest"),
    *("max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload"),
)

_UNSTABLE: Final = (
    (re.compile(r"\b1[6-9]\d{11}\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.:,]\d+Z?"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"(/[\w.-]+)+/data\b"), "DATA"),
    (re.compile(r'"(size|totalBytes|usableBytes)":-?\d+'), r'"\1":N'),
    (re.compile(r"TIME \d+"), "TIME N"),  # a duration
    (re.compile(r"\bcrc: \d+"), "crc: N"),
    (re.compile(r"\b\d+[.,]\d+\b"), "N"),
    (re.compile(r"\b\d+ ms\b"), "N ms"),
    (re.compile(r"6000, N, \d+, \d+,"), "6000, N, N, N,"),  # times of the consumer performance
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ID"),
    (re.compile(r"(perf-)?(consumer|producer)-\d{2,}"), r"\2-N"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[\w-]{22}"), "UUID"),
)


class Session:
    """Commands at one server, and what each of them printed."""

    def __init__(self, tools: KafkaTools, bootstrap: str, data_dir: Path, folder: Path) -> None:
        self._tools = tools
        self._bootstrap = bootstrap
        self._data_dir = data_dir
        self._folder = folder
        self.printed: dict[str, list[str]] = {}

    def run(self, what: str, main_class: str, *arguments: str, stdin: str = "") -> None:
        server = ("--bootstrap-server", self._bootstrap)
        done = self._tools.run(main_class, *server, *arguments, stdin=stdin)
        lines = [f"exit code {done.exit_code}"]
        for text in (done.out, done.err):
            lines += sorted(self._stable(text).splitlines())
        self.printed[f"{len(self.printed)} {what}"] = lines

    def _stable(self, text: str) -> str:
        text = re.sub(r"[ \t]+", " ", text)
        for pattern, name in _UNSTABLE:
            text = pattern.sub(name, text)
        return text

    def whole(self) -> dict[str, list[str]]:
        self._topics_and_console()
        self._offsets()
        self._transactions()
        self._hanging_transaction()
        self._verifiable_clients()
        self._performance()
        self._deleted_records()
        return self.printed

    def _topics_and_console(self) -> None:
        partitions = {TOPIC: "2", MIXED: "2", HANGING: "2", "verified": "1", "fast": "1"}
        for topic, count in partitions.items():
            self.run(
                *("create", TOPICS, "--create", "--topic", topic, "--partitions", count),
                *("--config", "retention.ms=-1"),
            )
        self.run(
            *("produce", CONSOLE_PRODUCER, "--topic", TOPIC),
            *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
            stdin="".join(f"k{n}:v{n}\n" for n in range(20)),
        )
        producer = self._producer("mixed-producer")
        for number in range(4):
            producer.begin_transaction()
            for n in range(3):
                moment = LONG_AGO_MS + number * 100 - n
                producer.produce(MIXED, f"{number}-{n}", partition=number % 2, timestamp=moment)
            producer.flush(60)
            end = producer.abort_transaction if number >= 2 else producer.commit_transaction
            end(60)
        for isolation in ("read_committed", "read_uncommitted"):
            self.run(
                *("consume " + isolation, CONSOLE_CONSUMER, "--topic", MIXED),
                *("--from-beginning", "--isolation-level", isolation, "--timeout-ms", "4000"),
                *("--formatter-property", "print.offset=true"),
                *("--formatter-property", "print.partition=true"),
            )

    def _producer(self, name: str) -> Producer:
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": name}
        producer = Producer({**settings, "log_level": 0})
        producer.init_transactions(60)
        return producer

    def _offsets(self) -> None:
        for moment in MOMENTS:
            self.run(f"offsets {moment}", GET_OFFSETS, "--topic", MIXED, "--time", moment)
        self.run("offsets of a partition", GET_OFFSETS, "--topic-partitions", f"{TOPIC}:1")
        self.run("offsets of some", GET_OFFSETS, "--topic", "o.*", "--partitions", "0")
        self.run("offsets of all", GET_OFFSETS, "--exclude-internal-topics")
        self.run("offsets of none", GET_OFFSETS, "--topic", "missing")

    def _transactions(self) -> None:
        producer = self._producer("open-producer")
        producer.begin_transaction()
        producer.produce(TOPIC, "pending", partition=0)
        assert producer.flush(60) == 0
        self.run("list", TRANSACTIONS, "list")
        self.run("list by duration", TRANSACTIONS, "list", "--duration-filter", "3600000")
        self.run("list by name", TRANSACTIONS, "list", "--transactional-id-pattern", "open.*")
        for name in ("open-producer", "mixed-producer", "missing"):
            self.run(f"describe {name}", TRANSACTIONS, "describe", "--transactional-id", name)
        self._describe_producers(TOPIC)
        self._describe_producers(MIXED)
        self.run("offsets of the stable end", GET_OFFSETS, "--topic", TOPIC, "--time", "latest")
        self.run("find none", TRANSACTIONS, "find-hanging", "--broker-id", "1")
        terminate = (TRANSACTIONS, "forceTerminateTransaction", "--transactionalId")
        self.run("terminate", *terminate, "open-producer")
        self.run("terminate nothing", *terminate, "missing")
        self.run("list the terminated", TRANSACTIONS, "list")
        self._describe_producers(TOPIC)

    def _describe_producers(self, topic: str) -> None:
        at = ("--topic", topic, "--partition", "0")
        self.run(f"producers of {topic}", TRANSACTIONS, "describe-producers", *at)

    def _hanging_transaction(self) -> None:
        """Of a producer that no coordinator knows."""
        records = damaged(
            batch(b"hangs", timestamp=LONG_AGO_MS),
            attributes=TRANSACTIONAL_FLAG,
            producer_id=HANGING_PRODUCER,
            producer_epoch=0,
            base_sequence=0,
        )
        data = TopicProduceData(
            TopicName(HANGING), partition_data=[PartitionProduceData(0, records)]
        )
        wire = Wire(int(self._bootstrap.rpartition(":")[2]), "a-client")
        wire.send(ProduceRequest("unknown", -1, 30_000, [data]), 9)
        answer = wire.receive(ProduceResponse, 9)
        assert isinstance(answer, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE
        wire.close()
        self._describe_producers(HANGING)
        find = (TRANSACTIONS, "find-hanging")
        self.run("find", *find, "--broker-id", "1")
        self.run("find in a topic", *find, "--topic", HANGING)
        at = ("--topic", HANGING, "--partition", "0", "--start-offset", "0")
        self.run("abort", TRANSACTIONS, "abort", *at)
        self.run("abort again", TRANSACTIONS, "abort", *at)
        self.run("find no more", *find, "--broker-id", "1")
        self._describe_producers(HANGING)

    def _verifiable_clients(self) -> None:
        self.run(
            *("verifiable producer", VERIFIABLE_PRODUCER, "--topic", "verified"),
            *("--max-messages", "20", "--value-prefix", "7"),
        )
        self.run(
            *("verifiable consumer", VERIFIABLE_CONSUMER, "--topic", "verified"),
            *("--group-id", "verifiers", "--max-messages", "20"),
            *("--reset-policy", "earliest"),
        )

    def _performance(self) -> None:
        records = ("--topic", "fast", "--num-records", "2000", "--record-size", "100")
        perf = (PRODUCER_PERFORMANCE, *records, "--throughput", "-1")
        self.run("producer performance", *perf)
        self.run("in transactions", *perf, "--transactional-id", "perf")
        self.run("of a duration", *perf, "--transaction-duration-ms", "50")
        self.run(
            *("consumer performance", CONSUMER_PERFORMANCE, "--topic", "fast"),
            *("--num-records", "6000", "--group", "perf"),
        )
        self.run("offsets of the fast topic", GET_OFFSETS, "--topic", "verified")

    def _deleted_records(self) -> None:
        for offset in ("3", "-1", "999"):
            path = self._folder / "offsets.json"
            path.write_text(
                f'{{"partitions": [{{"topic": "{TOPIC}", "partition": 0, "offset": {offset}}}],'
                ' "version": 1}'
            )
            self.run(f"delete {offset}", DELETE_RECORDS, "--offset-json-file", str(path))
            self.run(f"offsets after {offset}", GET_OFFSETS, "--topic", TOPIC, "--time", "-2")
        self.run("log dirs", LOG_DIRS, "--describe", "--topic-list", f"{TOPIC},{MIXED}")

    def dumped(self, what: str, folder: str, suffix: str, *arguments: str) -> None:
        """The files of a partition, as Kafka's dump tool reads them."""
        files = sorted((self._data_dir / folder).glob(f"*{suffix}"))
        assert files, f"{what}: no {suffix} in {folder}"
        done = self._tools.run(DUMP_LOG, *arguments, "--files", files[0])
        # Nobody knows how many transactions fit into a duration.
        steady = done.out.partition("performance-producer-")[0]
        lines = self._stable(steady + done.err).splitlines()
        self.printed[f"dump {what}"] = [f"exit code {done.exit_code}", *lines]


@contextmanager
def rollcall(folder: Path) -> Iterator[Session]:
    daemon = Daemon(folder, SETTINGS)
    try:
        daemon.start()
        session = Session(require_kafka_tools(), daemon.bootstrap, daemon.data_dir, folder)
        yield session
        assert daemon.stop() == 0
        dump(session)
    finally:
        daemon.close()


@contextmanager
def kafka(folder: Path) -> Iterator[Session]:
    properties = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with kafka_broker(require_kafka_tools(), folder / "kafka", **properties) as broker:
        session = Session(require_kafka_tools(), broker.bootstrap, broker.log_dir, folder)
        yield session
        broker.stop()
        dump(session)


def dump(session: Session) -> None:
    session.dumped("transaction log", "__transaction_state-0", ".log", "--transaction-log-decoder")
    session.dumped("data", f"{MIXED}-0", ".log", "--print-data-log")
    session.dumped("aborted transactions", f"{MIXED}-0", ".txnindex")
    session.dumped("producers", f"{MIXED}-0", ".snapshot")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    found = {}
    for name, server in (("rollcall", rollcall), ("kafka", kafka)):
        with server(tmp_path_factory.mktemp(name)) as session:
            session.whole()
        found[name] = session.printed
    return found


def test_every_tool_prints_what_it_prints_at_a_kafka(
    printed: dict[str, dict[str, list[str]]],
) -> None:
    ours, at_kafka = printed["rollcall"], printed["kafka"]
    assert list(ours) == list(at_kafka)
    different = {
        what: (ours[what], at_kafka[what]) for what in ours if ours[what] != at_kafka[what]
    }
    assert different == {}
