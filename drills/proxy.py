"""Proxy: a TCP proxy between the members and the brokers; it cuts, holds and observes.

It runs in the drill's process, on loopback. Answers that name brokers (Metadata, FindCoordinator,
DescribeCluster) are rewritten to name the proxy, so no client finds a way around it, and a server
that was not started by the drill can be drilled too. Each request names its client, which is a
member: so one member alone can be cut off, or one of its requests held (moments.py).
"""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, TypeVar

from drills.broker_calls import answered_offsets
from drills.events import EventLog, Kind
from drills.moments import Moment
from drills.processes import CannotStart
from drills.scenario import ALL_MEMBERS
from protocol.codec import decode_response, encode_response
from protocol.messages import Response
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.messages.describe_cluster import DescribeClusterResponse
from protocol.messages.find_coordinator import FindCoordinatorResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.metadata import MetadataResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.names import ApiKey, ErrorCode

T = TypeVar("T")
BrokerAddress = tuple[str, int]

PROXIED_BYTES_MAX: Final = 256 * 1024 * 1024
_REWRITTEN: Final = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER)
_OBSERVED: Final = (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_FETCH)
_REQUEST_HEAD: Final = struct.Struct(">hhih")
_CORRELATION_ID: Final = struct.Struct(">i")


class _Closed(Exception):
    """This connection ends: one side closed it, or it was cut."""


class Gate:
    """Waits for one moment. `reached` is set when it comes; a held frame waits for `release`."""

    def __init__(self, moment: Moment, loop: asyncio.AbstractEventLoop) -> None:
        self.moment = moment
        self.reached = threading.Event()
        self._loop = loop
        self._released = asyncio.Event()

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)

    async def hold(self) -> None:
        self.reached.set()
        await self._released.wait()


class _Link:
    """One connection of a client, and the one to the broker that belongs to it."""

    def __init__(
        self,
        requests: asyncio.StreamReader,
        client: asyncio.StreamWriter,
        broker: asyncio.StreamWriter,
    ) -> None:
        self.requests = requests
        self.client = client
        self.broker = broker
        self.member = ""
        self.asked: dict[int, tuple[int, int, float]] = {}
        self.epoch = 0

    def abort(self) -> None:
        for writer in (self.client, self.broker):
            writer.transport.abort()


