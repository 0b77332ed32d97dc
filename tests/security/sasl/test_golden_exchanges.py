"""Golden exchanges: our SASL servers answer what Kafka's own answer to the same messages.

Recorded by `golden/make.py`.
"""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from security.sasl.exchange import InvalidCredentials, SaslFailure, SaslServer
from security.sasl.oauthbearer import InvalidToken, OauthBearerServer, ValidToken
from security.sasl.plain import PlainServer
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import format_credential, scram_credential

LINES = (Path(__file__).parent / "golden" / "exchanges.jsonl").read_text().splitlines()
USERS = {"alice": "alice-secret", "a,b=c": "x=,y", "ä": "ü", "bob": "bób"}
SALT = b"0123456789abcdefghijklmnop"

# Kafka ignores a mandatory extension, and signs the message without it. RFC 5802: it must fail.
DIFFERENT = "n,,m=x,n=alice,r=abc"


def validate(token: str) -> ValidToken:
    if token != "good":
        raise InvalidToken("not good")
    return ValidToken("alice", 12345)


def server_of(exchange: dict) -> SaslServer:
    mechanism = exchange["mechanism"]
    if mechanism == "PLAIN":
        return PlainServer(USERS)
    if mechanism == "OAUTHBEARER":
        return OauthBearerServer(validate)
    credentials = {
        user: scram_credential(mechanism, password, SALT, 4096) for user, password in USERS.items()
    }
    return ScramServer(mechanism, credentials.get, lambda: nonce_of(exchange))


def nonce_of(exchange: dict) -> str:
    """What Kafka's server added to the client's nonce."""
    first, challenge = exchange["messages"][0], exchange["answers"][0]
    of_client = first.partition("r=")[2].partition(",")[0]
    return challenge.partition(",")[0].removeprefix("r=").removeprefix(of_client)


@pytest.mark.parametrize("line", LINES)
def test_an_exchange_goes_as_with_kafka(line: str) -> None:
    exchange = json.loads(line)
    server = server_of(exchange)
    if exchange["messages"][0] == DIFFERENT:
        with pytest.raises(InvalidCredentials):
            server.evaluate(DIFFERENT.encode())
        return
    for message, answer in zip(exchange["messages"], exchange["answers"], strict=False):
        token = message.encode("latin-1")
        if isinstance(answer, str):
            assert server.evaluate(token).decode("latin-1") == answer
            continue
        with pytest.raises(SaslFailure) as failed:
            server.evaluate(token)
        if answer["failed"] == "SaslAuthenticationException":
            assert failed.value.client_message() == answer["message"]
        else:  # Kafka sends nothing of another exception to the client
            assert isinstance(failed.value, InvalidCredentials)
    assert server.principal_name == (exchange["principal"] or "")
    assert server.is_complete == (exchange["principal"] is not None)


def test_the_recording_has_every_outcome() -> None:
    exchanges = [json.loads(line) for line in LINES]
    assert len(exchanges) > 400
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
        of_mechanism = [e for e in exchanges if e["mechanism"] == mechanism]
        assert any(e["principal"] for e in of_mechanism)
        assert any(isinstance(e["answers"][-1], dict) for e in of_mechanism)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_credential_is_kafkas(mechanism: str) -> None:
    recorded = next(e for e in map(json.loads, LINES) if e["mechanism"] == mechanism)
    credential = scram_credential(mechanism, "alice-secret", SALT, 4096)
    assert format_credential(credential) == recorded["credential"]
    assert b64encode(SALT).decode() in recorded["credential"]
