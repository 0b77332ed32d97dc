"""Secrets: of a daemon with secrets everywhere, none is in what it writes, stores or answers."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import trustme
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.broker.net.jwks import claims, key_set, public, rsa_key, signed
from tests.conftest import StartDaemon
from tests.ports import held_ports

ROOT = Path(__file__).parents[2]
MARK = "Kept-Secret"
"""A part of each secret."""

GROUP = "billing"
TOPIC = "orders"

PROVIDERS = {
    "config.providers": "file,env",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_alice="{MARK}-plain" user_bob="{MARK}-plain2";'
)


def secret_settings(folder: Path, ports: list[int]) -> dict[str, str]:
    """TLS with an encrypted key, users of PLAIN, a token and users of the admin port."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    words = f"{MARK}-key"
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(words.encode())
    )
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    (folder / "store.pem").write_bytes(encrypted + chain)
    (folder / "ca.pem").write_bytes(authority.cert_pem.bytes())
    (folder / "jwks.json").write_bytes(key_set(public(rsa_key(), "RS256", kid="one")))
    secrets = folder / "secrets.properties"
    secrets.write_text(f"token={MARK}-token\nkey={words}\njaas={JAAS}\n")
    own = "listener.name.sasl_ssl."
    return {
        **TEST_SETTINGS,
        **PROVIDERS,
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},SASL_SSL://127.0.0.1:{ports[1]}",
        f"{own}ssl.keystore.type": "PEM",
        f"{own}ssl.keystore.location": str(folder / "store.pem"),
        f"{own}ssl.key.password": f"${{file:{secrets}:key}}",
        f"{own}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        f"{own}sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
        f"{own}plain.sasl.jaas.config": f"${{file:{secrets}:jaas}}",
        "rollcall.admin.token": f"${{file:{secrets}:token}}",
        "rollcall.admin.users": "${env:ADMIN_USERS}",
        "rollcall.log.level": "debug",
        "rollcall.audit.log": str(folder / "audit.log"),
    }


def admin_paths() -> list[str]:
    """Of each page and API of the admin port, about the group and the topic of the test."""
    sources = [path.read_text() for path in (ROOT / "console").glob("*.py")]
    paths = {path for text in sources for path in re.findall(r'web\.get\(f?"(/[^"]*)"', text)}
    assert {"/api/group", "/api/history", "/console/groups/{_ANYTHING}"} <= paths
    answered_at_once = paths - {"/api/events", "/console/assets/{digest}/{file}"}
    named = [re.sub(r"\{\w+\}", GROUP, path) for path in answered_at_once]
    return [*named, "/console/", *(f"{path}?group={GROUP}&topic={TOPIC}" for path in named)]


