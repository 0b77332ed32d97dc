"""Steered member: a process that polls all the time and takes commands meanwhile.

Arguments: library, settings as JSON (settings.py). Orders are JSON lines on stdin: ["subscribe",
[topics]], ["rejoin"], ["close"]. It says when it was assigned partitions, and when it has closed.
"""

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable

from _say import say
from settings import Settings


def assigned(partitions: list[tuple[str, int]]) -> None:
    say("assigned", partitions=sorted(partitions))


class Confluent:
    def __init__(self, settings: Settings) -> None:
        from confluent_kafka import Consumer

        static = {"group.instance.id": settings.instance_id} if settings.instance_id else {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": settings.bootstrap,
                "group.id": settings.group,
                "client.id": settings.client_id,
                "session.timeout.ms": settings.session_timeout_ms,
                "heartbeat.interval.ms": settings.heartbeat_interval_ms,
                "max.poll.interval.ms": max(
                    settings.max_poll_interval_ms, settings.session_timeout_ms
                ),
                "topic.metadata.refresh.interval.ms": settings.metadata_max_age_ms,
                "metadata.max.age.ms": 3 * settings.metadata_max_age_ms,
                "reconnect.backoff.max.ms": 500,
                **static,
            }
        )
        self.subscribe(settings.topics)

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(
            topics, on_assign=lambda _, given: assigned([(p.topic, p.partition) for p in given])
        )

    def poll(self) -> None:
        self._consumer.poll(0.1)

    def close(self) -> None:
        self._consumer.close()


class Interrupted(BaseException):
    """An order came in the middle of a poll."""


class KafkaPython:
    """Its poll must be long: one that ends in the middle of a join loses the join."""

    def __init__(self, settings: Settings) -> None:
        from kafka import KafkaConsumer

        self._consumer = KafkaConsumer(
            bootstrap_servers=settings.bootstrap,
            group_id=settings.group,
            client_id=settings.client_id,
            group_instance_id=settings.instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            metadata_max_age_ms=settings.metadata_max_age_ms,
            reconnect_backoff_max_ms=500,
        )
        self._is_polling = False
        signal.signal(signal.SIGUSR1, self._interrupt)
        self.subscribe(settings.topics)

    def _interrupt(self, *_: object) -> None:
        if self._is_polling:
            self._is_polling = False
            raise Interrupted

    def subscribe(self, topics: list[str]) -> None:
        from kafka import ConsumerRebalanceListener

        class RebalanceListener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, given: list) -> None:
                assigned([(tp.topic, tp.partition) for tp in given])

            def on_partitions_revoked(self, revoked: list) -> None:
                return

        self._consumer.subscribe(topics, listener=RebalanceListener())

    def poll(self) -> None:
        from kafka.errors import KafkaError

        try:
            self._is_polling = True
            self._consumer.poll(30_000)
        except (Interrupted, KafkaError):
            return
        finally:
            self._is_polling = False

    def rejoin(self) -> None:
        self._consumer._coordinator.request_rejoin()

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    def __init__(self, settings: Settings) -> None:
        import asyncio

        self._asyncio = asyncio
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._run(self._open(settings))

    def _run(self, work: object) -> object:
        return self._asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, settings: Settings) -> None:
        from aiokafka import AIOKafkaConsumer

        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap,
            group_id=settings.group,
            client_id=settings.client_id,
            group_instance_id=settings.instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            metadata_max_age_ms=settings.metadata_max_age_ms,
        )
        self._subscribe(settings.topics)
        await self._consumer.start()

    def _subscribe(self, topics: list[str]) -> None:
        from aiokafka import ConsumerRebalanceListener

        class RebalanceListener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, given: list) -> None:
                assigned([(tp.topic, tp.partition) for tp in given])

            def on_partitions_revoked(self, revoked: list) -> None:
                return

        self._consumer.subscribe(topics, listener=RebalanceListener())

    def subscribe(self, topics: list[str]) -> None:
        async def subscribe() -> None:
            self._subscribe(topics)

        self._run(subscribe())

    def poll(self) -> None:
        self._run(self._consumer.getmany(timeout_ms=100))

    def rejoin(self) -> None:
        async def rejoin() -> None:
            self._consumer._coordinator.request_rejoin()

        self._run(rejoin())

    def close(self) -> None:
        self._run(self._consumer.stop())


class Java:
    def __init__(self, settings: Settings) -> None:
        import jpype

        jpype.startJVM(
            settings.jvm,
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xmx128m",
            "-Xrs",
            "--enable-native-access=ALL-UNNAMED",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            classpath=list(settings.jars),
        )
        self._jpype = jpype
        deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        values = {
            "bootstrap.servers": settings.bootstrap,
            "group.id": settings.group,
            "client.id": settings.client_id,
            "key.deserializer": deserializer,
            "value.deserializer": deserializer,
            "session.timeout.ms": settings.session_timeout_ms,
            "heartbeat.interval.ms": settings.heartbeat_interval_ms,
            "max.poll.interval.ms": settings.max_poll_interval_ms,
            "metadata.max.age.ms": settings.metadata_max_age_ms,
            "reconnect.backoff.max.ms": 500,
        }
        if settings.instance_id:
            values["group.instance.id"] = settings.instance_id
        properties = jpype.JClass("java.util.Properties")()
        for name, value in values.items():
            properties.put(name, str(value))
        self._consumer = jpype.JClass("org.apache.kafka.clients.consumer.KafkaConsumer")(properties)
        self._wait = jpype.JClass("java.time.Duration").ofMillis(100)
        self.subscribe(settings.topics)

    def subscribe(self, topics: list[str]) -> None:
        @self._jpype.JImplements("org.apache.kafka.clients.consumer.ConsumerRebalanceListener")
        class RebalanceListener:
            @self._jpype.JOverride
            def onPartitionsAssigned(self, given: list) -> None:
                assigned([(str(tp.topic()), int(tp.partition())) for tp in given])

            @self._jpype.JOverride
            def onPartitionsRevoked(self, _: object) -> None:
                return

            @self._jpype.JOverride
            def onPartitionsLost(self, _: object) -> None:
                return

        names = self._jpype.JClass("java.util.Arrays").asList(topics)
        self._consumer.subscribe(names, RebalanceListener())

    def poll(self) -> None:
        self._consumer.poll(self._wait)

    def rejoin(self) -> None:
        self._consumer.enforceRebalance("because the test says so")

    def close(self) -> None:
        self._consumer.close()


KINDS = {"confluent": Confluent, "kafka_python": KafkaPython, "aiokafka": Aiokafka, "java": Java}


def main(library: str, settings: Settings) -> None:
    orders: queue.Queue[list] = queue.Queue()
    consumer = KINDS[library](settings)
    interrupt: Callable[[], object] = lambda: None  # noqa: E731
    if library == "kafka_python":
        interrupt = lambda: os.kill(os.getpid(), signal.SIGUSR1)  # noqa: E731

    def listen() -> None:
        for line in sys.stdin:
            orders.put(json.loads(line))
            interrupt()

    threading.Thread(target=listen, daemon=True).start()
    say("started")
    while True:
        try:
            word, *arguments = orders.get_nowait()
        except queue.Empty:
            consumer.poll()
            continue
        getattr(consumer, word)(*arguments)
        say("done", word=word)
        if word == "close":
            return


if __name__ == "__main__":
    main(sys.argv[1], Settings(**json.loads(sys.argv[2])))
