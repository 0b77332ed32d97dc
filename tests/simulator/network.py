"""Simulated network: delay, a cut, a slow reader, an end, late bytes.

A `Connection` is the client's end: it may ask many things without waiting, and demands that each
is answered once and in order. At the node's end is the real `broker.net.connection.Connection`; its
transport is a `Socket` (sockets.py). Bytes of one direction keep their order. A cut loses what is
on its way back; what is on its way there may still arrive and be carried out, so a client that asks
again may be heard twice. The node may or may not learn of the cut.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.framing import FrameReader
from protocol.messages import Request, Response
from protocol.names import ApiKey
from tests.simulator.sim import Broken, Sim

OnAnswer = Callable[[Response], None]


class NodeSocket(Protocol):
    """The node's end of a connection, as the network sees it: sockets.py."""

    is_unreachable: bool

    def arrive(self, data: bytes) -> None: ...

    def arrive_end(self) -> None: ...

    def arrive_reset(self) -> None: ...


class Process(Protocol):
    """The process that listens, as the network sees it: node.py."""

    def accept(self, client: "Connection") -> NodeSocket: ...

    def later(self, delay_ms: int, action: "partial[None]") -> None: ...


class Expected(NamedTuple):
    """A request that was sent, in the order of the answers."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    on_answer: OnAnswer
    sent_ms: int


class Connection:
    def __init__(self, network: "Network", client_id: str, node: Process) -> None:
        self.client_id = client_id
        self.open = True
        self.reading_ms = 0  # how long the client takes for each piece of its answers
        self.requests = self.answers = 0
        self._network = network
        self._node = node
        self._socket = node.accept(self)
        self._expected: deque[Expected] = deque()
        self._answers = FrameReader(1 << 30)
        self._there_ms = 0  # when the last bytes to the node arrive
        self._back_ms = 0
        self.ended_ms: int | None = None

    @property
    def sim(self) -> Sim:
        return self._network.sim

    @property
    def waits_since_ms(self) -> int | None:
        """When the oldest request without an answer was sent; or the end that is not answered."""
        return self._expected[0].sent_ms if self._expected else self.ended_ms

    # ------------------------------------------------------------ there

    def ask(self, request: Request, api_version: int, on_answer: OnAnswer) -> None:
        self.ask_all([(request, api_version, on_answer)])

    def ask_all(self, requests: list[tuple[Request, int, OnAnswer]]) -> None:
        """Without waiting for any answer. What was sent together may arrive in pieces."""
        assert self.open
        assert self.ended_ms is None
        frames = bytearray()
        for request, api_version, on_answer in requests:
            self.requests += 1
            api_key = request.API_KEY
            header = RequestHeader(api_key, api_version, self.requests, self.client_id)
            frames += encode_request(header, request)
            self._expected.append(
                Expected(api_key, api_version, self.requests, on_answer, self.sim.now_ms)
            )
        if self.sim.happens(0.1):
            middle = self.sim.between(1, len(frames) - 1)
            self._send(partial(self._socket.arrive, bytes(frames[:middle])))
            del frames[:middle]
        self._send(partial(self._socket.arrive, bytes(frames)))

    def _send(self, arrival: "partial[None]") -> None:
        self._there_ms = max(self._there_ms, self.sim.now_ms + self._network.delay_ms())
        self.sim.at(self._there_ms, lambda: self._node.later(0, arrival))

    def end(self) -> None:
        """Ask nothing more, but wait for the answers; the node closes after the last one."""
        self.ended_ms = self.sim.now_ms
        self._send(partial(self._socket.arrive_end))

    def close(self) -> None:
        """By the client: what it has sent arrives, and then a FIN or, now and then, an RST."""
        if not self.open:
            return
        self._forget()
        if self.sim.happens(0.2):
            self._send(partial(self._socket.arrive_reset))
        elif self.ended_ms is None:
            self._send(partial(self._socket.arrive_end))

    def cut(self) -> None:
        """By the network: the node may get what was on its way, and may hear of it."""
        if not self.open:
            return
        self._forget()
        if self.sim.happens(0.5):
            self._socket.is_unreachable = True  # it was lost, else the node's kernel had it already
        if self.sim.happens(0.5):
            self.sim.at(
                self._there_ms, lambda: self._node.later(0, partial(self._socket.arrive_reset))
            )

    def _forget(self) -> None:
        """No answer comes through any more."""
        self.open = False
        self._expected.clear()

    # ------------------------------------------------------------ and back

    def on_its_way(self, piece: bytes, taken: Callable[[], None]) -> None:
        """From the node's kernel, which has room again once the client has `taken` it."""
        delay_ms = self._network.delay_ms()
        if self.reading_ms:
            delay_ms += self.sim.around(self.reading_ms)
        self._back_ms = max(self._back_ms, self.sim.now_ms + delay_ms)

        def arrived() -> None:
            self._receive(piece)
            taken()

        self.sim.at(self._back_ms, arrived)

    def closed_by_node(self) -> None:
        """Behind the last byte."""
        self._back_ms = max(self._back_ms, self.sim.now_ms + self._network.delay_ms())
        self.sim.at(self._back_ms, self._closed)

    def _closed(self) -> None:
        if not self.open:
            return
        if self._expected:
            raise Broken(f"{self.client_id}: closed before {len(self._expected)} were answered")
        self._forget()

    def _receive(self, piece: bytes) -> None:
        for buf, start, end in tuple(self._answers.feed(piece)):
            if not self.open:
                return
            if not self._expected:
                raise Broken(f"{self.client_id}: an answer to nothing")
            expected = self._expected.popleft()
            header, response = decode_response(
                expected.api_key, expected.api_version, buf, start, end
            )
            if header.correlation_id != expected.correlation_id:
                raise Broken(
                    f"{self.client_id}: {header.correlation_id} is answered in the place of "
                    f"{expected.correlation_id}"
                )
            self.answers += 1
            expected.on_answer(response)


class Network:
    def __init__(self, sim: Sim) -> None:
        self.sim = sim
        self.node: Process | None = None
        self.slowness = 1.0
        self.connections: list[Connection] = []

    def connect(self, client_id: str) -> Connection | None:
        """None while nobody listens."""
        if self.node is None:
            return None
        connection = Connection(self, client_id, self.node)
        self.connections = [c for c in self.connections if c.open]
        self.connections.append(connection)
        return connection

    def delay_ms(self) -> int:
        delay = self.sim.around(3 * self.slowness)
        return delay + (self.sim.between(200, 4_000) if self.sim.happens(0.004) else 0)

    def cut(self, connection: Connection) -> None:
        connection.cut()

    def cut_all(self) -> None:
        for connection in self.connections:
            connection.cut()
        self.connections = []
