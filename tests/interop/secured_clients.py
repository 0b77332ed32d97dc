"""Secured clients: a message is written, read in a group and committed, by one library each.

`Access` says how a client comes in. A client goes on for some seconds, with a message each quarter
of a second, and answers how many it read. It raises `Refused` where the library reports that its
authentication or its rights failed. Go and Java are programs, of secured_programs/.
"""

import asyncio
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, KafkaError, Producer
from kafka.net.sasl.oauth import AbstractTokenProvider as PythonTokenProvider

from tests.interop.go_programs import go_program
from tests.interop.kafka_tools import require_kafka_tools

TOPIC = "orders"
TIMEOUT_S = 30.0
PAUSE_S = 0.25
PROGRAMS = Path(__file__).with_name("secured_programs")
REFUSED = 3
"""The exit code of a program."""


class Refused(Exception):
    """The library's own words."""


@dataclass(frozen=True)
class Access:
    """How a client comes in. `token` is a JWT, for OAUTHBEARER; `token_file` has the same one."""

    bootstrap: str
    protocol: str
    authorities: Path
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    token_file: Path | None = None
    certificate: Path | None = None  # with its key

    def context(self) -> ssl.SSLContext | None:
        if not self.protocol.endswith("SSL"):
            return None
        context = ssl.create_default_context(cafile=str(self.authorities))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        return context

    def as_json(self, group: str, seconds: float) -> str:
        """For a program."""
        return json.dumps(
            {
                "bootstrap": self.bootstrap,
                "protocol": self.protocol,
                "authorities": str(self.authorities),
                "mechanism": self.mechanism,
                "user": self.user,
                "password": self.password,
                "token": self.token,
                "token_url": "" if self.token_file is None else self.token_file.as_uri(),
                "certificate": str(self.certificate or ""),
                "topic": TOPIC,
                "group": group,
                "seconds": seconds,
            }
        )


def values(group: str, seconds: float) -> Iterator[bytes]:
    """The first at once, the others in their time."""
    ends_s = time.monotonic() + seconds
    yield group.encode()
    count = 0
    while time.monotonic() < ends_s:
        time.sleep(PAUSE_S)
        count += 1
        yield f"{group} {count}".encode()


def librdkafka(access: Access, group: str, seconds: float) -> int:
    faults: list[KafkaError] = []
    settings: dict[str, object] = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.protocol,
        "ssl.ca.location": str(access.authorities),
        "error_cb": faults.append,
    }
    if access.mechanism:
        settings["sasl.mechanism"] = access.mechanism
    if access.token:
        settings["oauth_cb"] = lambda _config: (access.token, time.time() + 600)
    elif access.mechanism:
        settings |= {"sasl.username": access.user, "sasl.password": access.password}
    if access.certificate is not None:
        settings |= {
            "ssl.certificate.location": str(access.certificate),
            "ssl.key.location": str(access.certificate),
        }

    def check() -> None:
        for fault in faults:
            if fault.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
                raise Refused(fault.str())

    def write(value: bytes) -> None:
        producer.produce(TOPIC, value)
        deadline = time.monotonic() + TIMEOUT_S
        while producer.flush(0.1):
            check()
            assert time.monotonic() < deadline, faults

    def read_back(value: bytes) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            check()
            if message is None:
                continue
            fault = message.error()
            if fault is not None:
                if fault.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    raise Refused(fault.str())
                continue
            if message.value() == value:
                consumer.commit(message, asynchronous=False)
                return
        raise AssertionError(f"no message: {faults}")

    producer = Producer(settings)
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    count = 0
    try:
        for value in values(group, seconds):
            write(value)
            read_back(value)
            count += 1
    finally:
        consumer.close()
    return count


