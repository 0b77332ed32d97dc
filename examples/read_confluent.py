"""A consumer of librdkafka in the group `billing`: says what it owns and what it has read."""

from confluent_kafka import Consumer

consumer = Consumer(
    {
        "bootstrap.servers": "127.0.0.1:9092",
        "group.id": "billing",
        "auto.offset.reset": "earliest",
        "log_level": 0,  # it would say a lot while the daemon is away
        "auto.commit.interval.ms": 1000,
        "partition.assignment.strategy": "range",
    }
)
consumer.subscribe(
    ["orders"],
    on_assign=lambda _, owned: print(
        "confluent owns", sorted(p.partition for p in owned), flush=True
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
                print("confluent has read", count, flush=True)
except KeyboardInterrupt:
    consumer.close()
