"""SCRAM client: our server lets it in, and it finds out servers that do not know the password."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from security.sasl.exchange import SaslFailure
from security.sasl.scram import ScramServer
from security.sasl.scram_client import ScramClient
from security.sasl.scram_credential import SCRAM_HASHES, scram_credential

SALT = b"some salt"


def server(mechanism: str, password: str) -> ScramServer:
    credential = scram_credential(mechanism, password, SALT, 4_096)
    return ScramServer(mechanism, lambda _user: credential, lambda: "server-nonce")


@pytest.mark.parametrize("mechanism", SCRAM_HASHES)
def test_a_client_and_a_server_that_know_a_password_trust_each_other(mechanism: str) -> None:
    client, peer = ScramClient(mechanism, "a=b,c", "secret", "nonce"), server(mechanism, "secret")
    final = client.final_message(peer.evaluate(client.first_message()))
    client.check_server(peer.evaluate(final))
    assert peer.principal_name == "a=b,c"


@given(password=st.text(min_size=1, max_size=40))
def test_any_password_is_proven(password: str) -> None:
    client, peer = (
        ScramClient("SCRAM-SHA-256", "amy", password, "nonce"),
        server("SCRAM-SHA-256", password),
    )
    final = client.final_message(peer.evaluate(client.first_message()))
    client.check_server(peer.evaluate(final))


def test_a_wrong_password_is_refused() -> None:
    client, peer = (
        ScramClient("SCRAM-SHA-256", "amy", "Secret", "nonce"),
        server("SCRAM-SHA-256", "secret"),
    )
    final = client.final_message(peer.evaluate(client.first_message()))
    with pytest.raises(SaslFailure):
        peer.evaluate(final)


@pytest.mark.parametrize(
    "server_first",
    [
        b"",
        b"\xff",
        b"m=ext,r=nonce-and-more,s=c2FsdA==,i=4096",
        b"r=other,s=c2FsdA==,i=4096",
        b"r=nonce,s=c2FsdA==,i=4096",  # it added nothing
        b"r=nonce-and-more,s=c2FsdA==,i=1",  # weak: the password could be guessed
        b"r=nonce-and-more,s=c2FsdA==,i=999999999",  # would take minutes
        b"r=nonce-and-more,s=?,i=4096",
    ],
)
def test_what_a_hostile_server_says_first_ends_the_exchange(server_first: bytes) -> None:
    client = ScramClient("SCRAM-SHA-256", "amy", "secret", "nonce")
    client.first_message()
    with pytest.raises(SaslFailure):
        client.final_message(server_first)


@pytest.mark.parametrize("server_final", [b"", b"v=", b"v=AAAA", b"e=other-error"])
def test_a_server_that_does_not_know_the_password_is_found_out(server_final: bytes) -> None:
    client = ScramClient("SCRAM-SHA-256", "amy", "secret", "nonce")
    with pytest.raises(SaslFailure):
        client.check_server(b"v=")  # before it was asked anything
    client.final_message(b"r=nonce-and-more,s=c2FsdA==,i=4096")
    with pytest.raises(SaslFailure):
        client.check_server(server_final)
