"""OAuth tokens: which are accepted, why others are refused, and who the client is then."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.net.oauth_tokens import OauthTokens
from config.security_keys import SecurityKeys
from security.sasl.exchange import SaslFailure
from security.sasl.oauthbearer import InvalidToken, OauthBearerServer
from tests.broker.net.jwks import claims, ec_key, ed_key, key_set, public, rsa_key, signed

Validator = Callable[..., OauthTokens]


@pytest.fixture
def tokens(tmp_path: Path) -> Validator:
    """Makes a validator of some configuration, with the keys of the tests."""
    file = tmp_path / "keys.json"
    file.write_bytes(
        key_set(
            public(rsa_key(), "RS256", kid="one"),
            public(rsa_key("other"), "RS256", kid="other", alg="RS512"),
            public(ec_key(), "ES256", kid="ec"),
            public(ed_key(), "EdDSA", kid="ed"),
        )
    )

    def make(**values: object) -> OauthTokens:
        configured = {f"sasl_oauthbearer_{name}": value for name, value in values.items()}
        return OauthTokens(
            SecurityKeys(sasl_oauthbearer_jwks_endpoint_url=file.as_uri(), **configured)
        )

    return make


def refusal(tokens: OauthTokens, token: str) -> str:
    with pytest.raises(InvalidToken) as refused:
        tokens.validate(token)
    return str(refused.value)


def test_a_good_token_names_the_user_and_its_end(tokens: Validator) -> None:
    payload = claims()
    valid = tokens().validate(signed(payload))
    assert valid.principal_name == "alice"
    assert valid.expires_at_ms == payload["exp"] * 1_000


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_a_key_without_an_algorithm_serves_all_of_its_kind(
    tokens: Validator, algorithm: str
) -> None:
    assert tokens().validate(signed(claims(), algorithm=algorithm)).principal_name == "alice"


def test_other_kinds_of_keys(tokens: Validator) -> None:
    found = tokens()
    assert found.validate(signed(claims(), ec_key(), "ES256", kid="ec"))
    assert found.validate(signed(claims(), ed_key(), "EdDSA", kid="ed"))
    assert found.validate(signed(claims(), rsa_key("other"), "RS512", kid="other"))


def test_a_key_with_an_algorithm_serves_no_other(tokens: Validator) -> None:
    token = signed(claims(), rsa_key("other"), "RS256", kid="other")
    assert refusal(tokens(), token) == "its key is not known"


def test_a_token_without_a_key_id_may_be_of_any_key(tokens: Validator) -> None:
    token = signed(claims(), rsa_key("other"), "RS512", kid=None)
    assert "kid" not in json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert tokens().validate(token).principal_name == "alice"


def test_a_token_of_another_key_is_refused(tokens: Validator) -> None:
    assert refusal(tokens(), signed(claims(), rsa_key("third"))) == "its signature is wrong"
    unknown = signed(claims(), rsa_key("third"), kid="third")
    assert refusal(tokens(), unknown) == "its key is not known"


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 1, ["RS256"], "HS256"])
def test_a_token_that_no_private_key_has_signed_is_refused(
    tokens: Validator, algorithm: object
) -> None:
    header = {"alg": algorithm, "kid": "one"}
    signed_part = f"{part(header)}.{part(claims())}"
    # HS256 with the public key as the secret: what a naive server accepts.
    pem = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    forged = hmac.new(pem, signed_part.encode(), hashlib.sha256).digest()
    for signature in ("", "AAAA", base64.urlsafe_b64encode(forged).decode().rstrip("=")):
        assert refusal(tokens(), f"{signed_part}.{signature}")


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"sub": " \t"},
        {"sub": 7},
        {"sub": ["alice"]},
        {"exp": int(time()) - 3_600},
        {"exp": "9999999999"},
        {"exp": True},
        {"exp": [1]},
        {"exp": -1},
        {"exp": float("inf")},
        {"iat": "1"},
        {"iat": -1},
        {"nbf": int(time()) + 3_600},
        {"aud": "orders"},
        {"scope": ""},
        {"scope": ["a", "a"]},
        {"scope": ["a", " "]},
        {"scope": ["a", 1]},
    ],
)
def test_a_token_with_bad_claims_is_refused(tokens: Validator, changed: dict) -> None:
    assert refusal(tokens(), signed(claims(**changed)))


@pytest.mark.parametrize(
    "changed",
    [
        lambda now: {"iat": int(now) + 3_600},
        lambda now: {"nbf": int(now) + 10},
        lambda now: {"exp": int(now) - 10},
        lambda now: {"scope": None},
        lambda now: {"scope": ["a", "b"]},
        lambda now: {"exp": now + 600.5},
        lambda now: {"jti": 1},
    ],
)
def test_claims_that_kafka_accepts(
    tokens: Validator, changed: Callable[[float], dict[str, object]]
) -> None:
    token = signed(claims(**changed(time())))  # now, not when the tests were collected
    assert tokens().validate(token).principal_name == "alice"


def test_a_far_end_is_the_year_9999(tokens: Validator) -> None:
    valid = tokens().validate(signed(claims(exp=10**30)))
    assert valid.expires_at_ms == 253_402_300_799_000


def test_the_audience(tokens: Validator) -> None:
    found = tokens(expected_audience=("kafka", "orders"))
    for audience in ("orders", ["x", "kafka"]):
        assert found.validate(signed(claims(aud=audience)))
    for audience in (None, "x", [], ["x"], 1):
        assert refusal(found, signed(claims(aud=audience)))


def test_the_issuer(tokens: Validator) -> None:
    found = tokens(expected_issuer="https://issuer.example")
    assert found.validate(signed(claims(iss="https://issuer.example")))
    for issuer in (None, "https://other.example"):
        assert refusal(found, signed(claims(iss=issuer)))
    assert tokens().validate(signed(claims(iss="https://other.example")))


def test_names_of_claims_and_the_clock_skew(tokens: Validator) -> None:
    found = tokens(sub_claim_name="email", scope_claim_name="scp", clock_skew_seconds=0)
    valid = found.validate(signed(claims(sub=1, email=" a@b ", scope=["a", "a"])))
    assert valid.principal_name == "a@b"
    assert refusal(found, signed(claims(email="a", scp=["a", "a"])))
    assert refusal(found, signed(claims(email="a", exp=int(time()) - 10)))


def test_critical_header_fields_are_refused(tokens: Validator) -> None:
    assert "critical" in refusal(tokens(), signed(claims(), crit=["exp"], exp=1))


def test_a_refusal_has_nothing_of_the_signature(tokens: Validator) -> None:
    found = tokens()
    for token in (signed(claims(sub="")), signed(claims(), rsa_key("third")), "a.b.c"):
        signature = token.split(".")[-1]
        assert len(signature) < 5 or signature[:10] not in refusal(found, token)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.one_of(
        st.text(max_size=60),
        st.builds(
            "{}.{}.{}".format,
            *(st.recursive(
                st.one_of(st.none(), st.text(max_size=5), st.integers(), st.floats()),
                lambda inner: st.dictionaries(
                    st.sampled_from(["alg", "kid", "typ", "crit", "exp", "sub", "b64"]), inner
                ),
                max_leaves=6,
            ).map(part) for _ in range(3)),
        ),
    )
)  # fmt: skip
def test_any_text_is_a_token_or_not(tokens: Validator, token: str) -> None:
    with pytest.raises(InvalidToken):
        tokens().validate(token)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.dictionaries(
    st.sampled_from(["sub", "exp", "iat", "nbf", "aud", "iss", "scope", "jti"]),
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
        st.lists(st.text(max_size=2), max_size=3), st.just({}),
    ),
))  # fmt: skip
def test_any_signed_claims(tokens: Validator, changed: dict) -> None:
    header, payload = {"alg": "EdDSA", "kid": "ed"}, {**claims(), **changed}
    body = f"{part(header)}.{part(payload)}"
    signature = base64.urlsafe_b64encode(ed_key().sign(body.encode())).decode().rstrip("=")
    try:
        valid = tokens().validate(f"{body}.{signature}")
    except InvalidToken:
        return
    assert valid.principal_name
    assert 0 < valid.expires_at_ms < 1 << 53


def test_the_exchange_with_a_real_token(tokens: Validator) -> None:
    server = OauthBearerServer(tokens().validate)
    payload = claims()
    token = f"n,,\x01auth=Bearer {signed(payload)}\x01\x01".encode()
    assert server.evaluate(token) == b""
    assert (server.principal_name, server.expires_at_ms) == ("alice", payload["exp"] * 1_000)

    server = OauthBearerServer(tokens(expected_issuer="x").validate)
    assert server.evaluate(token) == b'{"status":"invalid_token"}'
    with pytest.raises(SaslFailure, match="invalid_token"):
        server.evaluate(b"\x01")
