"""Events API: server-sent events about groups, for pages that show the current state.

    GET /api/events            all groups
    GET /api/events?group=G    one group, with its offsets as they move
Events, each with one JSON object:
    hello     {boot}                       the stream has begun
    reset     {}                           changes may have been missed: read everything again
    groups    {groups: [G, ...], more}     these groups changed (their history has entries)
    lag       {at_ms}                      a round of samples of the lag is complete
    offsets   {at_ms, lag, partitions: [[topic, partition, committed, end], ...], more}
    bye       {}                           the daemon stops
A comment goes out when there is nothing else. `Last-Event-ID` continues a stream. A reader that
takes nothing for `SLOW_S` is cut off. `rollcall.admin.event.streams.max` limits the streams.
"""

import asyncio
import json
from heapq import nlargest
from typing import Final, NamedTuple

from aiohttp import web

from broker.daemon import Daemon
from broker.lag.reader import LagReader
from console.answers import refusal
from console.connections import AdminConnection
from console.event_hub import EventHub, EventStream
from console.slices import Slices
from history.entries import HistoryEntry
from history.lag.model import Reading
from protocol.names import GroupId

COALESCE_S: Final = 0.2
"""What changes within this time is one event."""

OFFSETS_INTERVAL_S: Final = 2.0
HEARTBEAT_S: Final = 15.0
SLOW_S: Final = 10.0
BUFFER_BYTES_MAX: Final = 262_144
"""That one reader may leave unread before it is cut off at once."""

PUSHED_PARTITIONS_MAX: Final = 200
"""In one event about offsets: those with the most lag."""

PARTITIONS_READ_MAX: Final = 10_000
"""Of a group; one that has committed more has no events about offsets."""

READ_AT_ONCE: Final = 100


class EventsApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.hub = EventHub(f"{daemon.clock.now().wall_ms:x}")
        self.cut_off = 0
        if daemon.history is not None:
            daemon.history.subscribe(self._on_entry)

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/events", self._serve)]

    def _on_entry(self, entry: HistoryEntry) -> None:
        self.hub.changed(entry.group_id)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        most = self._daemon.config.rollcall_admin_event_streams_max
        if len(self.hub.streams) >= most:
            refused = refusal(503, f"{most} event streams are open")
            refused.headers["Retry-After"] = "10"
            return refused
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        if request.method == "HEAD":
            return response
        group_id = request.query.get("group")
        stream, continues = self.hub.subscribe(group_id, request.headers.get("Last-Event-ID", ""))
        connection = request.protocol
        if isinstance(connection, AdminConnection):
            connection.on_lost = stream.close
        try:
            await response.prepare(request)
            writer = _Writer(self._daemon, self.hub, stream, request, response)
            if not await writer.run(continues=continues):
                self.cut_off += 1
        except ConnectionError:
            pass  # the reader is gone
        finally:
            self.hub.unsubscribe(stream)
            if isinstance(connection, AdminConnection):
                connection.on_lost = None
        return response


class _Offsets(NamedTuple):
    lag: int | None
    partitions: tuple[tuple[str, int, int, int | None], ...]
    is_more: bool


