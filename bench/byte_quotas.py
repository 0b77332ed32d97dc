"""Byte quotas: the rates that clients achieve under one, here or at a real Kafka.

    python -m bench.byte_quotas --port PORT --libs FOLDER_OF_KAFKAS_JARS

A server on 127.0.0.1:PORT. librdkafka and Kafka's own perf tools produce, then consume, each with
a client id that has a quota of 1,000,000 bytes/s. Of each: bytes of values per second, and the
throttle times that the client was given.
"""

import argparse
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

QUOTA: Final = 1_000_000  # bytes/s
VALUE: Final = bytes(1_000)
MESSAGES: Final = 25_000
TOPIC: Final = "byte-quotas"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure clients under byte quotas.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--libs", type=Path, required=True)
    options = parser.parse_args()
    at = f"127.0.0.1:{options.port}"
    admin = AdminClient({"bootstrap.servers": at})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        future.result()
    java(
        options.libs, "kafka.admin.ConfigCommand", "--bootstrap-server", at, "--alter",
        "--entity-type", "clients", "--entity-default",
        "--add-config", f"producer_byte_rate={QUOTA},consumer_byte_rate={QUOTA}",
    )  # fmt: skip
    librdkafka_produces(at)
    librdkafka_consumes(at)
    java_produces(options.libs, at)
    java_consumes(options.libs, at)


class Throttles:
    """The throttle times that a client was given."""

    def __init__(self) -> None:
        self.ms: list[float] = []

    def __call__(self, event: object) -> None:
        self.ms.append(event.throttle_time * 1_000)  # type: ignore[attr-defined]

    def __str__(self) -> str:
        throttles = [each for each in self.ms if each]
        average_ms = sum(throttles) / max(len(throttles), 1)
        return f"{len(throttles)} throttles of {average_ms:,.0f} ms on average"


def report(what: str, began_s: float, values: int, throttles: object) -> None:
    seconds = time.monotonic() - began_s
    rate = values * len(VALUE) / seconds
    print(f"{what}: {rate / QUOTA:.2f} of the quota in {seconds:.0f} s, {throttles}", flush=True)


def librdkafka_produces(at: str) -> None:
    throttles = Throttles()
    producer = Producer(
        {"bootstrap.servers": at, "client.id": "rd-p", "linger.ms": 5, "throttle_cb": throttles}
    )
    began_s = time.monotonic()
    for _ in range(MESSAGES):
        producer.produce(TOPIC, VALUE)
        producer.poll(0)
    assert producer.flush(300) == 0
    report("librdkafka produces", began_s, MESSAGES, throttles)


def librdkafka_consumes(at: str) -> None:
    throttles = Throttles()
    consumer = Consumer(
        {
            "bootstrap.servers": at, "client.id": "rd-c", "group.id": "rd-c",
            "auto.offset.reset": "earliest", "throttle_cb": throttles,
        }
    )  # fmt: skip
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    began_s, got = time.monotonic(), 0
    while got < MESSAGES:
        got += len(consumer.consume(1_000, 1.0))
    report("librdkafka consumes", began_s, got, throttles)
    consumer.close()


def java(libs: Path, *arguments: str) -> str:
    command = ["java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    done = subprocess.run(
        [*command, "-cp", f"{libs}/*", *arguments],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return done.stdout


def java_produces(libs: Path, at: str) -> None:
    text = java(
        libs, "org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC,
        "--num-records", str(MESSAGES), "--record-size", str(len(VALUE)), "--throughput", "-1",
        "--bootstrap-server", at, "--command-property", "client.id=java-p", "--print-metrics",
    )  # fmt: skip
    totals = re.findall(r"^\d+ records sent.*?MB/sec\)", text, re.MULTILINE)
    print("Java produces:", totals[-1], end=" ")
    print(metrics(text, "produce-throttle-time"), flush=True)


def java_consumes(libs: Path, at: str) -> None:
    text = java(
        libs, "org.apache.kafka.tools.ConsumerPerformance", "--topic", TOPIC, "--group", "java-c",
        "--num-records", str(2 * MESSAGES), "--bootstrap-server", at, "--timeout", "60000",
        "--command-property", "client.id=java-c", "--print-metrics", "--hide-header",
    )  # fmt: skip
    print("Java consumes:", text.splitlines()[0], end=" ")
    print(metrics(text, "fetch-throttle-time"), flush=True)


def metrics(text: str, name: str) -> str:
    found = re.findall(rf"{name}-(avg|max).*?: *([\d.NaN]+)", text)
    return json.dumps(dict(found))


if __name__ == "__main__":
    main()