class DrillProxy:
    """Public methods are called from other threads than the proxy's own."""

    def __init__(self, events: EventLog, listen: BrokerAddress = ("127.0.0.1", 0)) -> None:
        self._events = events
        self._listen = listen
        self._socket: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: dict[BrokerAddress, asyncio.Server] = {}
        self._ports: dict[BrokerAddress, int] = {}
        self._links: set[_Link] = set()
        self._gates: list[Gate] = []
        self._silent: set[str] = set()
        self._refused: set[str] = set()
        self._healed = asyncio.Event()

    def bind(self) -> None:
        """Take the port; nobody is accepted yet. Raises CannotStart."""
        try:
            self._socket = socket.create_server(self._listen)
        except OSError as error:
            host, port = self._listen
            raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}") from None

    def start(self, upstream: BrokerAddress) -> str:
        """The address for clients of this broker."""
        self._thread.start()
        return f"{self._listen[0]}:{self._call(self._port_for(upstream))}"

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._thread.is_alive():
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def gate(self, moment: Moment) -> Gate:
        """Of the next request or answer of this kind."""

        async def make() -> Gate:
            gate = Gate(moment, self._loop)
            self._gates.append(gate)
            return gate

        return self._call(make())

    def cut(self, member: str, mode: str) -> None:
        """`silent`: nothing gets through, and no end is told. `reset`: connections are closed."""

        async def cut() -> None:
            if mode == "silent":
                self._silent.add(member)
                return
            self._refused.add(member)
            for link in [*self._links]:
                if member in (link.member, ALL_MEMBERS):
                    link.abort()

        self._call(cut())

    def heal(self, member: str) -> None:
        async def heal() -> None:
            self._silent.discard(member)
            self._refused.discard(member)
            healed, self._healed = self._healed, asyncio.Event()
            healed.set()

        self._call(heal())

    def _call(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # --- on the loop

    async def _port_for(self, upstream: BrokerAddress) -> int:
        if upstream not in self._ports:

            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await self._serve(upstream, reader, writer)

            first, self._socket = self._socket, None
            if first is not None:
                server = await asyncio.start_server(accept, sock=first)
            else:
                server = await asyncio.start_server(accept, self._listen[0], 0)
            self._servers[upstream] = server
            self._ports[upstream] = server.sockets[0].getsockname()[1]
        return self._ports[upstream]

    async def _close(self) -> None:
        for server in self._servers.values():
            server.close()
        for link in [*self._links]:
            link.abort()
        for gate in self._gates:
            gate.release()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(
        self,
        upstream: BrokerAddress,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if ALL_MEMBERS in self._refused:
            writer.transport.abort()
            return
        try:
            from_broker, to_broker = await asyncio.open_connection(*upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(reader, writer, to_broker)
        self._links.add(link)
        pumps = [
            asyncio.create_task(self._pump(reader, to_broker, self._to_broker, link)),
            asyncio.create_task(self._pump(from_broker, writer, self._to_client, link)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links.discard(link)
            for end in (writer, to_broker):
                end.close()

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        handle: Callable[[_Link, bytes, asyncio.StreamWriter], Coroutine[object, object, None]],
        link: _Link,
    ) -> None:
        with suppress(_Closed, OSError, asyncio.IncompleteReadError):
            while True:
                size = int.from_bytes(await source.readexactly(4), "big")
                if size > PROXIED_BYTES_MAX:
                    return
                await handle(link, await source.readexactly(size), target)

    async def _to_broker(self, link: _Link, frame: bytes, broker: asyncio.StreamWriter) -> None:
        api_key, version, correlation_id, length = _REQUEST_HEAD.unpack_from(frame)
        if length > 0:
            link.member = frame[10 : 10 + length].decode("utf-8", "replace")
        link.asked[correlation_id] = (api_key, version, time.monotonic())
        await self._hold(link.member, "sends", api_key)
        await self._pass(link)
        broker.write(len(frame).to_bytes(4, "big") + frame)
        await broker.drain()
        await self._hold(link.member, "sent", api_key)

    async def _to_client(self, link: _Link, frame: bytes, client: asyncio.StreamWriter) -> None:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        api_key, version, asked_s = link.asked.pop(correlation_id, (-1, 0, 0.0))
        whole = len(frame).to_bytes(4, "big") + frame
        if api_key in _REWRITTEN or api_key in _OBSERVED:
            key = ApiKey(api_key)
            _, answer = decode_response(key, version, frame, 0, len(frame))
            self._observe(link, answer, asked_s)
            if key in _REWRITTEN:
                await self._rewrite(answer)
                whole = encode_response(key, version, correlation_id, answer)
        await self._hold(link.member, "receives", api_key)
        await self._pass(link)
        client.write(whole)
        await client.drain()
        await self._hold(link.member, "received", api_key)

    async def _hold(self, member: str, verb: str, api_key: int) -> None:
        for gate in self._gates:
            moment = gate.moment
            if (moment.member, moment.verb, moment.api_key) == (member, verb, api_key):
                self._gates.remove(gate)
                if moment.is_held:
                    await gate.hold()
                else:
                    gate.reached.set()
                return

    async def _pass(self, link: _Link) -> None:
        """Returns when nothing is cut for this connection. Raises _Closed.

        What was held of a client that has died meanwhile never arrives.
        """
        while self._silent & {link.member, ALL_MEMBERS}:
            await self._healed.wait()
        if self._refused & {link.member, ALL_MEMBERS} or link.requests.at_eof():
            link.abort()
            raise _Closed

    async def _rewrite(self, answer: Response) -> None:
        if isinstance(answer, FindCoordinatorResponse):
            if answer.host:
                answer.port = await self._port_for((answer.host, answer.port))
                answer.host = self._listen[0]
            for named in answer.coordinators:
                if named.host:
                    named.port = await self._port_for((named.host, named.port))
                    named.host = self._listen[0]
        elif isinstance(answer, MetadataResponse | DescribeClusterResponse):
            for broker in answer.brokers:
                broker.port = await self._port_for((broker.host, broker.port))
                broker.host = self._listen[0]

    def _observe(self, link: _Link, answer: Response, asked_s: float) -> None:
        number = 0
        if isinstance(answer, OffsetFetchResponse):
            offsets = answered_offsets(answer)
            self._events.note(link.member, Kind.PROBED, offsets=offsets, since_s=asked_s)
        elif isinstance(answer, JoinGroupResponse) and answer.error_code is ErrorCode.NONE:
            number = answer.generation_id
        elif isinstance(answer, ConsumerGroupHeartbeatResponse):
            is_new = answer.error_code is ErrorCode.NONE and answer.member_epoch != link.epoch
            number = answer.member_epoch if is_new else 0
            link.epoch = answer.member_epoch if is_new else link.epoch
        if number > 0:
            self._events.note(link.member, Kind.GENERATION, number=number)
