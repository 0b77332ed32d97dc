"""Transports of clients: ours in C and uvloop's do the same for a connection, on real sockets."""

import asyncio
import errno
import gc
import os
import resource
import select
import socket
import struct
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from broker.net import acceptor as acceptor_module
from broker.net.acceptor import Acceptor
from broker.net.sockets import Bound, bind_listener
from config.listeners import Listener

LARGE = bytes(range(256)) * 40_000  # more than the kernel takes at once
MANY = 600
"""More sockets than one look at epoll reports."""
BACKLOG = 50


class Seen(asyncio.Protocol):
    """A protocol that keeps what it was told; it echoes what it gets."""

    def __init__(self, *, stays_open: bool = True) -> None:
        self.stays_open = stays_open
        self.transport: Any = None
        self.calls: list[str] = []
        self.data = bytearray()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.on_made: Callable[[Seen], None] = lambda _: None
        self.on_data: Callable[[], None] = lambda: None
        self.echoes = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=0)
        self.calls.append("made")
        self.on_made(self)

    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        self.data += data
        self.on_data()
        if self.echoes:
            self.transport.write(data)

    def eof_received(self) -> bool:
        self.calls.append("eof")
        return self.stays_open

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")
        self.transport = None
        self.lost.set_result(exc)


class Listening:
    """One listener, its connections in the order of their arrival, and its faults."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.acceptor = Acceptor(loop)
        self.made: list[Seen] = []
        self.make: Callable[[], Seen] = Seen
        self.on_made: Callable[[Seen], None] = self.made.append
        self.faults: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: self.faults.append(context))
        self.bound: Bound

    async def serve(self) -> None:
        self.bound = bind_listener(
            Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", None),
            backlog=BACKLOG,
            send_buffer_bytes=16_384,
            receive_buffer_bytes=65_536,
        )
        await self.acceptor.add(self.bound.sockets[0], self._make, BACKLOG)

    def _make(self) -> Seen:
        made = self.make()
        made.on_made = self.on_made
        return made

    def connect(self) -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        client.connect(("127.0.0.1", self.bound.port))
        client.setblocking(False)
        return client

    async def client(self) -> tuple[socket.socket, Seen]:
        count = len(self.made)
        client = self.connect()
        await until(lambda: len(self.made) > count)
        return client, self.made[-1]


@asynccontextmanager
async def served() -> AsyncIterator[Listening]:
    """A listener; at the end its connections are aborted, and all have heard of it."""
    listening = Listening()
    await listening.serve()
    yield listening
    listening.acceptor.stop_accepting()
    for each in listening.made:
        if each.transport is not None:
            each.transport.abort()
    await until(lambda: all(each.lost.done() for each in listening.made))
    listening.acceptor.close()
    listening.bound.close()


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - a socket tells nobody
            await asyncio.sleep(0)


async def passes(count: int = 20) -> None:
    """So many turns of the loop: what has not happened by then was not asked for."""
    for _ in range(count):
        await asyncio.sleep(0.000_1)


async def received(client: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = bytearray()
    async with asyncio.timeout(10):
        while len(data) < size and (piece := await loop.sock_recv(client, 65_536)):
            data += piece
    return bytes(data)


def reset(client: socket.socket) -> None:
    """Close it with an RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.fixture(params=["ours", "uvloop"])
async def listening(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Listening]:
    if request.param == "uvloop":
        monkeypatch.setattr(acceptor_module, "CLIENT_SOCKETS_IN_C", None)
    elif acceptor_module.CLIENT_SOCKETS_IN_C is None:
        pytest.skip("the sources have no transports of their own")
    async with served() as listening:
        yield listening


# Who connects.


async def test_clients_that_connect_at_once_wait_in_the_queue(listening: Listening) -> None:
    """One that the queue has no place for would try again after a second."""
    clients = [socket.socket() for _ in range(MANY)]
    connected = select.poll()
    for client in clients:
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", listening.bound.port))
        connected.register(client, select.POLLOUT)
    # The loop has not run since, so nobody was accepted.
    assert not listening.made
    assert len(connected.poll(0)) == MANY
    await until(lambda: len(listening.made) == MANY)
    for client in clients:
        client.close()


async def test_those_that_are_closed_at_once_are_not_all_accepted_in_one_pass(
    listening: Listening,
) -> None:
    """They keep their descriptors until a later pass, and the log's files need some."""
    open_most = 0

    def close(made: Seen) -> None:
        nonlocal open_most
        listening.made.append(made)
        made.transport.close()
        open_most = max(open_most, sum(not each.lost.done() for each in listening.made))

    listening.on_made = close
    clients = [listening.connect() for _ in range(2 * BACKLOG)]
    await until(lambda: len(listening.made) == len(clients))
    await until(lambda: all(each.lost.done() for each in listening.made))
    assert open_most <= BACKLOG
    for client in clients:
        client.close()


