"""Secured clients: each library over each mechanism and protocol, with users, rights and without.

Three cases run always; all of them with SECURED_CLIENTS=1 (`make long-secured-clients`).
"""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from config.jaas import PLAIN_MODULE
from tests.broker.daemon import Daemon
from tests.broker.net.jwks import claims, key_set, public, rsa_key, signed
from tests.broker.net.tls_client import authority, write_key_store
from tests.interop.kafka_tools import require_kafka_tools
from tests.interop.secured_clients import LIBRARIES, Access, Refused
from tests.ports import held_ports

IS_LONG = "SECURED_CLIENTS" in os.environ
LONG = pytest.mark.skipif(not IS_LONG, reason="make long-secured-clients")

SHORT = "SHORT"
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    SHORT: "SASL_SSL",
}
"""Names and protocols. Sessions of SHORT end after SESSION_S."""

SESSION_S = 3
MEMBER_S = 10  # at least three sessions
AUTHENTICATES_AGAIN = {"librdkafka", "kafka-python", "java", "franz-go"}
"""The others lose their connection when the session ends, and connect again."""

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
        as_pkcs8(folder / "client.pem")
        (folder / "ca.pem").write_bytes(authority().cert_pem.bytes())
        (folder / "jwks.json").write_bytes(key_set(public(rsa_key(), "RS256", kid="one")))
        self.daemon = Daemon(
            folder,
            {
                "listeners": ",".join(f"{n}://127.0.0.1:{p}" for n, p in self.ports.items()),
                "listener.security.protocol.map": ",".join(map(":".join, LISTENERS.items())),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": values.ssl_keystore_location,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(folder / "ca.pem"),
                "ssl.client.auth": "requested",
                "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
                "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
                "listener.name.short.plain.sasl.jaas.config": USERS,
                "listener.name.short.connections.max.reauth.ms": str(SESSION_S * 1_000),
                "sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:alice;User:ANONYMOUS",
                "group.initial.rebalance.delay.ms": "0",
                "rollcall.log.format": "json",
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

    def access(self, listener: str, mechanism: str = "", user: str = "alice") -> Access:
        made = Access(
            f"localhost:{self.ports[listener]}",
            LISTENERS[listener],
            self.folder / "ca.pem",
            mechanism,
            user,
            PASSWORD,
        )
        if mechanism != "OAUTHBEARER":
            return made
        token = signed(claims(sub=user))
        token_file = self.folder / f"{user}.jwt"
        token_file.write_text(token)
        return replace(made, token=token, token_file=token_file)

    def expired_sessions(self) -> int:
        _, metrics = self.daemon.get("/metrics")
        found = re.search(r'^rollcall_\S+{cause="session expired"} (\d+)', metrics, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def lines_of(self, group: str) -> list[dict[str, str]]:
        """Of the log."""
        lines = (line for line in self.daemon.log().splitlines() if line.startswith("{"))
        return [line for line in map(json.loads, lines) if line.get("group_id") == group]


def as_pkcs8(store: Path) -> None:
    """The only form of a key that Java reads."""
    content = store.read_bytes()
    key, end, chain = content.partition(b"-----END EC PRIVATE KEY-----\n")
    key = load_pem_private_key(key + end, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    store.write_bytes(key + chain)


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
    assert LIBRARIES[library](access, group, 0) == 1
    assert "User:alice" in {line.get("principal") for line in secured.lines_of(group)}


@LONG
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_sessions_that_end_under_a_member(secured: Secured, library: str, mechanism: str) -> None:
    group = f"sessions-{library}-{mechanism}"
    before = secured.expired_sessions()
    read = LIBRARIES[library](secured.access(SHORT, mechanism), group, MEMBER_S)
    assert read > MEMBER_S
    expired = secured.expired_sessions() - before
    assert (expired == 0) == (library in AUTHENTICATES_AGAIN), expired
    # At its start kafka-python joins twice, the first time without the partitions of the topic.
    stable = [
        datetime.fromisoformat(line["timestamp"])
        for line in secured.lines_of(group)
        if line["event"].startswith("Stabilized group")
    ]
    assert stable[-1] - stable[0] < timedelta(seconds=SESSION_S), "the group has rebalanced"


@LONG
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_a_wrong_password(secured: Secured, library: str, mechanism: str) -> None:
    access = replace(secured.access("SASL_SSL", mechanism), password="wrong")
    with pytest.raises(Refused):
        LIBRARIES[library](access, f"wrong-{library}-{mechanism}", 0)
    assert "authentication failed" in secured.daemon.log()


@LONG
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_user_without_rights_on_the_group(secured: Secured, library: str) -> None:
    tools = require_kafka_tools()
    server = ("--bootstrap-server", f"localhost:{secured.ports['PLAINTEXT']}")
    allow = ("--add", "--allow-principal", "User:eve", "--operation", "All", "--topic", "*")
    done = tools.run("org.apache.kafka.tools.AclCommand", *server, *allow)
    assert done.exit_code == 0, done.err
    access = secured.access("SASL_PLAINTEXT", "PLAIN", "eve")
    with pytest.raises(Refused):
        LIBRARIES[library](access, f"eve-{library}", 0)
