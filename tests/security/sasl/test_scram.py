"""SCRAM: the vectors of RFC 7677, users that do not exist, and what no log may show."""

import json
from base64 import b64decode
from hashlib import pbkdf2_hmac, sha512
from hmac import digest
from pathlib import Path

import pytest

from security.sasl.exchange import InvalidCredentials, SaslFailure
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramCredential,
    format_credential,
    made_up_credential,
    parse_credential,
    scram_credential,
)

# RFC 7677, section 3: user "user", password "pencil".
RFC_SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_CHALLENGE = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
RFC_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

CREDENTIAL = scram_credential(SCRAM_SHA_256, "pencil", RFC_SALT, 4096)


def server(**users: ScramCredential) -> ScramServer:
    return ScramServer(
        SCRAM_SHA_256,
        users.get,
        lambda: RFC_NONCE,
        lambda user: made_up_credential(SCRAM_SHA_256, user, b"secret of this server"),
    )


def test_the_exchange_of_rfc_7677() -> None:
    exchange = server(user=CREDENTIAL)
    assert exchange.evaluate(RFC_FIRST) == RFC_CHALLENGE
    assert (exchange.is_complete, exchange.principal_name) == (False, "")
    assert exchange.evaluate(RFC_FINAL) == RFC_SIGNATURE
    assert (exchange.is_complete, exchange.principal_name) == (True, "user")
    with pytest.raises(SaslFailure):
        exchange.evaluate(RFC_FINAL)


def test_another_password_fails_at_the_proof() -> None:
    exchange = server(user=scram_credential(SCRAM_SHA_256, "pencil2", RFC_SALT, 4096))
    assert exchange.evaluate(RFC_FIRST) == RFC_CHALLENGE
    with pytest.raises(InvalidCredentials) as failed:
        exchange.evaluate(RFC_FINAL)
    assert failed.value.reason == "wrong password"
    assert failed.value.message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256"
    )
    assert failed.value.client_message(is_reauthentication=True) == (
        "Authentication failed during re-authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256"
    )
    assert not exchange.is_complete
    with pytest.raises(SaslFailure):  # also with the right proof: one attempt each
        exchange.evaluate(RFC_FINAL)


def test_an_unknown_user_fails_as_with_a_wrong_password() -> None:
    challenges = [server().evaluate(b"n,,n=nobody,r=abc") for _ in range(2)]
    assert challenges[0] == challenges[1]  # the salt of a user is always the same
    assert server().evaluate(b"n,,n=other,r=abc") != challenges[0]
    salt = b64decode(challenges[0].split(b",")[1].removeprefix(b"s="))
    assert len(salt) == 26
    assert salt.isalnum()
    exchange = server()
    exchange.evaluate(b"n,,n=nobody,r=abc")
    with pytest.raises(InvalidCredentials) as failed:
        exchange.evaluate(f"c=biws,r=abc{RFC_NONCE},p={'A' * 43}=".encode())
    assert failed.value.reason == "there is no such user"


def test_another_authorization_id_does_not_reveal_users() -> None:
    texts = set()
    for users in ({}, {"user": CREDENTIAL}):
        with pytest.raises(SaslFailure) as failed:
            server(**users).evaluate(b"n,a=other,n=user,r=abc")
        texts.add(failed.value.client_message())
    assert len(texts) == 1


def test_a_credential_with_few_iterations_is_refused() -> None:
    weak = scram_credential(SCRAM_SHA_256, "pencil", RFC_SALT, 4095)
    with pytest.raises(InvalidCredentials):
        server(user=weak).evaluate(RFC_FIRST)


def test_sha_512_by_the_book() -> None:
    salted = pbkdf2_hmac("sha512", "pässword".encode(), b"salt", 5000)
    credential = scram_credential(SCRAM_SHA_512, "pässword", b"salt", 5000)
    assert credential.stored_key == sha512(digest(salted, b"Client Key", "sha512")).digest()
    assert credential.server_key == digest(salted, b"Server Key", "sha512")


def test_the_text_form() -> None:
    text = format_credential(CREDENTIAL)
    assert text.startswith("salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert parse_credential(SCRAM_SHA_256, text) == CREDENTIAL
    with pytest.raises(ValueError, match="64 bytes"):
        parse_credential(SCRAM_SHA_512, text)


@pytest.mark.parametrize(
    "changed",
    [
        ("salt=", "salt"),
        ("salt=", "pepper="),
        ("iterations=4096", "iterations=0"),
        ("iterations=4096", "iterations=-1"),
        ("iterations=4096", "iterations=" + "9" * 5000),
        ("iterations=4096", "iterations=4096,iterations=4096"),
        ("stored_key=", "stored_key=!"),
        ("stored_key=", "stored_key=AAAA"),
        ("server_key=", "server_key=\u00e4"),
    ],
)
def test_a_damaged_text_is_refused_without_quoting_it(changed: tuple[str, str]) -> None:
    text = format_credential(CREDENTIAL)
    with pytest.raises(ValueError, match=r".") as refused:
        parse_credential(SCRAM_SHA_256, text.replace(*changed))
    assert not any(part in str(refused.value) for part in text.split("=") if len(part) > 20)


def test_a_credential_does_not_show_its_keys() -> None:
    assert repr(CREDENTIAL) == str(CREDENTIAL) == "ScramCredential(4096 iterations)"


def test_the_recorded_credentials_can_be_read() -> None:
    golden = Path(__file__).parent / "golden" / "exchanges.jsonl"
    for line in golden.read_text().splitlines():
        exchange = json.loads(line)
        if "credential" in exchange:
            read = parse_credential(exchange["mechanism"], exchange["credential"])
            assert format_credential(read) == exchange["credential"]
