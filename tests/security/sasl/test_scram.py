"""SCRAM: the vectors of RFC 7677, users that do not exist, and what no log may show."""

import json
from base64 import b64decode
from collections import Counter
from hashlib import pbkdf2_hmac, sha512
from hmac import digest
from pathlib import Path

import pytest

from broker.loop.ids import new_scram_nonce
from security.sasl.exchange import InvalidCredentials, SaslFailure
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    CredentialShape,
    CredentialShapes,
    ScramCredential,
    base_36,
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


def made_up(user: str, *others: ScramCredential) -> ScramCredential:
    """A credential for `user`, who does not exist, where there are others."""
    return made_up_credential(SCRAM_SHA_256, user, b"a secret", CredentialShapes(others))


def server(**users: ScramCredential) -> ScramServer:
    return ScramServer(
        SCRAM_SHA_256,
        users.get,
        lambda: RFC_NONCE,
        lambda user: made_up(user, *users.values()),
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
    assert int(salt, 36).bit_length() <= 130  # as Kafka's tools make them
    exchange = server()
    exchange.evaluate(b"n,,n=nobody,r=abc")
    with pytest.raises(InvalidCredentials) as failed:
        exchange.evaluate(f"c=biws,r=abc{RFC_NONCE},p={'A' * 43}=".encode())
    assert failed.value.reason == "there is no such user"


def test_unknown_users_have_the_shapes_of_known_ones() -> None:
    """Iterations, and the form of the salt: as frequent as they are, with another salt for each."""
    of_kafka = scram_credential(SCRAM_SHA_256, "a", b"1s9k4ak3ns8j4lk2n7s0d9fk3a", 8_192)
    of_others = [
        scram_credential(SCRAM_SHA_256, "a", bytes([number]) * 64, 10_000) for number in range(3)
    ]
    found = [made_up(f"nobody{number}", of_kafka, *of_others) for number in range(400)]
    counts = Counter(map(CredentialShape.of, found))
    shape_of_kafka, shape_of_others = CredentialShape(8_192, 0), CredentialShape(10_000, 64)
    assert set(counts) == {shape_of_kafka, shape_of_others}
    assert 50 < counts[shape_of_kafka] < 150
    assert len({each.salt for each in found}) == len(found)


def test_another_shape_of_a_user_who_is_unknown_has_another_salt() -> None:
    """As if the password had been changed; with the same shape nothing changes."""
    weak, strong = (scram_credential(SCRAM_SHA_256, "a", b"1a", each) for each in (4_096, 16_384))
    assert made_up("nobody", weak) == made_up("nobody", weak, weak)
    assert made_up("nobody", weak).salt != made_up("nobody", strong).salt
    assert made_up("nobody", strong).iterations == 16_384


def test_the_shape_of_a_salt_of_kafkas_tools() -> None:
    salts = [new_scram_nonce().encode() for _ in range(50)]
    shapes = {CredentialShape.of(ScramCredential(salt, b"", b"", 4_096)) for salt in salts}
    assert shapes == {CredentialShape(4_096, 0)}
    assert base_36(36**3 + 35) == "100z"
    assert base_36(0) == "0"


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
