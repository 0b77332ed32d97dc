"""Commands that ask the admin port: odd ids, odd answers, and nobody there: one line each.

`Service` stands in for what listens at the address: a Rollcall with odd names in its answers, or
something else that speaks JSON, HTTP or nothing of the kind.
"""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self

import pytest

from tests.cli.test_command import Command
from tests.cli.test_command import rollcall as rollcall  # noqa: PLC0414  a fixture

EVIL = "a\x1b[31mred\nline\u202eeslaer"
SHOWN = "a\\x1b[31mred\\nline\\u202eeslaer"
COMMANDS = ("lag", "why", "history", "verdicts")

MEMBER = {
    "member_id": EVIL, "group_instance_id": None, "client_id": EVIL, "client_host": "/h",
    "host": "/h",
}  # fmt: skip
PARTITION = {
    "topic": EVIL, "partition": 0, "committed_offset": 1, "log_end_offset": 3, "lag": 2,
    "seconds": 1.0, "seconds_exact": True, "consumed_per_second": None, "produced_per_second": None,
    "catch_up_seconds": None, "verdict": "OK", "note": "lost", "note_words": EVIL, "member": MEMBER,
}  # fmt: skip
ROLLCALL = {
    "/api/lag?group": {
        "group": EVIL, "state": "Stable", "verdict": "OK", "lag": 2, "seconds_max": 1.0, "at_ms": 1,
        "catch_up_seconds": None, "partitions": [PARTITION],
    },
    "/api/lag?limit": {
        "at_ms": 1, "groups_total": 1,
        "groups": [{
            "group": EVIL, "state": "Stable", "members": 1, "partitions": 1, "lag": 2, "lag_max": 2,
            "seconds_max": 1.0, "verdict": "OK",
        }],
    },
    "/api/rebalances": {
        "group": EVIL, "state": "Stable", "generation": 1, "members": 1, "waiting": None,
        "verdicts": [f"Verdict x: {EVIL}."], "waiting_story": [f"waits for {EVIL}"],
        "rebalances": [], "stories": [[f"Cause: {EVIL} joined"]],
    },
    "/api/history": {
        "group": EVIL,
        "events": [
            {"at": "now", "type": "member_joined", "text": EVIL, "who": MEMBER, "reason": EVIL},
            {"at": "now", "type": "offsets_moved", "text": EVIL, "by": "commit", "asker": MEMBER,
             "changes": [{"topic": EVIL, "partition": 0, "old": 1, "new": 2}]},
        ],
    },
    "/api/verdicts": {
        "at_ms": 1, "verdicts_total": 1,
        "verdicts": [{
            "group": EVIL, "verdict": "stuck_group", "subject": None, "since_ms": 1,
            "summary": f"it waits for {EVIL}", "remedy": f"ask {EVIL}", "evidence": {},
        }],
    },
}  # fmt: skip


class Service:
    """Answers every GET with this: by the beginning of its path, or always the same."""

    def __init__(self, answers: object, status: int = 200) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                said = answers
                if answers is ROLLCALL:
                    said = next(
                        answer for at, answer in ROLLCALL.items() if self.path.startswith(at)
                    )
                body = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of one who closes each connection, as a Kafka port does to HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            try:
                while True:
                    server.accept()[0].close()
            except OSError:
                return

        thread = threading.Thread(target=hang_up)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "words",
    [
        ("lag",), ("lag", EVIL), ("why", EVIL), ("history", EVIL), ("history", EVIL, "--offsets"),
        ("verdicts",), ("verdicts", EVIL),
    ],
)  # fmt: skip
def test_what_is_not_printable_is_escaped_for_people(
    rollcall: Command, words: tuple[str, ...]
) -> None:
    with Service(ROLLCALL) as service:
        done = rollcall(*words, "--admin", service.address)
        exact = rollcall(
            *(word for word in words if word != "--offsets"), "--json", "--admin", service.address
        )
    assert done.exit_code == (1 if words[0] == "verdicts" else 0)
    assert not {char for char in done.out if not char.isprintable()} - {"\n"}
    assert "line\\u202e" in done.out.replace("\n", "")
    # JSON is exact, and escapes in a way of its own.
    assert "\x1b" not in exact.out
    if words[0] != "why":
        assert json.dumps(EVIL)[1:-1] in exact.out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_group_id_that_is_not_utf_8_is_wrong_usage(rollcall: Command, command: str) -> None:
    refused = rollcall(command, "\udcff", "--admin", "127.0.0.1:1")
    assert (refused.exit_code, refused.out) == (2, "")
    assert refused.err == f"rollcall {command}: group '\\udcff' is not UTF-8\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"groups": 3},
        {"verdicts": "ok"},
        {"status": "green"},
        [],
        7,
        None,
        b"hello",
        b"\xff",
        b"",
    ],
)
def test_another_service_is_no_rollcall(rollcall: Command, command: str, answer: object) -> None:
    with Service(answer) as service:
        refused = rollcall(command, "g", "--admin", service.address)
        assert (refused.exit_code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert f"the program at {service.address} is not Rollcall" in refused.err


@pytest.mark.parametrize("status", [404, 500])
def test_the_errors_of_another_service_are_not_ours(rollcall: Command, status: int) -> None:
    with Service(b"<html>not here</html>", status) as service:
        refused = rollcall("verdicts", "--admin", service.address)
        assert (refused.exit_code, refused.err.count("\n")) == (2, 1)
        assert (
            f"the program at {service.address} is not Rollcall (it answers {status}" in refused.err
        )


def test_a_port_that_hangs_up_is_no_rollcall(rollcall: Command, silent: str) -> None:
    refused = rollcall("why", "g", "--admin", silent)
    assert (refused.exit_code, refused.err.count("\n")) == (2, 1)
    assert f"the program at {silent} is not Rollcall (it closes the connection)" in refused.err


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_group_is_wrong_input(rollcall: Command, command: str) -> None:
    with Service({"error": "there is no group 'x\x1b'"}, 404) as service:
        refused = rollcall(command, "x", "--admin", service.address)
    assert (refused.exit_code, refused.err) == (2, "rollcall: there is no group 'x\\x1b'\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_there_says_what_to_do(rollcall: Command, command: str) -> None:
    refused = rollcall(command, "g", "--admin", "127.0.0.1:1")
    assert (refused.exit_code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith("rollcall: no daemon answers at 127.0.0.1:1: start it (")
    assert "rollcall serve" in refused.err
    assert "--admin" in refused.err
