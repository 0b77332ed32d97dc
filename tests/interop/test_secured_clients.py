"""Secured clients: each library over each mechanism and protocol, with users, rights and without.

Three cases run always; all of them with SECURED_CLIENTS=1 (`make long-secured-clients`).
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from config.jaas import PLAIN_MODULE
from tests.broker.daemon import Daemon
from tests.broker.net.jwks import claims, key_set, public, rsa_key, signed
from tests.broker.net.tls_client import authority, write_key_store
from tests.interop.kafka_tools import require_kafka_tools
from tests.interop.secured_clients import LIBRARIES, Access, Refused
from tests.ports import held_ports

IS_LONG = "SECURED_CLIENTS" in os.environ
LONG = pytest.mark.skipif(not IS_LONG, reason="make long-secured-clients")

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = "hunter2"
USERS = f'{PLAIN_MODULE} required user_alice="{PASSWORD}" user_eve="{PASSWORD}";'
ALWAYS = {
    ("librdkafka", "SCRAM-SHA-512", "SASL_SSL"),
    ("kafka-python", "PLAIN", "SASL_PLAINTEXT"),
    ("aiokafka", "", "SSL"),
}


class Secured:
    """A daemon with all kinds of listeners, users and rights."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self.folder = folder
        self.ports = dict(zip(LISTENERS, ports, strict=True))
        values = write_key_store(folder / "server.pem")
        write_key_store(folder / "client.pem", "client.test", common_name="alice")
        (folder / "ca.pem").write_bytes(authority().cert_pem.bytes())
        (folder / "jwks.json").write_bytes(key_set(public(rsa_key(), "RS256", kid="one")))
        self.daemon = Daemon(
            folder,
            {
                "listeners": ",".join(f"{n}://127.0.0.1:{p}" for n, p in self.ports.items()),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": values.ssl_keystore_location,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(folder / "ca.pem"),
                "ssl.client.auth": "requested",
                "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
                "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
                "sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:alice;User:ANONYMOUS",
                "group.initial.rebalance.delay.ms": "0",
            },
        )
        self.daemon.listen = None

    def start(self) -> None:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            command = [str(Path(sys.executable).with_name("rollcall")), "scram", "add", "alice"]
            command += ["--data-dir", str(self.daemon.data_dir), "--mechanism", mechanism]
            command += ["--password-env", "ALICE"]
            environment = {**os.environ, "ALICE": PASSWORD}
            subprocess.run(command, check=True, timeout=60, env=environment)
        self.daemon.start()

    def access(self, protocol: str, mechanism: str = "", user: str = "alice") -> Access:
        is_token = mechanism == "OAUTHBEARER"
        return Access(
            f"localhost:{self.ports[protocol]}",
            protocol,
            self.folder / "ca.pem",
            mechanism,
            user,
            PASSWORD,
            signed(claims(sub=user)) if is_token else "",
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with held_ports(len(LISTENERS)) as ports:
        made = Secured(tmp_path_factory.mktemp("secured"), ports)
        made.daemon.data_dir.mkdir(parents=True, exist_ok=True)
        made.daemon.start()
        made.daemon.stop()
        made.start()
        yield made
        assert PASSWORD not in made.daemon.log()
        made.daemon.close()


def cases() -> Iterator[object]:
    over_sasl = itertools.product(LIBRARIES, MECHANISMS, ("SASL_PLAINTEXT", "SASL_SSL"))
    over_ssl = ((library, "", "SSL") for library in LIBRARIES)
    for case in (*over_sasl, *over_ssl):
        yield pytest.param(*case, marks=() if case in ALWAYS else LONG, id="-".join(case))


@pytest.mark.parametrize(("library", "mechanism", "protocol"), list(cases()))
def test_a_group(secured: Secured, library: str, mechanism: str, protocol: str) -> None:
    access = secured.access(protocol, mechanism)
    if protocol == "SSL":
        access = replace(access, certificate=secured.folder / "client.pem")
    group = f"{library}-{mechanism}-{protocol}"
    assert LIBRARIES[library](access, group) == group
    joined = [line for line in secured.daemon.log().splitlines() if f"group_id={group} " in line]
    assert any("User:alice" in line for line in joined), joined


@LONG
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_a_wrong_password(secured: Secured, library: str, mechanism: str) -> None:
    access = replace(secured.access("SASL_SSL", mechanism), password="wrong")
    with pytest.raises(Refused):
        LIBRARIES[library](access, f"wrong-{library}-{mechanism}")
    assert "authentication failed" in secured.daemon.log()


@LONG
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_user_without_rights_on_the_group(secured: Secured, library: str) -> None:
    tools = require_kafka_tools()
    server = ("--bootstrap-server", f"localhost:{secured.ports['PLAINTEXT']}")
    allow = ("--add", "--allow-principal", "User:eve", "--operation", "All", "--topic", "*")
    done = tools.run("org.apache.kafka.tools.AclCommand", *server, *allow)
    assert done.exit_code == 0, done.err
    with pytest.raises(Refused):
        LIBRARIES[library](secured.access("SASL_PLAINTEXT", "PLAIN", "eve"), f"eve-{library}")


@LONG
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_java_client(secured: Secured, mechanism: str, tmp_path: Path) -> None:
    tools = require_kafka_tools()
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    login = f"org.apache.kafka.common.security.{kind}LoginModule"
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={login} required username="alice" password="{PASSWORD}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.folder / 'ca.pem'}\n"
    )
    server = ("--bootstrap-server", f"localhost:{secured.ports['SASL_SSL']}")
    topic = ("--topic", f"java-{mechanism.lower()}")
    written = tools.run(
        "org.apache.kafka.tools.ConsoleProducer",
        *server, *topic, "--command-config", config, stdin="hello\n",
    )  # fmt: skip
    assert written.exit_code == 0, written.err
    read = tools.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *server, *topic, "--command-config", config, "--from-beginning",
        "--group", f"java-{mechanism}", "--max-messages", "1", "--timeout-ms", "30000",
    )  # fmt: skip
    assert read.out.strip() == "hello", read.err
