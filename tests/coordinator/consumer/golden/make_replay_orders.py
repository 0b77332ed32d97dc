"""Recorder of replay orders: what a real Kafka 4.3.1 makes of each case. Run it once by hand.

    python -m tests.coordinator.consumer.golden.make_replay_orders

It writes replay_orders.json beside itself: the topic id that the records name, and for each group
the answer to ConsumerGroupDescribe, or null if the load of its partition failed.
"""

import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.names import ErrorCode, GroupId
from storage.batch.timed_batches import TimedRecord
from tests.coordinator.consumer.replay_orders import AT_MS, RECORDED, TOPIC, replay_orders
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import require_kafka_tools
from tests.interop.raw_consumer import RawConsumer, reconcile_all
from transfer.append import apply_plan
from transfer.kafka_dir import KafkaDir
from transfer.plan import Change, Plan

LOADED_WITHIN_S: Final = 20.0


def record(folder: Path) -> None:
    with kafka_broker(require_kafka_tools(), folder / "kafka") as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(str(TOPIC), 3, 1)])[str(TOPIC)].result(60)
        member = RawConsumer(kafka.bootstrap, "any", "m", topics=(TOPIC,))
        reconcile_all(member)  # and the offsets topic is there
        (topic_id,) = member.owned
        kafka.stop()
        cases = replay_orders(topic_id)
        changes = [
            Change(group_id, [TimedRecord(AT_MS, *record) for record in records])
            for group_id, records in cases.items()
        ]
        with KafkaDir(str(kafka.log_dir)) as directory:
            directory.begin()
            apply_plan(directory, Plan(changes), AT_MS)
            directory.finish()
        kafka.start()
        groups = described(kafka.bootstrap, cases)
    found = {"topic_id": str(topic_id), "groups": msgspec.to_builtins(groups)}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


def described(
    bootstrap: str, group_ids: Iterable[GroupId]
) -> dict[GroupId, DescribedConsumerGroup | None]:
    deadline = time.monotonic() + LOADED_WITHIN_S
    found: dict[GroupId, DescribedConsumerGroup | None] = {}
    for group_id in group_ids:
        client = RawConsumer(bootstrap, group_id, "")
        while True:
            group = client.describe_once()
            is_loading = group.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            # A partition whose load failed says so from then on; before, it may not have begun.
            may_load = group.error_code is ErrorCode.NOT_COORDINATOR
            if not is_loading and (not may_load or time.monotonic() > deadline):
                break
            time.sleep(0.1)
        found[group_id] = None if group.error_code is ErrorCode.NOT_COORDINATOR else group
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory))
