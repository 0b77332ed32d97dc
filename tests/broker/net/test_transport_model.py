"""Random lives of a connection: our transport and uvloop's have the same outcome."""

import asyncio
import os
import random
import socket
import struct
from contextlib import suppress
from typing import Final, NamedTuple

import pytest

from broker.net import acceptor as acceptor_module
from tests.broker.net.test_acceptor import Listening, Seen, reset

SEEDS: Final = int(os.environ.get("TRANSPORT_LIVES", "60"))
STEPS_MAX: Final = 14
LARGE: Final = 300_000
READ_BYTES: Final = 16_384
CUT_BYTES_MIN: Final = 16_384
"""So much fits into the kernel's buffers: a client that got less has lost nothing."""

pytestmark = pytest.mark.skipif(
    acceptor_module.CLIENT_SOCKETS_IN_C is None,
    reason="the sources have no transports of their own",
)


class Outcome(NamedTuple):
    """What a client and a protocol can see. `calls`: without the pauses, which depend on time."""

    calls: list[str]
    data: bytes  # that the protocol got
    answers: bytes  # that the client got
    is_error: bool
    is_unsent: bool


class Life:
    """One connection, and what either end does, step by step."""

    def __init__(self, listening: Listening, seed: int) -> None:
        self._listening = listening
        self._dice = random.Random(seed)
        self._number = 0
        self._answers = bytearray()
        self._client: socket.socket
        self._seen: Seen
        self._has_gone = False
        self._is_paused = False
        self._stays_open = self._dice.random() < 0.7

    async def run(self) -> Outcome:
        self._listening.make = lambda: Seen(stays_open=self._stays_open)
        self._client, self._seen = await self._listening.client()
        for _ in range(self._dice.randint(1, STEPS_MAX)):
            self._dice.choice(
                (
                    self._request,
                    self._request,
                    self._answer,
                    self._answer,
                    self._long_answer,
                    self._read,
                    self._read,
                    self._pause,
                    self._resume,
                    self._finish,
                    self._reset,
                    self._close,
                    self._abort,
                )
            )()
            await run_passes()
        for _ in range(STEPS_MAX * LARGE // READ_BYTES):  # the client reads all that is left
            self._read()
            await run_passes()
        seen = self._seen
        calls = [call for call in seen.calls if call not in {"pause", "resume"}]
        is_error = seen.lost.done() and seen.lost.result() is not None
        is_unsent = seen.transport is not None and seen.transport.get_write_buffer_size() > 0
        outcome = Outcome(calls, bytes(seen.data), bytes(self._answers), is_error, is_unsent)
        if seen.transport is not None:
            seen.transport.abort()
            await seen.lost
        self._client.close()
        return outcome

    # What the client does.

    def _request(self) -> None:
        if not self._has_gone:
            with suppress(OSError):  # its other end is closed
                self._client.send(self._bytes(self._dice.choice((1, 100, 5_000))))

    def _read(self) -> None:
        if not self._has_gone:
            with suppress(OSError):
                while data := self._client.recv(READ_BYTES):
                    self._answers += data

    def _finish(self) -> None:
        if not self._has_gone:
            with suppress(OSError):
                self._client.shutdown(socket.SHUT_WR)

    def _reset(self) -> None:
        if not self._has_gone and self._dice.random() < 0.4:
            self._has_gone = True
            reset(self._client)

    # What the protocol does. It asks for nothing more once it has closed, as Connection.

    def _answer(self) -> None:
        self._write(self._dice.choice((1, 30, 2_000)))

    def _long_answer(self) -> None:
        self._write(LARGE)

    def _write(self, size: int) -> None:
        if self._is_open:
            self._seen.transport.write(self._bytes(size))

    def _pause(self) -> None:
        if self._is_open and not self._is_paused:
            self._is_paused = True
            self._seen.transport.pause_reading()

    def _resume(self) -> None:
        if self._is_open and self._is_paused and "eof" not in self._seen.calls:
            self._is_paused = False
            self._seen.transport.resume_reading()

    def _close(self) -> None:
        if self._is_open and self._dice.random() < 0.4:
            self._seen.transport.close()

    def _abort(self) -> None:
        if self._seen.transport is not None and self._dice.random() < 0.2:
            self._seen.transport.abort()

    @property
    def _is_open(self) -> bool:
        return self._seen.transport is not None and not self._seen.transport.is_closing()

    def _bytes(self, size: int) -> bytes:
        """Of which each part says where it belongs."""
        self._number += 1
        return (struct.pack(">I", self._number) * (size // 4 + 1))[:size]


async def run_passes() -> None:
    """Until both ends have seen what the other one did: the loopback delivers at once."""
    for _ in range(4):
        await asyncio.sleep(0)


async def outcome_of(seed: int) -> Outcome:
    listening = Listening()
    await listening.serve()
    try:
        outcome = await Life(listening, seed).run()
    finally:
        listening.acceptor.stop_accepting()
        await run_passes()
        listening.acceptor.close()
        listening.bound.close()
    assert not listening.faults
    return outcome


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_ours_and_uvloops_have_the_same_outcome(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = await outcome_of(seed)
    monkeypatch.setattr(acceptor_module, "CLIENT_SOCKETS_IN_C", None)
    uvloops = await outcome_of(seed)
    assert ours._replace(data=b"", answers=b"") == uvloops._replace(data=b"", answers=b"")
    assert ours.data == uvloops.data
    if "lost" in ours.calls and max(len(ours.answers), len(uvloops.answers)) >= CUT_BYTES_MIN:
        # What the kernel had not sent when the socket was closed is lost, and one more attempt to
        # send moves a segment more. test_acceptor.py has the ends that may lose nothing.
        shorter, longer = sorted([ours.answers, uvloops.answers], key=len)
        assert longer.startswith(shorter)
    else:
        assert ours.answers == uvloops.answers