class _PythonToken(PythonTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def kafka_python(access: Access, group: str, seconds: float) -> int:
    settings: dict[str, object] = {
        "bootstrap_servers": access.bootstrap,
        "security_protocol": access.protocol,
        "ssl_context": access.context(),
    }
    if access.mechanism:
        settings["sasl_mechanism"] = access.mechanism
    if access.token:
        settings["sasl_oauth_token_provider"] = _PythonToken(access.token)
    elif access.mechanism:
        settings |= {
            "sasl_plain_username": access.user,
            "sasl_plain_password": access.password,
        }
    clients: list[kafka.KafkaProducer | kafka.KafkaConsumer] = []
    count = 0
    try:
        producer = kafka.KafkaProducer(**settings, max_block_ms=int(TIMEOUT_S * 1_000))
        clients.append(producer)
        consumer = kafka.KafkaConsumer(
            TOPIC, group_id=group, auto_offset_reset="earliest", **settings
        )
        clients.append(consumer)
        for value in values(group, seconds):
            producer.send(TOPIC, value).get(TIMEOUT_S)
            _read_back(consumer, value)
            count += 1
    except (
        kafka.errors.SaslAuthenticationFailedError,
        kafka.errors.GroupAuthorizationFailedError,
        kafka.errors.KafkaTimeoutError,
    ) as refused:
        raise Refused(repr(refused)) from refused
    finally:
        for client in clients:
            client.close()
    return count


def _read_back(consumer: kafka.KafkaConsumer, value: bytes) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        records = consumer.poll(200)
        if any(record.value == value for of_one in records.values() for record in of_one):
            consumer.commit()
            return
    raise AssertionError("no message")


class _AioToken(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def aiokafka_client(access: Access, group: str, seconds: float) -> int:
    return asyncio.run(_aiokafka(access, group, seconds))


async def _aiokafka(access: Access, group: str, seconds: float) -> int:
    settings: dict[str, object] = {
        "bootstrap_servers": access.bootstrap,
        "security_protocol": access.protocol,
        "ssl_context": access.context(),
    }
    if access.mechanism:
        settings["sasl_mechanism"] = access.mechanism
    if access.token:
        settings["sasl_oauth_token_provider"] = _AioToken(access.token)
    elif access.mechanism:
        settings |= {
            "sasl_plain_username": access.user,
            "sasl_plain_password": access.password,
        }
    producer = aiokafka.AIOKafkaProducer(**settings)
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **settings
    )
    count = 0
    try:
        await producer.start()
        ends_s = time.monotonic() + seconds
        while not count or time.monotonic() < ends_s:
            value = f"{group} {count}".encode()
            await producer.send_and_wait(TOPIC, value)
            if not count:
                await consumer.start()
            async with asyncio.timeout(TIMEOUT_S):
                async for message in consumer:
                    if message.value == value:
                        break
                await consumer.commit()
            count += 1
            await asyncio.sleep(PAUSE_S)
    except (
        aiokafka.errors.AuthenticationFailedError,
        aiokafka.errors.KafkaConnectionError,
        aiokafka.errors.GroupAuthorizationFailedError,
    ) as refused:
        raise Refused(repr(refused)) from refused
    finally:
        await consumer.stop()
        await producer.stop()
    return count


def franz_go(access: Access, group: str, seconds: float) -> int:
    return _program([str(go_program(PROGRAMS / "franz_go"))], access, group, seconds)


def java(access: Access, group: str, seconds: float) -> int:
    tools = require_kafka_tools()
    jvm = tools.java.resolve().parents[1] / "lib" / "server" / "libjvm.so"
    jars = os.pathsep.join(map(str, tools.jars))
    command = [sys.executable, str(PROGRAMS / "java_client.py"), str(jvm), jars]
    return _program(command, access, group, seconds)


def _program(command: list[str], access: Access, group: str, seconds: float) -> int:
    done = subprocess.run(
        [*command, access.as_json(group, seconds)],
        capture_output=True,
        text=True,
        timeout=seconds + 4 * TIMEOUT_S,
        check=False,
    )
    if done.returncode == REFUSED:
        raise Refused(done.stderr)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


LIBRARIES: dict[str, Callable[[Access, str, float], int]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka_client,
    "java": java,
    "franz-go": franz_go,
}
