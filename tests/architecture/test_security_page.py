"""Security page: the limits that SECURITY.md promises are those of the code."""

from pathlib import Path
from typing import Final

import pytest

from broker.audit import folding
from broker.audit.entry import AuditKind
from broker.net.connection import UNREAD_BYTES_MAX
from broker.net.tls.channel import (
    EMPTY_RECORDS_MAX,
    PLAIN_BYTES_PER_EMPTY_RECORD,
    WAITING_BYTES_MAX,
)
from broker.net.tls.handshakes import HANDSHAKE_PASS_S
from config.keys import Config
from console import attempts, connections

ROOT: Final = Path(__file__).parents[2]
KIB: Final = 1_024
CONFIG: Final = Config()

PROMISED: Final = {
    "SASL frame": f"{CONFIG.sasl_server_max_receive_size // KIB} KB",
    "TLS handshake and authentication": (
        f"{CONFIG.rollcall_authentication_timeout_ms // 1_000} s; all handshakes together "
        f"{HANDSHAKE_PASS_S * 1_000:.0f} ms of each pass"
    ),
    "unread bytes of a connection": (
        f"{WAITING_BYTES_MAX // KIB} KB while its handshake waits, {UNREAD_BYTES_MAX // KIB} KB "
        "while a request waits"
    ),
    "TLS records without data": (
        f"{EMPTY_RECORDS_MAX}, and one more for each {PLAIN_BYTES_PER_EMPTY_RECORD // KIB} KB"
    ),
    "failed authentication": f"{CONFIG.connection_failed_authentication_delay_ms} ms",
    "lines of the log about it": (
        f"{folding.NAMED_PER_CLIENT_MAX[AuditKind.AUTHENTICATION_FAILED]} of a client and "
        f"{folding.AUDIT_ENTRIES_MAX:,} of all clients in {folding.AUDIT_INTERVAL_MS // 1_000} s"
    ),
    "admin port": (
        f"{connections.CONNECTIONS_MAX} connections, TLS handshakes among them; "
        f"{connections.LINE_BYTES_MAX / KIB:.0f} KB for a line of a head, "
        f"{connections.HEAD_BYTES_MAX // KIB} KB for a head, no body; "
        f"{connections.HEAD_TIMEOUT_S:.0f} s for the handshake and the first head; "
        f"wrong credentials: {attempts.OF_ONE_ADDRESS_MAX} at a time per address, "
        f"{attempts.DELAY_S:.0f} s"
    ),
}


@pytest.mark.parametrize("limit", PROMISED)
def test_a_promised_limit_is_that_of_the_code(limit: str) -> None:
    lines = (ROOT / "SECURITY.md").read_text().splitlines()
    (row,) = (line for line in lines if line.startswith(f"| {limit} |"))
    assert PROMISED[limit] in row
