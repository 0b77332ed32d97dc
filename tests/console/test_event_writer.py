"""Event streams: readers that do not read."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from console import events_api
from console.event_hub import EventHub


class UnreadTransport:
    """The peer takes nothing: `size` bytes wait to be read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.is_aborted = True


def given_writer(transport: UnreadTransport, write: Any) -> Any:
    clock = SimpleNamespace(now=lambda: SimpleNamespace(wall_ms=0))
    daemon: Any = SimpleNamespace(
        coordinator=None,
        data_plane=SimpleNamespace(registry=SimpleNamespace(partition_count=lambda _: 0)),
        lag=SimpleNamespace(rounds=0),
        clock=clock,
    )
    hub = EventHub("b")
    stream, _ = hub.subscribe(None, "")
    for number in range(10):
        hub.changed(f"group-{number}")
    request: Any = SimpleNamespace(transport=transport, protocol=None)
    response: Any = SimpleNamespace(write=write)
    return events_api._Writer(daemon, hub, stream, request, response)


async def test_a_write_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_api, "SLOW_S", 0.05)
    transport = UnreadTransport(0)
    written: list[bytes] = []

    async def write(text: bytes) -> None:
        written.append(text)
        await asyncio.Event().wait()

    assert not await given_writer(transport, write).run(continues=True)
    assert transport.is_aborted
    assert len(written) == 1


async def test_bytes_that_stay_unread_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_api, "SLOW_S", 0.05)
    monkeypatch.setattr(events_api, "OFFSETS_INTERVAL_S", 0.02)
    transport = UnreadTransport(1_000)
    written: list[bytes] = []

    async def write(text: bytes) -> None:
        written.append(text)

    assert not await given_writer(transport, write).run(continues=True)
    assert transport.is_aborted
    assert len(written) == 1  # nothing more is made for a reader that has not read that


async def test_too_many_unread_bytes_are_cut_off_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_api, "OFFSETS_INTERVAL_S", 0.02)
    transport = UnreadTransport(events_api.BUFFER_BYTES_MAX + 1)

    async def write(text: bytes) -> None:
        del text

    assert not await given_writer(transport, write).run(continues=True)
    assert transport.is_aborted
