"""Securing a running server: the steps of docs/securing-a-running-server.md, with real clients."""

import re
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.broker.daemon import Daemon
from tests.broker.net.tls_client import authority, write_key_store
from tests.conftest import StartDaemon
from tests.interop.kafka_tools import KafkaTools, require_kafka_tools
from tests.ports import held_ports

ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ADMIN, BILLING = "the admin's password", "the password of billing"
EVERYTHING = ("--operation", "All", "--topic", "*", "--group", "*")
TIMEOUT_S = 60


class Clients:
    """A producer and the consumers of one group; a restart of the daemon is nothing to them."""

    def __init__(self, port: int, secrets: dict[str, str]) -> None:
        self.conf = {"bootstrap.servers": f"127.0.0.1:{port}", **secrets}

    def produce(self, value: str) -> None:
        producer = Producer(self.conf)
        producer.produce("orders", value.encode())
        assert producer.flush(TIMEOUT_S) == 0

    def consumer(self) -> Consumer:
        settings = {
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 500,
            "session.timeout.ms": 30_000,
        }
        consumer = Consumer({**self.conf, **settings})
        consumer.subscribe(["orders"])
        return consumer


def read(consumer: Consumer) -> str:
    """The next message, committed."""
    while True:
        (message,) = consumer.consume(1, TIMEOUT_S) or (None,)
        assert message is not None, "no message came"
        if message.error() is None:
            consumer.commit(message, asynchronous=False)
            return str(message.value().decode())


def generations(daemon: Daemon) -> list[str]:
    """Of the group, as they were stabilized."""
    return re.findall(r"Stabilized group billing generation (\d+) with", daemon.log())


def secrets(tmp_path: Path, user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }


def run(tools: KafkaTools, port: int, tmp_path: Path, main_class: str, *arguments: str) -> None:
    config = tmp_path / "admin.properties"
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={login} required username="admin" password="{ADMIN}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path / 'ca.pem'}\n"
    )
    server = ("--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(config))
    finished = tools.run(main_class, *server, *arguments)
    assert finished.exit_code == 0, finished.out + finished.err


def restart(daemon: Daemon, settings: dict[str, str]) -> None:
    assert daemon.stop() == 0
    daemon.settings = settings
    daemon.start()


def test_securing(start_daemon: StartDaemon, tmp_path: Path) -> None:
    tools = require_kafka_tools()
    write_key_store(tmp_path / "server.pem")
    (tmp_path / "ca.pem").write_bytes(authority().cert_pem.bytes())
    with held_ports(2) as ports:
        open_port, secured_port = ports
        listeners = (f"OPEN://127.0.0.1:{open_port}", f"SECURED://127.0.0.1:{secured_port}")
        common = {
            "listener.security.protocol.map": "OPEN:PLAINTEXT,SECURED:SASL_SSL",
            "group.initial.rebalance.delay.ms": "0",
        }
        daemon = start_daemon({"listeners": listeners[0], **common}, listen=None)
        anonymous = Clients(open_port, {})
        anonymous.produce("open")
        consumer = anonymous.consumer()
        assert read(consumer) == "open"
        assert generations(daemon) == ["1"]

        # The first user, then the second listener.
        assert daemon.stop() == 0
        (tmp_path / "admin").write_text(ADMIN)
        command = [str(Path(sys.executable).with_name("rollcall")), "scram", "add", "admin"]
        command += ["--data-dir", str(daemon.data_dir), "--password-file", str(tmp_path / "admin")]
        subprocess.run(command, check=True, timeout=TIMEOUT_S)
        secured = {
            **common,
            "listener.name.secured.ssl.keystore.type": "PEM",
            "listener.name.secured.ssl.keystore.location": str(tmp_path / "server.pem"),
            "listener.name.secured.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
        }
        both = {"listeners": ",".join(listeners), "allow.everyone.if.no.acl.found": "true"}
        daemon.settings = {**secured, **both}
        daemon.start()
        anonymous.produce("both")
        assert read(consumer) == "both"
        assert generations(daemon) == ["1"]  # the group has survived the restart

        # Users and rights.
        allow = ("--add", "--allow-principal")
        run(tools, secured_port, tmp_path, ACLS, *allow, "User:ANONYMOUS", *EVERYTHING)
        user = ("--alter", "--entity-type", "users", "--entity-name", "billing")
        password = f"SCRAM-SHA-512=[password={BILLING}]"
        run(tools, secured_port, tmp_path, CONFIGS, *user, "--add-config", password)
        rights = (*allow, "User:billing")
        group = ("--consumer", "--topic", "orders", "--group", "billing")
        run(tools, secured_port, tmp_path, ACLS, *rights, *group)
        run(tools, secured_port, tmp_path, ACLS, *rights, "--producer", "--topic", "orders")
        anonymous.produce("still open")
        assert read(consumer) == "still open"
        assert generations(daemon) == ["1"]

        # The client moves: it leaves, and joins on the other listener.
        billing = Clients(secured_port, secrets(tmp_path, "billing", BILLING))
        consumer.close()
        consumer = billing.consumer()
        billing.produce("moved")
        assert read(consumer) == "moved"
        moved = generations(daemon)

        # The open listener is closed.
        restart(daemon, {"listeners": listeners[1], **secured})
        remove = ("--remove", "--force", "--allow-principal", "User:ANONYMOUS")
        run(tools, secured_port, tmp_path, ACLS, *remove, *EVERYTHING)
        billing.produce("secured")
        assert read(consumer) == "secured"
        assert generations(daemon) == moved
        consumer.close()
    for secret in (ADMIN, BILLING):
        assert secret not in daemon.log()
