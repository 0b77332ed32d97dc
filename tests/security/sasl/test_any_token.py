"""Any token: whatever a client sends, an exchange goes on, ends, or raises SaslFailure."""

from hypothesis import given
from hypothesis import strategies as st

from security.sasl.exchange import SaslFailure, SaslServer
from security.sasl.oauthbearer import InvalidToken, OauthBearerServer, ValidToken
from security.sasl.plain import PlainServer
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    CredentialShapes,
    made_up_credential,
    parse_credential,
    scram_credential,
)

USERS = {"user": "password", "\udc80": "\udcff", "empty": ""}
CREDENTIALS = {
    mechanism: {"user": scram_credential(mechanism, "password", b"salt", 4096)}
    for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)
}

# Bytes at random are refused at the first one; pieces of right messages come further.
PIECES = st.sampled_from(
    [
        *(
            b"n,,",
            b"n,a=user,",
            b"n=user,",
            b"r=abc",
            b"abcnonce",
            b"c=biws,",
            b",p=",
            b"\x01",
            b"=",
        ),
        *(b"auth=Bearer ", b"token", b"x=y", b"\0user\0password", b"\0", b"user", b"=2C", b"=3D"),
        *(b",tokenauth=true", b",x=y", b",", b"A" * 43 + b"=", b"A" * 86 + b"==", b"\xff", b"\n"),
    ]
)
TOKENS = st.one_of(
    st.binary(max_size=200), st.lists(st.one_of(PIECES, st.binary(max_size=2))).map(b"".join)
)


def validate(token: str) -> ValidToken:
    if "x" in token:
        raise InvalidToken("it has an x")
    return ValidToken(token, 1)


def servers() -> list[SaslServer]:
    return [
        PlainServer(USERS),
        OauthBearerServer(validate),
        *(
            ScramServer(
                mechanism,
                of_user.get,
                lambda: "nonce",
                lambda user, mechanism=mechanism: made_up_credential(
                    mechanism, user, b"", CredentialShapes()
                ),
            )
            for mechanism, of_user in CREDENTIALS.items()
        ),
    ]


@given(st.lists(TOKENS, max_size=4))
def test_any_tokens(tokens: list[bytes]) -> None:
    for server in servers():
        try:
            for token in tokens:
                server.evaluate(token)
                if server.is_complete:
                    break
        except SaslFailure as failure:
            is_explained = bool(failure.message and failure.reason)
        else:
            is_explained = True
        assert is_explained
        assert bool(server.principal_name) == server.is_complete


@given(TOKENS)
def test_any_client_final_message(token: bytes) -> None:
    for server in servers()[2:]:
        server.evaluate(b"n,,n=user,r=abc")
        try:
            server.evaluate(token)
        except SaslFailure:
            continue
        raise AssertionError("a proof was guessed")


@given(st.text(alphabet="salt=,_keyiros0123456789+/ABC\u00e4\u0661"))
def test_any_text_of_a_credential(text: str) -> None:
    try:
        parse_credential(SCRAM_SHA_256, text)
    except ValueError:
        return
    raise AssertionError("64 bytes of keys do not come about by chance")
