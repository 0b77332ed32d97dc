"""TLS floods: tiny records and records without data on real sockets, and how records are cut."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.net.tls.channel import EMPTY_RECORDS_MAX
from broker.net.tls.records import RECORDS_A_SLICE, RecordCutter
from broker.observe.events import PeerFault
from protocol.messages.heartbeat import HeartbeatResponse
from tests.broker.net.test_tls import Raw, serve
from tests.broker.net.tls_client import client_context, tls_client, write_key_store
from tests.broker.net.tls_records import RecordWriter
from tests.broker.shell import WAIT_S, Shell, heartbeat


async def connected(shell: Shell, folder: Path) -> tuple[Raw, RecordWriter]:
    """A client after its handshake, with a writer of its records."""
    serve(shell, write_key_store(folder / "server.pem"))
    raw = Raw(await shell.client(), client_context(keylog_filename=str(folder / "keys")))
    raw.client.send(await raw.handshake())
    return raw, RecordWriter(folder / "keys", raw.tls)


async def assert_served(shell: Shell) -> None:
    other = await tls_client(shell.listener.port, client_context())
    assert isinstance(await other.call(heartbeat()), HeartbeatResponse)
    other.close()


def slow() -> Callable[[], float]:
    """Each look at this stopwatch is a turn later."""
    seconds = count()
    return lambda: float(next(seconds))


@pytest.mark.parametrize("stopwatch", [perf_counter, slow()])
async def test_requests_in_tiny_records_come_whole(
    tmp_path: Path, stopwatch: Callable[[], float]
) -> None:
    """The FIN is behind them, and they are handled before it, however many turns they take."""
    async with Shell(stopwatch=stopwatch) as shell:
        raw, writer = await connected(shell, tmp_path)
        request = raw.client.framed(heartbeat())
        times = 10 * RECORDS_A_SLICE // len(request) + 1
        records = [writer.data(request[at : at + 1]) for at in range(len(request))]
        for _ in range(times - 1):
            records += [writer.data(request[at : at + 1]) for at in range(len(request))]
        raw.client.send(b"".join(records))
        raw.client.writer.write_eof()
        await shell.core.until(lambda: len(shell.core.asked) == times)
        assert shell.dropped() == []


async def test_key_updates_are_answered(tmp_path: Path) -> None:
    async with Shell() as shell:
        raw, writer = await connected(shell, tmp_path)
        updates = b"".join(writer.key_update() for _ in range(EMPTY_RECORDS_MAX))
        raw.client.send(updates + writer.data(raw.client.framed(heartbeat())))
        assert await asyncio.wait_for(raw.read(), WAIT_S)
        assert shell.dropped() == []


@pytest.mark.parametrize("request_bytes", [b"", (900).to_bytes(4, "big")])
async def test_a_flood_of_key_updates_ends_its_own_connection(
    tmp_path: Path, request_bytes: bytes
) -> None:
    """Also with a byte of a request now and then."""
    async with Shell() as shell:
        raw, writer = await connected(shell, tmp_path)
        flood = b""
        for at in range(30):
            flood += b"".join(writer.key_update() for _ in range(10))
            flood += writer.data(request_bytes[at : at + 1] or b"\0") if request_bytes else b""
        raw.client.send(flood)
        await raw.client.closed()
        (dropped,) = shell.dropped()
        assert dropped.fault is PeerFault.TLS
        assert dropped.detail == "too many records without data"
        await assert_served(shell)


async def test_a_port_check_is_not_reported(tmp_path: Path) -> None:
    """As a load balancer does."""
    async with Shell() as shell:
        serve(shell, write_key_store(tmp_path / "server.pem"))
        client = await shell.client()
        client.writer.write_eof()
        assert await client.closed() == b""
        assert shell.dropped() == []


record = st.binary(max_size=100).map(
    lambda content: b"\x17\x03\x03" + len(content).to_bytes(2, "big") + content
)


@given(records=st.lists(record, max_size=80), piece_bytes=st.integers(1, 300))
def test_records_in_any_pieces(records: list[bytes], piece_bytes: int) -> None:
    cutter, received, taken = RecordCutter(), bytearray(), b""
    sent = b"".join(records)
    for at in range(0, len(sent), piece_bytes):
        received += sent[at : at + piece_bytes]
        while piece := cutter.take(received):
            taken += piece
    assert taken == sent
    assert not received
    assert cutter.count == len(records)


def test_a_slice_has_a_limited_number_of_records() -> None:
    received = bytearray(b"\x17\x03\x03\x00\x00" * (RECORDS_A_SLICE + 1))
    cutter = RecordCutter()
    assert len(cutter.take(received)) == 5 * RECORDS_A_SLICE
    assert (cutter.count, len(received)) == (RECORDS_A_SLICE, 5)


@pytest.mark.parametrize(
    "nonsense", [b"GET / HTTP/1.1\r\n\r\n", b"\x17\x03\x03\xff\xff", b"\x80" * 9]
)
def test_what_is_no_record_is_given_to_openssl_whole(nonsense: bytes) -> None:
    received = bytearray(nonsense)
    assert RecordCutter().take(received) == nonsense
    assert not received
