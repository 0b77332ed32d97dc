"""Token keys: which keys of a set count, and when a file or a URL is read again."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.net import token_keys
from broker.net.token_keys import BadKeySet, TokenKeys, parse_key_set
from config.security_keys import SecurityKeys
from tests.broker.net.jwks import JwksServer, ec_key, jwks_server, key_set, public, rsa_key

ONE = public(rsa_key(), "RS256", kid="one")
TWO = public(rsa_key("two"), "RS256", kid="two")

Opened = Callable[..., TokenKeys]
WAIT_S = 30


@pytest.fixture
def opened() -> Iterator[Opened]:
    started: list[TokenKeys] = []

    def make(url: str, report: Callable = lambda *_: None, **values: object) -> TokenKeys:
        configured = {f"sasl_oauthbearer_jwks_endpoint_{k}": v for k, v in values.items()}
        keys = TokenKeys(SecurityKeys(sasl_oauthbearer_jwks_endpoint_url=url, **configured))
        keys.load()
        keys.start(report)
        started.append(keys)
        return keys

    yield make
    for keys in started:
        keys.close()


@pytest.fixture
def server() -> Iterator[JwksServer]:
    with jwks_server(key_set(ONE)) as running:
        yield running


def has(keys: TokenKeys, key_id: str | None) -> bool:
    return any(keys.find(key_id, "RS256"))


def wait_for(condition: Callable[[], bool], server_asked: Event | None = None) -> None:
    """Until the thread has done it: it has no other end to wait for."""
    pause = server_asked or Event()
    for _ in range(WAIT_S * 100):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(
    ("member", "algorithms"),
    [
        (ONE, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ({**ONE, "alg": "PS256"}, {"PS256"}),
        ({**ONE, "use": "sig"}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        (public(ec_key(), "ES256"), {"ES256"}),
    ],
)
def test_the_algorithms_of_a_key(member: dict, algorithms: set[str]) -> None:
    (key,) = parse_key_set(key_set(member))
    assert key.by_algorithm.keys() == algorithms


@pytest.mark.parametrize(
    "member",
    [
        {**ONE, "use": "enc"},
        {**ONE, "alg": "HS256"},
        {**ONE, "alg": "RSA-OAEP"},
        {**ONE, "kid": 1},
        {**ONE, "n": "!"},
        {**ONE, "n": None},
        {**ONE, "d": "AQAB"},
        {"kty": "oct", "k": "AAAA", "kid": "one"},
        {"kty": "oct", "k": "AAAA", "alg": "RS256"},
        {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AAAA", "y": "AAAA"},
        {"kty": "RSA"},
        {},
        [],
        None,
        public(rsa_key("small", 1_024), "RS256"),
    ],
)
def test_a_key_that_cannot_be_used_is_left_out(member: object) -> None:
    keys = parse_key_set(key_set(member, TWO))
    assert [key.key_id for key in keys] == ["two"]
    with pytest.raises(BadKeySet, match="no public key"):
        parse_key_set(key_set(member))


@given(
    st.one_of(st.binary(max_size=50), st.sampled_from([b"[]", b"{}", b'{"keys": 1}', b"[" * 10**5]))
)
def test_any_bytes_are_a_key_set_or_not(content: bytes) -> None:
    with pytest.raises(BadKeySet):
        parse_key_set(content)


def test_the_number_of_keys_is_limited() -> None:
    members = [{**ONE, "alg": "RS256", "kid": str(n)} for n in range(token_keys.KEYS_MAX + 1)]
    assert len(parse_key_set(key_set(*members))) == token_keys.KEYS_MAX


def test_a_file_is_read_again_when_it_changes(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_keys, "FILE_CHECK_S", 0.01)
    file = tmp_path / "the keys.json"
    file.write_bytes(key_set(ONE))
    reports: list[str] = []
    keys = opened(file.as_uri(), lambda words, fields: reports.append(words))
    assert has(keys, "one")
    assert not has(keys, "two")

    new = tmp_path / "new"
    new.write_bytes(key_set(TWO))
    os.replace(new, file)
    wait_for(lambda: has(keys, "two"))
    assert not has(keys, "one")
    assert reports == []

    file.write_bytes(b"no keys")
    wait_for(lambda: bool(reports))
    assert has(keys, "two")  # those known so far count
    file.write_bytes(key_set(ONE, TWO))
    wait_for(lambda: has(keys, "one"))
    assert len(reports) == 2


def test_a_file_without_keys_prevents_the_start(tmp_path: Path, opened: Opened) -> None:
    file = tmp_path / "keys.json"
    with pytest.raises(BadKeySet, match="No such file"):
        opened(file.as_uri())
    file.write_bytes(b"{}")
    with pytest.raises(BadKeySet):
        opened(file.as_uri())
    file.write_bytes(b" " * (token_keys.KEY_SET_MAX_BYTES + 1))
    with pytest.raises(BadKeySet, match="larger"):
        opened(file.as_uri())


def test_a_url_is_read_at_the_start_and_regularly(server: JwksServer, opened: Opened) -> None:
    keys = opened(server.url, refresh_ms=20)
    assert has(keys, "one")
    server.content = key_set(TWO)
    wait_for(lambda: has(keys, "two"))


def test_an_unknown_key_makes_it_read_early_but_not_often(
    server: JwksServer, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = opened(server.url)  # read once an hour
    server.content = key_set(TWO)
    for n in range(100):
        keys.ask(f"key {n}")
    assert server.requests == 1  # too early

    monkeypatch.setattr(token_keys, "EARLY_READ_PAUSE_S", 0.0)
    keys.ask("k" * (token_keys.KEY_ID_MAX + 1))
    assert not keys._is_asked
    keys.ask("two")
    wait_for(lambda: has(keys, "two"))
    assert server.requests == 2


def test_a_url_that_fails_is_tried_again_and_reported_once(
    server: JwksServer, opened: Opened
) -> None:
    server.status = 500
    reports: list[str] = []
    keys = opened(
        server.url,
        lambda words, fields: reports.append(words),
        retry_backoff_ms=1,
        retry_backoff_max_ms=10,
    )
    wait_for(lambda: server.requests > 3)
    assert not has(keys, "one")
    assert len(reports) == 1
    server.status = 200
    wait_for(lambda: has(keys, "one"))
    wait_for(lambda: len(reports) == 2)


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/x", "https://127.0.0.1:1/"])
def test_a_redirect_to_another_scheme_is_refused(
    server: JwksServer, opened: Opened, to: str
) -> None:
    server.status, server.headers = 302, {"Location": to}
    faults: list[dict] = []
    opened(server.url, lambda words, fields: faults.append(fields), retry_backoff_ms=60_000,
           retry_backoff_max_ms=60_000)  # fmt: skip
    assert faults[0]["keys"] == 0


def test_an_answer_without_end_is_cut(server: JwksServer, opened: Opened) -> None:
    server.content = b" " * (token_keys.KEY_SET_MAX_BYTES + 1)
    faults: list[dict] = []
    opened(server.url, lambda words, fields: faults.append(fields), retry_backoff_ms=60_000,
           retry_backoff_max_ms=60_000)  # fmt: skip
    assert "larger" in faults[0]["reason"]


def test_a_report_has_no_password_of_the_url(opened: Opened) -> None:
    faults: list[dict] = []
    opened("http://user:secret@127.0.0.1:1/keys?token=secret", lambda _, f: faults.append(f))
    assert "secret" not in str(faults)
