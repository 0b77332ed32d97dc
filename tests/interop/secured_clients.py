"""Secured clients: one library each writes a message, reads it in a group and commits it.

`Access` says how a client comes in; each function says it in the words of its library, and raises
`Refused` where the library reports that its authentication or its rights failed.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, KafkaError, Producer
from kafka.net.sasl.oauth import AbstractTokenProvider as PythonTokenProvider

TOPIC = "orders"
TIMEOUT_S = 30.0


class Refused(Exception):
    """The library's own words."""


@dataclass(frozen=True)
class Access:
    """How a client comes in. `token` is a JWT, for OAUTHBEARER."""

    bootstrap: str
    protocol: str
    authorities: Path
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    certificate: Path | None = None  # with its key

    def context(self) -> ssl.SSLContext | None:
        if "SSL" not in self.protocol.removeprefix("SASL_"):
            return None
        context = ssl.create_default_context(cafile=str(self.authorities))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        return context


def librdkafka(access: Access, group: str) -> str:
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

    producer = Producer(settings)
    producer.produce(TOPIC, group.encode())
    deadline = time.monotonic() + TIMEOUT_S
    while producer.flush(0.1):
        check()
        assert time.monotonic() < deadline, faults
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
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
            if message.value() == group.encode():
                consumer.commit(message, asynchronous=False)
                return str(message.value().decode())
    finally:
        consumer.close()
    raise AssertionError(f"no message: {faults}")


class _PythonToken(PythonTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def kafka_python(access: Access, group: str) -> str:
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
    try:
        producer = kafka.KafkaProducer(**settings, max_block_ms=int(TIMEOUT_S * 1_000))
        producer.send(TOPIC, group.encode()).get(TIMEOUT_S)
        producer.close()
        consumer = kafka.KafkaConsumer(
            TOPIC,
            group_id=group,
            auto_offset_reset="earliest",
            consumer_timeout_ms=int(TIMEOUT_S * 1_000),
            **settings,
        )
    except (
        kafka.errors.SaslAuthenticationFailedError,
        kafka.errors.KafkaTimeoutError,
    ) as refused:
        raise Refused(repr(refused)) from refused
    try:
        for message in consumer:
            if message.value == group.encode():
                consumer.commit()
                return str(message.value.decode())
    except kafka.errors.GroupAuthorizationFailedError as refused:
        raise Refused(repr(refused)) from refused
    finally:
        consumer.close()
    raise AssertionError("no message")


class _AioToken(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def aiokafka_client(access: Access, group: str) -> str:
    return asyncio.run(_aiokafka(access, group))


async def _aiokafka(access: Access, group: str) -> str:
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
        TOPIC, group_id=group, auto_offset_reset="earliest", **settings
    )
    try:
        await producer.start()
        await producer.send_and_wait(TOPIC, group.encode())
        await consumer.start()
        async with asyncio.timeout(TIMEOUT_S):
            async for message in consumer:
                if message.value == group.encode():
                    await consumer.commit()
                    return str(message.value.decode())
    except (
        aiokafka.errors.AuthenticationFailedError,
        aiokafka.errors.KafkaConnectionError,
        aiokafka.errors.GroupAuthorizationFailedError,
    ) as refused:
        raise Refused(repr(refused)) from refused
    finally:
        await consumer.stop()
        await producer.stop()
    raise AssertionError("no message")


LIBRARIES: dict[str, Callable[[Access, str], str]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka_client,
}
