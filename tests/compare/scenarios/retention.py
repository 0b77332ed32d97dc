"""Retention and rolling: which segments a topic deletes, by its configs.

What is deleted shows in the earliest offset. A batch is some 80 bytes, so that with
`internal.segment.bytes` of 100 each one has its own segment.
"""

import time
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ErrorCode, TopicName
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.scenarios.data_plane import list_offsets
from tests.compare.scenarios.group_configs import BROKER, DELETE, SET, TOPIC, alter
from tests.compare.script import Script, scenario

PROFILE = "short lives"

HOUR_MS: Final = 3_600_000
HALF: Final = "1800000"
EARLIEST, LATEST = -2, -1


def earliest(script: Script, topic: TopicName) -> int:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, EARLIEST)])
    answer = script.ask_aside(ListOffsetsRequest(-1, 0, (asked,)), 5, ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


class Passes:
    """Waits until the broker has gone through all logs: a topic of its own is emptied twice."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._topic = script.topic("passes", retention_ms="1")
        self._end = 0

    def run(self) -> None:
        for _ in range(2):
            write(self._script, self._topic, HOUR_MS)
            self._end += 1
            self._script.until(f"{self._end} passes", self._is_empty)

    def _is_empty(self) -> bool:
        return earliest(self._script, self._topic) == self._end


def write(script: Script, topic: TopicName, *ages_ms: int) -> None:
    """One batch for each age. Their times are the machine's, so they are not written down."""
    now_ms = int(time.time() * 1_000)
    for number, age_ms in enumerate(ages_ms):
        records = a_batch(b"value %d" % number, key=b"key", at_ms=now_ms - age_ms)
        named = TopicProduceData(topic, UUID(int=0), [PartitionProduceData(0, records)])
        answer = script.ask_aside(ProduceRequest(None, -1, 10_000, [named]), 9, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE


def ends(client: Client, *topics: TopicName) -> None:
    for topic in topics:
        list_offsets(client, topic, EARLIEST)
        list_offsets(client, topic, LATEST)


AGES: Final = (5 * HOUR_MS, 4 * HOUR_MS, 3 * HOUR_MS, 0, 4 * HOUR_MS, 0)

LIVES: Final[Mapping[str, Mapping[str, str]]] = {
    "by_time": {"retention_ms": HALF},
    "all": {"retention_ms": "0"},
    "unlimited": {"retention_ms": "-1"},
    "one_segment": {"retention_ms": HALF, "internal_segment_bytes": "10000"},
    "by_bytes": {"retention_bytes": "200", "retention_ms": "-1"},
    "no_bytes": {"retention_bytes": "0", "retention_ms": "-1"},
    "by_both": {"retention_bytes": "300", "retention_ms": HALF},
    "compact": {"cleanup_policy": "compact", "retention_ms": "1", "retention_bytes": "1"},
    # Not "compact,delete": there Kafka's cleaner deletes, at times of its own.
    "neither": {"cleanup_policy": "", "retention_ms": "1", "retention_bytes": "1"},
    "by_age": {"retention_ms": HALF, "internal_segment_bytes": "10000", "segment_ms": HALF},
    "by_index": {
        "retention_ms": HALF,
        "internal_segment_bytes": "10000",
        "segment_index_bytes": "24",
        "index_interval_bytes": "0",
    },
    "append_time": {"retention_ms": HALF, "message_timestamp_type": "LogAppendTime"},
}


@scenario(PROFILE)
def old_segments_are_deleted(script: Script) -> None:
    a = script.client("a")
    topics = []
    for name, configs in LIVES.items():
        # Without a limit at first: a pass may come between two batches.
        kept = {"internal_segment_bytes": "100", **configs, "retention_ms": "-1"}
        kept.pop("retention_bytes", None)
        topics.append(script.topic(name, **kept))
        write(script, topics[-1], *AGES)
    for topic, configs in zip(topics, LIVES.values(), strict=True):
        limits = {key: value for key, value in configs.items() if key.startswith("retention")}
        edits = [(key.replace("_", "."), SET, value) for key, value in limits.items()]
        alter(a, (TOPIC, topic, edits))
    script.await_metadata()
    Passes(script).run()
    ends(a, *topics)


@scenario(PROFILE)
def changed_configs_delete_old_segments(script: Script) -> None:
    a = script.client("a")
    passes = Passes(script)
    own = script.topic("own", retention_ms="-1", internal_segment_bytes="100")
    brokers = script.topic("brokers", internal_segment_bytes="100")
    for topic in (own, brokers):
        write(script, topic, *AGES)
    passes.run()
    ends(a, own, brokers)
    alter(a, (TOPIC, own, [("retention.ms", SET, HALF)]))
    script.await_metadata()
    passes.run()
    ends(a, own, brokers)
    alter(a, (BROKER, "", [("log.retention.ms", SET, HALF)]))
    script.await_metadata()
    passes.run()
    ends(a, own, brokers)
    alter(a, (BROKER, "", [("log.retention.ms", DELETE, None)]))
    alter(a, (TOPIC, own, [("retention.bytes", SET, "0")]))
    script.await_metadata()
    passes.run()
    ends(a, own, brokers)
