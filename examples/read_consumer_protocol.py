"""Consumer protocol example: a member of the group `invoices`, named by its argument.

Prints which partitions it gets and gives back. The coordinator assigns them.
"""

import os
import sys

from confluent_kafka import Consumer

name = sys.argv[1]
consumer = Consumer(
    {
        "bootstrap.servers": os.environ.get("BOOTSTRAP", "127.0.0.1:9092"),
        "group.id": "invoices",
        "group.protocol": "consumer",
        "client.id": name,
        "auto.offset.reset": "earliest",
        "log_level": 0,  # it logs every retry while the daemon is down
    }
)


def say(what: str, partitions: list) -> None:
    if partitions:
        print(name, what, sorted(p.partition for p in partitions), flush=True)


consumer.subscribe(
    ["orders"],
    on_assign=lambda _, partitions: say("gets", partitions),
    on_revoke=lambda _, partitions: say("gives back", partitions),
)
try:
    while True:
        consumer.poll(1.0)
except KeyboardInterrupt:
    consumer.close()
