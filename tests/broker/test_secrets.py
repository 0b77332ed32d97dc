"""Secrets: of a daemon with secrets everywhere, none is in what it writes, stores or answers."""

import os
import subprocess
import sys
from pathlib import Path

import trustme
from confluent_kafka.admin import AdminClient, ConfigResource
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.broker.daemon import TEST_SETTINGS
from tests.conftest import StartDaemon

MARK = "Kept-Secret"
"""A part of each secret."""

PROVIDERS = {
    "config.providers": "file,env",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_alice="{MARK}-plain" user_bob="{MARK}-plain2";'
)


def secret_settings(folder: Path) -> dict[str, str]:
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
    secrets = folder / "secrets.properties"
    secrets.write_text(f"token={MARK}-token\nkey={words}\njaas={JAAS}\n")
    own = "listener.name.sasl_ssl."
    return {
        **TEST_SETTINGS,
        **PROVIDERS,
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        f"{own}ssl.keystore.type": "PEM",
        f"{own}ssl.keystore.location": str(folder / "store.pem"),
        f"{own}ssl.key.password": f"${{file:{secrets}:key}}",
        f"{own}sasl.enabled.mechanisms": "PLAIN",
        f"{own}plain.sasl.jaas.config": f"${{file:{secrets}:jaas}}",
        "rollcall.admin.token": f"${{file:{secrets}:token}}",
        "rollcall.admin.users": "${env:ADMIN_USERS}",
        "rollcall.log.level": "debug",
    }


def test_no_secret_leaves_a_daemon(start_daemon: StartDaemon, tmp_path: Path) -> None:
    settings = secret_settings(tmp_path)
    os.environ["ADMIN_USERS"] = f"alice:{MARK}-users"
    try:
        daemon = start_daemon(settings, listen=None)
        command = daemon.command()
        shown = [
            subprocess.run(
                [command[0], "config", *command[2:], *option],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout
            for option in ((), ("--json",))
        ]
    finally:
        del os.environ["ADMIN_USERS"]
    for text in shown:
        assert MARK not in text
        assert "[hidden]" in text
    assert all(MARK not in daemon.get(path)[1] for path in ("/metrics", "/api/lag", "/"))

    client = AdminClient({"bootstrap.servers": daemon.bootstrap})
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    entries = client.describe_configs([resource])[resource].result(60)
    for name in ("rollcall.admin.token", "rollcall.admin.users", "ssl.key.password"):
        assert entries[name].is_sensitive
        assert entries[name].value is None
    assert MARK not in repr([(e.value, e.synonyms) for e in entries.values()])

    assert daemon.stop() == 0
    assert MARK not in daemon.log()
    stored = [path for path in daemon.data_dir.rglob("*") if path.is_file()]
    assert stored
    assert [path for path in stored if MARK.encode() in path.read_bytes()] == []


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
