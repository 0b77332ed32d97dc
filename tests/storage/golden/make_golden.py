"""Golden segments: records the files beside this one from a real Kafka broker.

    python tests/storage/golden/make_golden.py BOOTSTRAP LOG_DIR

BOOTSTRAP is a fresh Kafka 4.x, LOG_DIR is its log.dirs. Each client library compresses in its own
way (kafka-python frames snappy as the Java client does, librdkafka does not), so each writes one
topic per codec; a group that joins, commits and leaves makes a segment of `__consumer_offsets`. The
files are segments, byte for byte. The `java-CODEC.log` files are the Java client's, written with
Kafka's own tool, three lines of `kN:the same words ...` each:

    kafka-console-producer.sh --bootstrap-server BOOTSTRAP --topic java-CODEC \\
        --compression-codec CODEC --property parse.key=true --property key.separator=:
"""

import shutil
import sys
from pathlib import Path

from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaConsumer, KafkaProducer

HERE = Path(__file__).parent
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUE = b"the same words over and over, " * 8


def produce_with_kafka_python(bootstrap: str, codec: str) -> str:
    topic = f"kafka-python-{codec}"
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=200,
    )
    producer.partitions_for(topic)
    for number in range(5):
        producer.send(
            topic,
            key=f"key-{number}".encode() if number else None,
            value=VALUE if number != 3 else None,
            headers=[("first", b"1"), ("empty", b"")] if number == 2 else [],
            timestamp_ms=1_700_000_000_000 + number * 1000,
        )
    producer.flush()
    producer.close()
    return topic


def produce_with_librdkafka(bootstrap: str, codec: str) -> str:
    topic = f"librdkafka-{codec}"
    producer = LibrdkafkaProducer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 500,
            "enable.idempotence": True,
        }
    )
    for number in range(5):
        producer.produce(
            topic,
            key=f"key-{number}" if number else None,
            value=VALUE if number != 3 else None,
            headers=[("first", b"1"), ("null", None)] if number == 2 else None,
            timestamp=1_700_000_000_000 + number * 1000,
        )
    producer.flush()
    return topic


def commit_in_a_group(bootstrap: str, topic: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id="golden-group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    while not consumer.poll(1000):
        pass
    consumer.commit()
    consumer.close()


def main() -> None:
    bootstrap, log_dir = sys.argv[1], Path(sys.argv[2])
    topics = [produce_with_kafka_python(bootstrap, codec) for codec in CODECS]
    topics += [produce_with_librdkafka(bootstrap, codec) for codec in CODECS]
    commit_in_a_group(bootstrap, topics[0])
    for topic in topics:
        shutil.copy(log_dir / f"{topic}-0" / f"{0:020d}.log", HERE / f"{topic}.log")
    for folder in log_dir.glob("__consumer_offsets-*"):
        segment = folder / f"{0:020d}.log"
        if segment.stat().st_size:
            shutil.copy(segment, HERE / "consumer-offsets.log")


if __name__ == "__main__":
    main()