# What is sent.


async def test_bytes_go_both_ways(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.echoes = True
    for size in (1, 5_000):
        client.send(bytes(size))
        assert await received(client, size) == bytes(size)
    assert seen.calls == ["made"]
    assert seen.transport.get_write_buffer_size() == 0
    assert not seen.transport.is_closing()
    client.close()


async def test_an_answer_that_does_not_fit_is_sent_as_the_client_reads(
    listening: Listening,
) -> None:
    client, seen = await listening.client()
    seen.transport.write(LARGE)
    await passes()
    assert seen.calls == ["made", "pause"]
    unsent = seen.transport.get_write_buffer_size()
    assert 0 < unsent < len(LARGE)
    seen.transport.write(b"more")
    assert seen.transport.get_write_buffer_size() == unsent + 4
    assert await received(client, len(LARGE) + 4) == LARGE + b"more"
    await until(lambda: seen.calls == ["made", "pause", "resume"])
    assert seen.transport.get_write_buffer_size() == 0
    seen.transport.write(b"again")
    assert await received(client, 5) == b"again"
    client.close()


async def test_requests_are_read_while_an_answer_waits(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.transport.write(LARGE)
    await until(lambda: "pause" in seen.calls)
    client.send(b"request")
    await until(lambda: seen.data == b"request")
    assert await received(client, len(LARGE)) == LARGE
    client.close()


async def test_what_was_written_before_a_close_is_sent(listening: Listening) -> None:
    client, seen = await listening.client()
    transport = seen.transport
    transport.write(LARGE)
    transport.close()
    assert transport.is_closing()
    await passes()
    assert seen.calls[-1] != "lost"
    assert await received(client, len(LARGE) + 1) == LARGE
    assert await seen.lost is None
    client.close()


async def test_an_abort_drops_what_is_unsent(listening: Listening) -> None:
    client, seen = await listening.client()
    transport = seen.transport
    transport.write(LARGE)
    transport.abort()
    transport.abort()
    transport.close()
    assert "lost" not in seen.calls, "in a later pass"
    assert await seen.lost is None
    got = bytearray()
    with suppress(ConnectionResetError):
        got += await received(client, len(LARGE))
    assert len(got) < len(LARGE)
    assert seen.calls.count("lost") == 1
    client.close()


async def test_a_peer_that_is_gone_loses_the_connection_at_a_write(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.transport.pause_reading()
    reset(client)
    await passes()
    transport = seen.transport
    assert transport is not None, "nobody has read or written"
    transport.write(b"answer")
    error = await seen.lost
    assert isinstance(error, OSError)
    assert error.errno in {errno.ECONNRESET, errno.EPIPE}


async def test_a_peer_that_goes_while_an_answer_waits(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.transport.write(LARGE)
    await until(lambda: "pause" in seen.calls)
    reset(client)
    assert isinstance(await seen.lost, OSError)
    assert "resume" not in seen.calls


async def test_a_peer_that_goes_while_a_close_waits(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.transport.write(LARGE)
    seen.transport.close()
    await passes()
    reset(client)
    await seen.lost
    assert seen.calls[-1] == "lost"


# What is read.


async def test_a_fin_is_reported_once_and_answers_still_go_out(listening: Listening) -> None:
    client, seen = await listening.client()
    client.send(b"request")
    client.shutdown(socket.SHUT_WR)
    await until(lambda: "eof" in seen.calls)
    assert seen.data == b"request"
    await passes()
    seen.transport.write(LARGE)
    assert await received(client, len(LARGE)) == LARGE
    assert seen.calls.count("eof") == 1
    seen.transport.close()
    assert await seen.lost is None
    client.close()


async def test_a_fin_closes_if_the_protocol_wants_nothing_more(listening: Listening) -> None:
    listening.make = lambda: Seen(stays_open=False)
    client, seen = await listening.client()
    client.shutdown(socket.SHUT_WR)
    assert await seen.lost is None
    assert await received(client, 1) == b""
    client.close()


async def test_a_reset_is_reported_as_the_error(listening: Listening) -> None:
    client, seen = await listening.client()
    reset(client)
    error = await seen.lost
    assert isinstance(error, ConnectionResetError)
    assert "eof" not in seen.calls


async def test_nothing_is_read_while_reading_is_paused(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.transport.pause_reading()
    client.send(b"request")
    client.shutdown(socket.SHUT_WR)
    await passes()
    assert (seen.data, seen.calls) == (b"", ["made"])
    seen.transport.resume_reading()
    await until(lambda: "eof" in seen.calls)
    assert seen.data == b"request"
    client.close()


async def test_a_protocol_that_pauses_gets_no_more(listening: Listening) -> None:
    client, seen = await listening.client()
    seen.on_data = seen.transport.pause_reading
    client.send(b"one")
    await until(lambda: seen.data)
    client.send(b"two")
    await passes()
    assert seen.data == b"one"
    seen.transport.resume_reading()
    await until(lambda: seen.data == b"onetwo")
    client.close()


async def test_a_long_request_arrives_whole(listening: Listening) -> None:
    client, seen = await listening.client()
    await asyncio.get_running_loop().sock_sendall(client, LARGE)
    await until(lambda: len(seen.data) == len(LARGE))
    assert seen.data == LARGE
    client.close()


async def test_a_connection_that_another_one_aborts_is_not_read(listening: Listening) -> None:
    """Both are ready in one look at epoll; the first that is read aborts the other."""
    pairs = [await listening.client() for _ in range(2)]
    seen = [each for _, each in pairs]

    def abort_other(own: int) -> None:
        if seen[1 - own].transport is not None:
            seen[1 - own].transport.abort()

    for number, each in enumerate(seen):
        each.on_data = lambda number=number: abort_other(number)
    for client, _ in pairs:
        client.send(b"request")
    await until(lambda: seen[0].lost.done() or seen[1].lost.done())
    await passes()
    assert sorted(bytes(each.data) for each in seen) == [b"", b"request"]
    for client, _ in pairs:
        client.close()


async def test_all_sockets_that_are_ready_are_read_in_one_pass(listening: Listening) -> None:
    clients = [listening.connect() for _ in range(MANY)]
    await until(lambda: len(listening.made) == MANY)
    for client in clients:
        client.send(b"request")
    await until(lambda: listening.made[0].data)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(bool(each.data) for each in listening.made) == MANY
    for client in clients:
        client.close()
    await until(lambda: all("eof" in each.calls for each in listening.made))


# Faults.


async def test_a_protocol_that_raises_loses_its_connection_alone(listening: Listening) -> None:
    (bad_client, bad), (client, good) = [await listening.client() for _ in range(2)]
    good.echoes = True

    def fail() -> None:
        raise ValueError("a defect")

    bad.on_data = fail
    bad_client.send(b"request")
    client.send(b"request")
    await bad.lost
    assert await received(client, 7) == b"request"
    assert [str(fault["exception"]) for fault in listening.faults] == ["a defect"]
    bad_client.close()
    client.close()


async def test_a_protocol_that_cannot_be_made_is_reported(listening: Listening) -> None:
    if acceptor_module.CLIENT_SOCKETS_IN_C is None:
        pytest.skip("uvloop leaves such a client waiting")

    def fail() -> Seen:
        raise ValueError("a defect")

    listening.make = fail
    client = listening.connect()
    assert await received(client, 1) == b""
    listening.make = Seen
    await listening.client()
    assert [str(fault["exception"]) for fault in listening.faults] == ["a defect"]
    client.close()


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """So many can be opened, and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    while not taken or taken[-1] <= highest:  # no gaps below
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


async def test_without_descriptors_a_client_is_closed_and_the_next_is_served(
    listening: Listening,
) -> None:
    await listening.client()
    client = socket.socket()
    client.setblocking(False)
    with descriptors_left(0):
        client.connect_ex(("127.0.0.1", listening.bound.port))
        with suppress(ConnectionResetError):  # or its end, if the kernel knew of no request
            assert await received(client, 1) == b""
    client.close()
    client, seen = await listening.client()
    seen.echoes = True
    client.send(b"request")
    assert await received(client, 7) == b"request"
    client.close()


# The rest.


async def test_who_is_at_the_other_end(listening: Listening) -> None:
    client, seen = await listening.client()
    transport = seen.transport
    assert transport.get_extra_info("peername") == client.getsockname()
    assert transport.get_extra_info("cipher", "none") == "none"
    own = socket.socket(fileno=transport.get_extra_info("socket").fileno())
    try:
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert not own.get_inheritable()
    finally:
        own.detach()
    client.close()


async def test_no_longer_accepting_refuses_and_keeps_those_that_are_there(
    listening: Listening,
) -> None:
    client, seen = await listening.client()
    seen.echoes = True
    listening.acceptor.stop_accepting()
    await passes(2)
    with pytest.raises(ConnectionRefusedError):
        listening.connect()
    client.send(b"request")
    assert await received(client, 7) == b"request"
    client.close()


async def test_a_connection_that_is_over_leaves_nothing(listening: Listening) -> None:
    gc.disable()
    try:
        client, seen = await listening.client()
        seen.transport.write(b"answer")
        await received(client, 6)
        client.close()
        await until(lambda: "eof" in seen.calls)
        seen.transport.close()
        await seen.lost
        await passes()
        gone = weakref.ref(seen)
        listening.made.clear()
        seen = None  # type: ignore[assignment]
        assert gone() is None
    finally:
        gc.enable()
