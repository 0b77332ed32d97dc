"""Producer: creates the topic `orders` with 3 partitions and writes some: orders.py [HOW_MANY]."""

import os
import sys

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

BROKER = {"bootstrap.servers": os.environ.get("BOOTSTRAP", "127.0.0.1:9092")}

admin = AdminClient(BROKER)
try:
    admin.create_topics([NewTopic("orders", num_partitions=3)])["orders"].result()
    print("created the topic orders with 3 partitions")
except KafkaException as refused:
    print(refused.args[0].str())

producer = Producer(BROKER)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
for number in range(count):
    producer.produce("orders", key=f"customer-{number % 50}", value=f"order {number}")
left = producer.flush(30)
print(f"wrote {count - left} orders")
