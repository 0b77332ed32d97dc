"""SASL against a running daemon: each mechanism with librdkafka, users that come and go."""

import os
from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from config.jaas import PLAIN_MODULE
from tests.broker.daemon import Daemon
from tests.broker.net.jwks import claims, key_set, public, rsa_key, signed

LISTENER = "listener.name.sasl_plaintext"
TIMEOUT_S = 20


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    keys = tmp_path / "keys.json"
    keys.write_bytes(key_set(public(rsa_key(), "RS256", kid="one")))
    daemon = Daemon(
        tmp_path,
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"{LISTENER}.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_admin="first";',
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        },
    )
    daemon.listen = None
    daemon.start()
    yield daemon
    daemon.close()


def client(daemon: Daemon, mechanism: str, user: str, password: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": daemon.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    )


def is_let_in(admin: AdminClient, timeout_s: float = TIMEOUT_S) -> bool:
    try:
        admin.list_topics(timeout=timeout_s)
    except KafkaException:
        return False
    return True


def change(daemon: Daemon, alteration: UserScramCredentialAlteration) -> None:
    admin = client(daemon, "PLAIN", "admin", "first")
    done = admin.alter_user_scram_credentials([alteration])
    done[alteration.user].result(TIMEOUT_S)


MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_a_user_of_scram_logs_in_until_it_is_deleted(daemon: Daemon, mechanism: str) -> None:
    assert not is_let_in(client(daemon, mechanism, "amy", "secret"), 1)
    info = ScramCredentialInfo(MECHANISMS[mechanism], 8_192)
    change(daemon, UserScramCredentialUpsertion("amy", info, b"secret", b"some salt"))
    amy = client(daemon, mechanism, "amy", "secret")
    assert is_let_in(amy)
    (described,) = amy.describe_user_scram_credentials(["amy"]).values()
    (found,) = described.result(TIMEOUT_S).scram_credential_infos
    assert (found.mechanism, found.iterations) == (MECHANISMS[mechanism], 8_192)
    assert not is_let_in(client(daemon, mechanism, "amy", "Secret"), 1)

    daemon.listen = None
    daemon.kill()
    daemon.start()
    assert is_let_in(client(daemon, mechanism, "amy", "secret"))
    change(daemon, UserScramCredentialDeletion("amy", MECHANISMS[mechanism]))
    assert not is_let_in(client(daemon, mechanism, "amy", "secret"), 1)


def test_a_signed_token_lets_a_client_in(daemon: Daemon) -> None:
    def client_of(token: str) -> AdminClient:
        admin = AdminClient(
            {
                "bootstrap.servers": daemon.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": lambda _: (token, time() + 600),
            }
        )
        admin.poll(0)  # calls oauth_cb
        return admin

    issuer = "https://issuer.example"
    assert is_let_in(client_of(signed(claims(iss=issuer))))
    assert not is_let_in(client_of(signed(claims(iss=issuer), rsa_key("third"))), 1)
    assert not is_let_in(client_of(signed(claims())), 1)


def test_a_key_set_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    daemon = Daemon(
        tmp_path,
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "missing").as_uri(),
        },
    )
    daemon.listen = None
    try:
        with pytest.raises(AssertionError):
            daemon.start()
        lines = (tmp_path / "daemon.log").read_text().splitlines()
        assert len(lines) == 1
        assert "sasl.oauthbearer.jwks.endpoint.url" in lines[0]
        assert os.strerror(2) in lines[0]
    finally:
        daemon.close()
