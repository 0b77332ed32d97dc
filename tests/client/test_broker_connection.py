"""Broker connection: what people read when a broker does not answer."""

import re
import socket
import ssl

import pytest

from client.connection import BrokerConnection
from client.errors import ClusterFault
from client.properties import ClientProperties


@pytest.mark.parametrize(
    ("tls", "said"),
    [
        (None, "does not answer API_VERSIONS within 0.01 s"),
        (ssl.create_default_context(), "TLS: no answer within 0.01 s"),
    ],
    ids=["plain", "tls"],
)
def test_a_broker_that_is_silent_is_named_with_the_time(
    tls: ssl.SSLContext | None, said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ClusterFault, match=f"^127.0.0.1:{port}:? {re.escape(said)}$"):
            BrokerConnection("127.0.0.1", port, ClientProperties(timeout_s=0.01, tls=tls))
