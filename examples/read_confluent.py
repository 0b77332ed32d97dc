"""Consumer with librdkafka in the group `billing`: read_confluent.py [NAME].

Prints what it owns and how much it has read. NAME.pid contains its process id.
"""

import os
import sys
from pathlib import Path

from confluent_kafka import Consumer

name = sys.argv[1] if len(sys.argv) > 1 else "confluent"
Path(f"{name}.pid").write_text(str(os.getpid()))
consumer = Consumer(
    {
        "bootstrap.servers": os.environ.get("BOOTSTRAP", "127.0.0.1:9092"),
        "group.id": "billing",
        "client.id": name,
        "auto.offset.reset": "earliest",
        "log_level": 0,  # it logs every retry while the daemon is down
        "auto.commit.interval.ms": 1000,
        "partition.assignment.strategy": "range",
        "session.timeout.ms": 90000,  # the tour stops it for a while
    }
)
consumer.subscribe(
    ["orders"],
    on_assign=lambda _, owned: print(
        f"{name} owns", sorted(p.partition for p in owned), flush=True
    ),
)
count = 0
try:
    while True:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is None:
            count += 1
            if count % 50 == 0:
                print(f"{name} has read", count, flush=True)
except KeyboardInterrupt:
    consumer.close()
