"""Peer address: as the log shows it, and as Kafka's tools print it (client.host).

`client_host` is Java's `InetAddress.toString()`: a slash, no name, and for IPv6 all eight groups
without leading zeros. An IPv4 client of a dual-stack socket is an IPv4 client.
"""

import asyncio
import socket
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

HOSTS_CACHED: Final = 4_096


def peer_address(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """(host, port) of the other end; "" and 0 when it is gone already."""
    name = transport.get_extra_info("peername")
    if not isinstance(name, tuple) or len(name) < 2:
        return "", 0
    return _plain(str(name[0])), name[1]


def peer_name(host: str, port: int) -> str:
    """`10.0.0.7:5`, `[::1]:5`; empty if it was gone already."""
    if not host:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(HOSTS_CACHED)
def client_host(host: str) -> str:
    """`/127.0.0.1`, `/0:0:0:0:0:0:0:1`, with the zone of a link-local address if it has one."""
    if ":" not in host:
        return "/" + host
    address, percent, zone = host.partition("%")
    packed = socket.inet_pton(socket.AF_INET6, address)
    groups = (int.from_bytes(packed[at : at + 2], "big") for at in range(0, 16, 2))
    return "/" + ":".join(f"{group:x}" for group in groups) + percent + zone


@lru_cache(HOSTS_CACHED)
def _plain(host: str) -> str:
    if ":" not in host:
        return host
    address = ip_address(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return host
