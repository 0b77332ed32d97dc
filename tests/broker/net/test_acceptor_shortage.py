"""Acceptor without descriptors: who is accepted, who is closed, and nobody waits for nothing."""

import os
import resource
import select
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from broker.net import acceptor as acceptor_module
from tests.broker.net.test_acceptor import (
    LARGE,
    Listening,
    descriptors_left,
    passes,
    received,
    served,
    until,
)

pytestmark = pytest.mark.skipif(
    acceptor_module.CLIENT_SOCKETS_IN_C is None,
    reason="the sources have no transports of their own",
)


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    async with served() as listening:
        yield listening


async def test_the_last_descriptor_is_used_and_nobody_else_waits(listening: Listening) -> None:
    """accept4 looks for a descriptor before it looks whether anybody has connected."""
    await listening.client()
    client, next_client = socket.socket(), socket.socket()
    for each in (client, next_client):
        each.setblocking(False)
    with descriptors_left(1):
        client.connect_ex(("127.0.0.1", listening.bound.port))
        await until(lambda: len(listening.made) == 2)
        await passes()
    assert listening.faults == []
    next_client.connect_ex(("127.0.0.1", listening.bound.port))
    await until(lambda: len(listening.made) == 3)
    assert listening.faults == []  # so nobody waited for the acceptor to try again
    for each in (client, next_client):
        each.close()


async def test_the_reserve_comes_back(listening: Listening) -> None:
    """The limit is below what is open, so the reserve that was given up is lost for a while."""
    await listening.client()
    client = socket.socket()
    client.setblocking(False)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        client.connect_ex(("127.0.0.1", listening.bound.port))
        await passes()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    await until(lambda: len(listening.made) == 2)  # once the acceptor tries again
    listening.faults.clear()

    short_of = socket.socket()
    short_of.setblocking(False)
    with descriptors_left(0):
        short_of.connect_ex(("127.0.0.1", listening.bound.port))
        with suppress(ConnectionResetError):
            assert await received(short_of, 1) == b""
    assert listening.faults == []
    short_of.close()
    client.close()


@pytest.mark.parametrize("has_answer", [False, True])
async def test_a_connection_that_epoll_does_not_take_again_is_lost(
    listening: Listening, *, has_answer: bool
) -> None:
    """ENOSPC in the usual case; here there is such a descriptor already."""
    client, seen = await listening.client()
    transport = seen.transport
    transport.pause_reading()
    sockets = listening.acceptor._sockets
    assert sockets is not None
    epoll = select.epoll.fromfd(os.dup(sockets.fileno()))
    epoll.register(transport.fileno(), 0)
    if has_answer:
        transport.write(LARGE)
    else:
        transport.resume_reading()
    epoll.unregister(transport.fileno())
    assert isinstance(await seen.lost, OSError)
    assert seen.calls == ["made", "lost"]
    assert listening.faults == []
    epoll.close()
    client.close()
