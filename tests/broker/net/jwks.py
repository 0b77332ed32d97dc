"""JWKS: signing keys and tokens for tests, and a server that has their public keys."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def rsa_key(name: str = "one", bits: int = 2_048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, bits)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public(key: SigningKey, algorithm: str, **members: object) -> dict[str, object]:
    """The public key as a member of a key set."""
    text = get_default_algorithms()[algorithm].to_jwk(key.public_key())
    return {**json.loads(text), **members}


def key_set(*members: object) -> bytes:
    return json.dumps({"keys": list(members)}).encode()


def claims(**changed: object) -> dict[str, object]:
    """Those of a good token; None removes one."""
    good = {"sub": "alice", "iat": int(time()), "exp": int(time()) + 600, "scope": "a b"}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(
    payload: dict[str, object], key: SigningKey | None = None, algorithm: str = "RS256", **header
) -> str:
    """`header` may change the fields of the header; None removes one."""
    fields = {"kid": "one", **header}
    present = {name: value for name, value in fields.items() if value is not None}
    return jwt.encode(payload, key or rsa_key(), algorithm, headers=present)


class JwksServer:
    """What it answers can be changed; `requests` counts."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.status = 200
        self.headers: dict[str, str] = {}
        self.requests = 0
        self.asked = Event()
        self.url = ""


@contextmanager
def jwks_server(content: bytes) -> Iterator[JwksServer]:
    state = JwksServer(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests += 1
            self.send_response(state.status)
            for name, value in state.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(state.content)
            state.asked.set()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
