"""Login: the SASL exchange of a new connection, before any other request.

Kafka's counterpart: `SaslClientAuthenticator`.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from client.errors import ClusterFault
from client.properties import Login
from security.sasl.exchange import SaslFailure
from security.sasl.scram_client import ScramClient

TOKEN_BYTES_MAX: Final = 1 << 20

Exchange = Callable[[bytes], bytes]
"""Sends a message in SaslAuthenticate and returns the server's. Raises ClusterFault if it fails."""


def log_in(login: Login, exchange: Exchange) -> None:
    """Raises ClusterFault."""
    match login.mechanism:
        case "PLAIN":
            exchange(f"\0{login.username}\0{login.password}".encode())
        case "OAUTHBEARER":
            exchange(b"n,,\x01auth=Bearer " + _token(login.token_location) + b"\x01\x01")
        case _:
            _prove_by_scram(login, exchange)


def _prove_by_scram(login: Login, exchange: Exchange) -> None:
    client = ScramClient(login.mechanism, login.username, login.password, secrets.token_urlsafe(24))
    try:
        server_first = exchange(client.first_message())
        client.check_server(exchange(client.final_message(server_first)))
    except SaslFailure as failed:
        raise ClusterFault(f"authentication failed: {failed}") from None


def _token(location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            token = file.read(TOKEN_BYTES_MAX).strip()
    except OSError as failed:
        raise ClusterFault(f"{location}: {failed.strerror or failed}") from None
    if not token or not token.isascii() or len(token.split()) != 1:
        raise ClusterFault(f"{location} has no token")
    return token
