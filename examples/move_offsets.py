"""Offset tool: sets the offset of the group `nightly` on orders-0 twice, without being a member."""

import os

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

admin = AdminClient(
    {"bootstrap.servers": os.environ.get("BOOTSTRAP", "127.0.0.1:9092"), "client.id": "a-tool"}
)
for offset in (10, 3):
    moved = ConsumerGroupTopicPartitions("nightly", [TopicPartition("orders", 0, offset)])
    admin.alter_consumer_group_offsets([moved])["nightly"].result()
    print("nightly goes on at offset", offset)
