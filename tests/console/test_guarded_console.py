"""Guarded admin port: TLS, credentials and raw requests."""

import os
import re
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trustme

from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.conftest import StartDaemon

TOKEN = "t0ken-of-the-guarded-console"
SECRET = "pa55word-of-the-guarded-console"
TIMEOUT_S = 60
HOST = b"Host: localhost\r\n"
BEARER = b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
SETTINGS = {
    **TEST_SETTINGS,
    "rollcall.admin.token": TOKEN,
    "rollcall.admin.users": f"alice:{SECRET}",
}


def ask(daemon: Daemon, request: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """The whole answer; the connection must be closed after it, so ask for that."""
    host, _, port = daemon.admin.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as plain:
        sock = context.wrap_socket(plain, server_hostname="localhost") if context else plain
        sock.sendall(request)
        answer = b""
        while piece := sock.recv(65_536):
            answer += piece
        return answer


def get(target: str, *headers: bytes, method: str = "GET") -> bytes:
    line = f"{method} {target} HTTP/1.1\r\n".encode()
    return line + HOST + b"".join(headers) + b"Connection: close\r\n\r\n"


def status(answer: bytes) -> int:
    match = re.match(rb"HTTP/1\.[01] (\d{3}) ", answer)
    assert match is not None, answer[:200]
    return int(match[1])


@pytest.fixture
def guarded(start_daemon: StartDaemon) -> Daemon:
    return start_daemon(SETTINGS)


def test_credentials_open_the_pages(guarded: Daemon) -> None:
    assert status(ask(guarded, get("/metrics"))) == 401
    assert status(ask(guarded, get("/metrics", BEARER))) == 200
    assert status(ask(guarded, get("/livez"))) == 200
    refused = ask(guarded, get("/api/lag", BEARER.replace(b"t0k", b"T0k")))
    assert status(refused) == 401
    assert b'\r\nWWW-Authenticate: Bearer realm="rollcall", Basic realm="rollcall"\r\n' in refused
    assert b"group" not in refused
    log = guarded.log()
    assert "The admin port refused wrong credentials" in log
    assert TOKEN not in log
    assert SECRET not in log


def test_tricks_reach_no_page(guarded: Daemon) -> None:
    for target in ("//metrics", "/livez/../metrics", "/%2e%2e/metrics", "/livez%2f..%2fmetrics"):
        assert status(ask(guarded, get(target))) == 401, target
        assert status(ask(guarded, get(target, BEARER))) == 404, target
    for request in (
        b"GET http://localhost/metrics HTTP/1.1\r\n" + HOST + BEARER + b"Connection: close\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        assert status(ask(guarded, request)) == 400, request
    foreign = b"GET /livez HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert status(ask(guarded, foreign)) == 421
    origin = b"Origin: http://evil.example\r\n"
    assert status(ask(guarded, get("/livez", origin, method="POST"))) == 403
    assert status(ask(guarded, get("/livez", b"Sec-Fetch-Site: cross-site\r\n"))) == 403
    assert status(ask(guarded, get("/livez", b"Content-Length: 1000000000\r\n"))) == 413
    assert status(ask(guarded, get("/livez", method="POST"))) == 405


def test_no_header_is_made_of_a_request(guarded: Daemon) -> None:
    forged = "%0d%0aSet-Cookie:%20a=b"
    for target in (
        f"/livez?a={forged}",
        f"/api/lag?group={forged}",
        f"/api/group?group={forged}",
        f"/console/groups/{forged}",
        f"/console{forged}",
    ):
        heads = ask(guarded, get(target, BEARER)).partition(b"\r\n\r\n")[0]
        assert b"cookie" not in heads.lower()
    assert status(ask(guarded, get("/livez", b"A: b\x00c\r\n"))) == 400


def test_each_answer_has_the_security_headers(guarded: Daemon) -> None:
    for request in (get("/livez"), get("/metrics", BEARER), get("/metrics"), b"NONSENSE\r\n\r\n"):
        heads = ask(guarded, request).partition(b"\r\n\r\n")[0]
        assert b"\r\nX-Content-Type-Options: nosniff" in heads
        assert b"\r\nContent-Security-Policy: default-src 'none'" in heads
        assert b"\r\nServer: rollcall" in heads
        assert b"aiohttp" not in heads
        assert b"Access-Control" not in heads


def test_one_address_cannot_guess_in_parallel(guarded: Daemon) -> None:
    host, _, port = guarded.admin.rpartition(":")
    socks = [socket.create_connection((host, int(port)), TIMEOUT_S) for _ in range(8)]
    wrong = get("/metrics", b"Authorization: Bearer wrong\r\n")
    for sock in socks:
        sock.sendall(wrong)
    answers = sorted(status(sock.recv(65_536)) for sock in socks)
    for sock in socks:
        sock.close()
    assert answers == [401] * 4 + [429] * 4
    assert status(ask(guarded, get("/metrics", BEARER))) == 200


def test_commands_take_a_token_file_or_the_variables_of_the_daemon(
    guarded: Daemon, tmp_path: Path
) -> None:
    def lag(**variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [Path(sys.executable).with_name("rollcall"), "lag", "--admin", guarded.admin],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    refused = lag()
    assert refused.returncode == 2
    assert "asks for credentials: give --token-file FILE" in refused.stderr
    assert lag(ROLLCALL_ADMIN_TOKEN=TOKEN).returncode == 0
    assert lag(ROLLCALL_ADMIN_USERS=f"alice:{SECRET}").returncode == 0
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\nignored\n")
    assert lag(ROLLCALL_ADMIN_TOKEN_FILE=str(token)).returncode == 0
    token.write_text("wrong")
    assert lag(ROLLCALL_ADMIN_TOKEN_FILE=str(token)).returncode == 2
    for unusable in (b"", b"\n", b"\xe9", b"a\x1bb"):
        token.write_bytes(unusable)
        refused = lag(ROLLCALL_ADMIN_TOKEN_FILE=str(token), ROLLCALL_ADMIN_TOKEN=TOKEN)
        assert (refused.returncode, "has no token" in refused.stderr) == (2, True)
    token.unlink()
    assert "No such file" in lag(ROLLCALL_ADMIN_TOKEN_FILE=str(token)).stderr


def test_tls_and_a_certificate_that_changes(start_daemon: StartDaemon, tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"

    def place(issuer: trustme.CA) -> None:
        issued = issuer.issue_cert("localhost")
        chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())

    def trusting(issuer: trustme.CA) -> ssl.SSLContext:
        context = ssl.create_default_context()
        issuer.configure_trust(context)
        return context

    def until(issuer: trustme.CA) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                assert status(ask(daemon, get("/livez"), trusting(issuer))) == 200
            except ssl.SSLError:
                assert time.monotonic() < deadline
                time.sleep(0.2)
            else:
                return

    place(authority)
    tls = {"rollcall.admin.ssl.certificate": str(chain), "rollcall.admin.ssl.key": str(key)}
    daemon = start_daemon({**SETTINGS, **tls})
    assert status(ask(daemon, get("/metrics", BEARER), trusting(authority))) == 200
    old = trusting(authority)
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, OSError)):
        ask(daemon, get("/livez"), old)

    place(other)
    until(other)
    key.write_text("no key\n")
    deadline = time.monotonic() + TIMEOUT_S
    while "has changed and cannot be loaded" not in daemon.log():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    until(other)


@pytest.mark.parametrize("content", [None, "no certificate\n"])
def test_a_certificate_that_cannot_be_loaded_stops_the_start(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "chain.pem"
    if content is not None:
        path.write_text(content)
    daemon = Daemon(tmp_path, {"rollcall.admin.ssl.certificate": str(path)})
    ended = subprocess.run(
        daemon.command(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"rollcall: rollcall.admin.ssl.certificate: {path}")
