"""Rebalance storm: a consumer whose work takes longer than max.poll.interval.ms, beside a good one.

storm.py [SECONDS] runs both in the group `billing` (docs/tutorials/rebalance-storm.md).
"""

import os
import sys
import threading
import time

from confluent_kafka import Consumer, Producer

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
WORK_S = 9.0
POLL_INTERVAL_MS = 6_000


BROKER = {"bootstrap.servers": os.environ.get("BOOTSTRAP", "127.0.0.1:9092")}


def write():
    producer = Producer(BROKER)
    ends_s = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < ends_s:
        number += 1
        producer.produce("orders", key=f"customer-{number % 50}", value=f"order {number}")
        producer.flush()
        time.sleep(0.1)


def run(name, work_s):
    consumer = Consumer(
        {
            **BROKER,
            "group.id": "billing",
            "client.id": name,
            "auto.offset.reset": "latest",
            "session.timeout.ms": POLL_INTERVAL_MS,
            "max.poll.interval.ms": POLL_INTERVAL_MS,
            "heartbeat.interval.ms": 500,
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    ends_s = time.monotonic() + SECONDS
    while time.monotonic() < ends_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            time.sleep(work_s)  # the work on one order
    consumer.close()


members = [threading.Thread(target=write)]
members += [threading.Thread(target=run, args=("quick", 0.01))]
members += [threading.Thread(target=run, args=("slow", WORK_S))]
for member in members:
    member.start()
for member in members:
    member.join()
