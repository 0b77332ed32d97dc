"""Secured listeners of a whole daemon: what a start refuses, and stores that are changed."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from config.jaas import PLAIN_MODULE
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.names import ErrorCode
from tests.broker.net.test_authentication import token
from tests.broker.net.tls_client import authority, client_context, tls_client, write_key_store
from tests.broker.shell import Client
from tests.conftest import StartDaemon
from topics.config_resources import ConfigOperation, ConfigResourceType

ROLLCALL = str(Path(sys.executable).with_name("rollcall"))
USERS = f'{PLAIN_MODULE} required user_alice="hunter2";'
PREFIX = "listener.name.sasl_ssl."


def settings(store: Path, **other: str) -> dict[str, str]:
    return {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": "PLAIN",
        f"{PREFIX}plain.sasl.jaas.config": USERS,
        **other,
    }


async def logged_in(port: int) -> Client:
    client = await tls_client(port, client_context())
    await client.call(SaslHandshakeRequest("PLAIN"), 1)
    await client.call(token(b"\0alice\0hunter2"))
    return client


def serial(client: Client) -> object:
    return client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]


async def alter(client: Client, name: str, value: str) -> IncrementalAlterConfigsResponse:
    config = IncrementalAlterableConfig(name, ConfigOperation.SET, value)
    resource = IncrementalAlterConfigsResource(ConfigResourceType.BROKER, "1", [config])
    answer = await client.call(IncrementalAlterConfigsRequest([resource]), 1)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return answer


def test_a_group_over_sasl_and_tls(start_daemon: StartDaemon, tmp_path: Path) -> None:
    write_key_store(tmp_path / "server.pem")
    (tmp_path / "ca.pem").write_bytes(authority().cert_pem.bytes())
    daemon = start_daemon(settings(tmp_path / "server.pem"), listen=None)
    client = {
        "bootstrap.servers": daemon.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "hunter2",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }
    producer = Producer(client)
    producer.produce("orders", b"first")
    assert producer.flush(60) == 0
    consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    (message,) = consumer.consume(1, 60)
    assert message.value() == b"first"
    consumer.commit(asynchronous=False)
    consumer.close()
    assert "hunter2" not in daemon.log()
    _, metrics = daemon.get("/metrics")
    ends = 'rollcall_certificate_expiry_timestamp_seconds{listener="SASL_SSL"} '
    (line,) = (line for line in metrics.splitlines() if line.startswith(ends))
    assert float(line.removeprefix(ends)) > time.time()


async def test_stores_are_changed_by_configs(start_daemon: StartDaemon, tmp_path: Path) -> None:
    first, second = tmp_path / "first.pem", tmp_path / "second.pem"
    write_key_store(first)
    write_key_store(second)
    daemon = start_daemon(settings(first), listen=None)
    client = await logged_in(daemon.port)
    before = serial(client)
    name = f"{PREFIX}ssl.keystore.location"

    (refused,) = (await alter(client, name, str(tmp_path / "none.pem"))).responses
    assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert "none.pem: No such file" in (refused.error_message or "")
    assert serial(await logged_in(daemon.port)) == before

    (taken,) = (await alter(client, name, str(second))).responses
    assert taken.error_code is ErrorCode.NONE, taken.error_message
    after = serial(await logged_in(daemon.port))
    assert after != before
    assert isinstance(await client.call(MetadataRequest(None)), MetadataResponse)

    await asyncio.to_thread(daemon.kill)
    daemon.listen = None
    await asyncio.to_thread(daemon.start)
    assert serial(await logged_in(daemon.port)) == after


async def test_clients_get_the_address_of_their_listener(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    write_key_store(tmp_path / "server.pem")
    advertised = "SASL_SSL://secured.test:1"
    daemon = start_daemon(
        settings(tmp_path / "server.pem", **{"advertised.listeners": advertised}), listen=None
    )
    client = await logged_in(daemon.port)
    answer = await client.call(MetadataRequest(None))
    assert isinstance(answer, MetadataResponse)
    (broker,) = answer.brokers
    assert (broker.host, broker.port) == ("secured.test", 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ssl.keystore.location": "/nowhere/a.pem"}, "ssl.keystore.location: /nowhere/a.pem: No"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "ssl.cipher.suites: suites of TLS 1.3"),
        ({"ssl.principal.mapping.rules": "RULE:("}, "ssl.principal.mapping.rules: Invalid rule"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms = GSSAPI"),
        ({"ssl.keystore.location": ""}, "required, because the listener SASL_SSL is SASL_SSL"),
    ],
)
def test_a_start_that_is_refused_says_why_in_one_line(
    tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    write_key_store(tmp_path / "server.pem")
    command = [ROLLCALL, "serve", "--data-dir", str(tmp_path / "data"), "--admin", ""]
    for key, value in {**settings(tmp_path / "server.pem"), **changes}.items():
        command += ["--set", f"{key}={value}"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1
    assert words in finished.stderr
    assert "hunter2" not in finished.stderr


def test_listen_and_listeners_are_one_thing() -> None:
    command = [ROLLCALL, "config", "--listen", ":1", "--set", "listeners=PLAINTEXT://:2"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 2
    assert finished.stderr == (
        "rollcall: --listen and --set listeners=... say the same: give one of them\n"
    )


def test_secrets_are_hidden(tmp_path: Path) -> None:
    command = [ROLLCALL, "config", "--set", "ssl.keystore.password=hunter2"]
    for option in ([], ["--json"]):
        finished = subprocess.run(
            [*command, *option], capture_output=True, text=True, timeout=60, check=True
        )
        assert "hunter2" not in finished.stdout + finished.stderr
        assert "[hidden]" in finished.stdout
    assert json.loads(finished.stdout)["ssl.keystore.password"]["value"] == "[hidden]"