class _Writer:
    """Writes one stream until its reader is gone or too slow, or the daemon stops."""

    def __init__(
        self,
        daemon: Daemon,
        hub: EventHub,
        stream: EventStream,
        request: web.Request,
        response: web.StreamResponse,
    ) -> None:
        self._daemon = daemon
        self._hub = hub
        self._stream = stream
        self._request = request
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._reader = LagReader(daemon.coordinator, daemon.data_plane.registry)
        self._rounds = daemon.lag.rounds
        self._offsets: _Offsets | None = None
        self._offsets_due_s = 0.0
        self._wrote_s = self._loop.time()
        self._unread_since_s: float | None = None

    async def run(self, *, continues: bool) -> bool:
        """False if the reader was too slow."""
        texts = [_event("hello", {"boot": self._hub.boot})]
        if not continues:
            texts.append(self._numbered("reset", {}))
        while not self._stream.is_closed:
            texts += await self._new()
            if not await self._write(texts):
                return False
            await self._wait()
            texts = []
        await self._write([_event("bye", {})])
        return True

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(OFFSETS_INTERVAL_S):
                await self._stream.woken.wait()
        except TimeoutError:
            return
        if not self._stream.is_closed:
            await asyncio.sleep(COALESCE_S)

    async def _new(self) -> list[str]:
        if self._unread_since_s is not None:
            return []  # what it was told before is not even read
        texts = []
        changes = self._stream.take()
        if changes.groups:
            content = {"groups": changes.groups, "more": changes.is_more}
            texts.append(self._numbered("groups", content, changes.seq))
        if self._rounds != self._daemon.lag.rounds:
            self._rounds = self._daemon.lag.rounds
            texts.append(_event("lag", {"at_ms": self._daemon.lag.book.at_ms}))
        if self._stream.group_id is not None and self._loop.time() >= self._offsets_due_s:
            self._offsets_due_s = self._loop.time() + OFFSETS_INTERVAL_S
            texts += await self._moved_offsets(GroupId(self._stream.group_id))
        if not texts and self._loop.time() - self._wrote_s >= HEARTBEAT_S:
            texts.append(": alive\n\n")
        return texts

    async def _moved_offsets(self, group_id: GroupId) -> list[str]:
        offsets = await self._read_offsets(group_id)
        if offsets is None or offsets == self._offsets:
            return []
        self._offsets = offsets
        content = {
            "at_ms": self._daemon.clock.now().wall_ms,
            "lag": offsets.lag,
            "partitions": offsets.partitions,
            "more": offsets.is_more,
        }
        return [_event("offsets", content)]

    async def _read_offsets(self, group_id: GroupId) -> _Offsets | None:
        group = self._reader.group(group_id)
        if group is None or sum(map(len, group.offsets.values())) > PARTITIONS_READ_MAX:
            return None
        slices = Slices(self._daemon.ticker.stalls)
        readings: list[Reading] = []
        for topic, commits in tuple(group.offsets.items()):
            found = tuple(commits.items())
            for at in range(0, len(found), READ_AT_ONCE):
                readings += self._reader.read(topic, found[at : at + READ_AT_ONCE])
                await slices.pause_if_due()
        known = [reading.lag for reading in readings if reading.lag is not None]
        shown = nlargest(PUSHED_PARTITIONS_MAX, readings, key=lambda reading: reading.lag or 0)
        return _Offsets(
            sum(known) if known else None,
            tuple(
                (each.topic, each.partition, each.committed_offset or 0, each.log_end_offset)
                for each in sorted(shown)
            ),
            len(readings) > len(shown),
        )

    def _numbered(self, name: str, content: object, seq: int | None = None) -> str:
        last = self._stream.take().seq if seq is None else seq
        return f"id: {self._hub.event_id(last)}\n{_event(name, content)}"

    async def _write(self, texts: list[str]) -> bool:
        transport = self._request.transport
        if transport is None:
            raise ConnectionResetError
        now_s, size = self._loop.time(), transport.get_write_buffer_size()
        if not size:
            self._unread_since_s = None
        elif self._unread_since_s is None:
            self._unread_since_s = now_s
        elif now_s - self._unread_since_s >= SLOW_S or size > BUFFER_BYTES_MAX:
            transport.abort()
            return False
        if texts:
            if isinstance(self._request.protocol, AdminConnection):
                self._request.protocol.answer_goes_on()
            self._wrote_s = now_s
            try:
                async with asyncio.timeout(SLOW_S):
                    await self._response.write("".join(texts).encode())
            except TimeoutError:
                transport.abort()
                return False
        return True


def _event(name: str, content: object) -> str:
    return f"event: {name}\ndata: {json.dumps(content)}\n\n"