def ask(daemon: Daemon, path: str) -> str:
    request = urllib.request.Request(
        f"http://{daemon.admin}{path}", headers={"Authorization": f"Bearer {MARK}-token"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as refused:
        if refused.code not in (400, 404):
            raise
        return refused.read().decode()


def rollcall(*words: str) -> str:
    """What a command shows."""
    program = str(Path(sys.executable).with_name("rollcall"))
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def use_secrets(daemon: Daemon, port: int, authorities: Path, token: str) -> None:
    """A group that commits over SASL, users that are made, and secrets that are refused."""
    plain = {"bootstrap.servers": daemon.bootstrap}
    secured = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authorities),
        "sasl.username": "alice",
    }

    def of_user(mechanism: str, password: str) -> dict[str, str]:
        return {**secured, "sasl.mechanism": mechanism, "sasl.password": f"{MARK}-{password}"}

    def of_token(text: str) -> dict[str, object]:
        answer = (text, time.time() + 600)
        return {**secured, "sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _config: answer}

    admin = AdminClient(plain)
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(60)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion("alice", info, f"{MARK}-scram".encode())
    admin.alter_user_scram_credentials([upsertion])["alice"].result(60)
    for access in (of_user("PLAIN", "plain"), of_user("SCRAM-SHA-256", "scram"), of_token(token)):
        consumer = Consumer({**access, "group.id": GROUP})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 5)], asynchronous=False)
        consumer.close()
    for access in (
        of_user("PLAIN", "mistyped"),
        of_user("SCRAM-SHA-256", "mistyped"),
        of_token(f"{token}{MARK}"),
    ):
        faults: list[KafkaError] = []
        refused = AdminClient({**access, "error_cb": faults.append, "log_level": 0})
        while not any(fault.code() == KafkaError._AUTHENTICATION for fault in faults):
            refused.poll(0.1)
    for name in ("ssl.keystore.password", "listener.name.sasl_ssl.plain.sasl.jaas.config"):
        entry = ConfigEntry(name, f"{MARK}-dynamic", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        with suppress(KafkaException):
            admin.incremental_alter_configs([resource])[resource].result(60)


def test_no_secret_leaves_a_daemon(start_daemon: StartDaemon, tmp_path: Path) -> None:
    environment = {
        "ADMIN_USERS": f"alice:{MARK}-users",
        "ROLLCALL_ADMIN_TOKEN": f"{MARK}-token",
    }
    os.environ.update(environment)
    token = signed(claims(sub="alice"))
    secrets = (MARK, token.rpartition(".")[2])
    try:
        with held_ports(2) as ports:
            daemon = start_daemon(secret_settings(tmp_path, ports), listen=None)
        use_secrets(daemon, ports[1], tmp_path / "ca.pem", token)
        command = daemon.command()
        shown = {
            " ".join(words): rollcall(*words)
            for words in (
                ["config", *command[2:]],
                ["config", *command[2:], "--json"],
                *([name, GROUP, "--admin", daemon.admin] for name in ("history", "why", "lag")),
            )
        }
    finally:
        for name in environment:
            del os.environ[name]
    shown |= {path: ask(daemon, path) for path in admin_paths()}
    assert sum("[hidden]" in text for text in shown.values()) == 2
    assert GROUP in shown[f"/api/history?group={GROUP}&topic={TOPIC}"]

    client = AdminClient({"bootstrap.servers": daemon.bootstrap})
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    entries = client.describe_configs([resource])[resource].result(60)
    for name in ("rollcall.admin.token", "rollcall.admin.users", "ssl.key.password"):
        assert entries[name].is_sensitive
        assert entries[name].value is None
    shown["configs"] = repr([(e.value, e.synonyms) for e in entries.values()])
    (credentials,) = client.describe_user_scram_credentials(["alice"]).values()
    shown["users"] = repr(credentials.result(60).scram_credential_infos)

    assert daemon.stop() == 0
    shown["scram list"] = rollcall("scram", "list", "--data-dir", str(daemon.data_dir))
    shown["log"] = daemon.log()
    shown["audit"] = (tmp_path / "audit.log").read_text()
    assert shown["audit"].count("authentication failed") >= 3
    assert "IncrementalAlterConfigs" in shown["audit"]
    stored = [path for path in daemon.data_dir.rglob("*") if path.is_file()]
    assert stored
    shown |= {str(path): path.read_bytes().decode("latin-1") for path in stored}
    leaks = [place for place, text in shown.items() if any(word in text for word in secrets)]
    assert leaks == []
    # The verifiers of SCRAM are as good as a password for who tries many: only in their file.
    (of_scram,) = (path for path in stored if b"stored_key" in path.read_bytes())
    verifiers = re.findall(r"(?:stored|server)_key=([^,\"]+)", shown[str(of_scram)])
    assert len(verifiers) == 2
    leaks = [
        place
        for place, text in shown.items()
        if place != str(of_scram) and any(verifier in text for verifier in verifiers)
    ]
    assert leaks == []


def test_a_refused_start_quotes_no_secret(tmp_path: Path) -> None:
    rollcall = str(Path(sys.executable).with_name("rollcall"))
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"a={MARK}\nusers={MARK}\n")
    pairs = [f"{name}={value}" for name, value in PROVIDERS.items()]
    for wrong in (
        f"rollcall.admin.users=${{file:{secrets}:users}}",
        f"node.id=${{file:{secrets}:a}}",
        f"listeners=${{file:{secrets}:a}}",
        f"rollcall.admin.listener=${{file:{secrets}:a}}",
        f"log.cleanup.policy=${{file:{secrets}:a}}",
        f"rollcall.admin.token=${{file:{secrets}:b}}",
    ):
        options = [word for pair in [*pairs, wrong] for word in ("--set", pair)]
        ended = subprocess.run(
            [rollcall, "serve", "--data-dir", str(tmp_path / "data"), *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 2, wrong
        assert ended.stderr.count("\n") == 1
        assert wrong.partition("=")[0] in ended.stderr
        assert MARK not in ended.stderr + ended.stdout
