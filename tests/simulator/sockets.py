"""The node's side of the network: the real Server and Connections, over sockets of the simulation.

`Sockets` stands where the daemon has its event loop and its dispatcher. A `Socket` is
the transport of one connection: it keeps what the client does not take, as uvloop's does, and tells
its connection of that. How long a request takes is drawn from the dice, so that turns end by their
time too.
"""

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from broker.loop.clock import SystemClock
from broker.net.connection import Connection as ServerConnection
from broker.net.dispatch import Dispatcher
from broker.net.request import PendingRequest
from broker.net.server import Server
from broker.net.sockets import Bound
from broker.observe.events import ConnectionDropped, PartFailed, RequestFailed, ShellEvent
from config.limits import ServerLimits
from coordinator.coordinator import GroupCoordinator
from protocol.messages import REQUESTS, Request, Response
from protocol.names import ApiKey
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from tests.simulator.network import Connection
from tests.simulator.sim import Broken, Sim

if TYPE_CHECKING:
    import asyncio

_LISTENER: Final = Bound("PLAINTEXT", (), "127.0.0.1", 9092, "127.0.0.1", 9092)

KERNEL_BYTES: Final = 4_096
"""So little that answers of usual size fill it now and then."""


class Token(ReplyToken):
    """One request that is handled, and what the checkers want to know of it."""

    __slots__ = (
        "answers",
        "claim_holds",
        "handled_at",
        "handled_ms",
        "incarnation",
        "pending",
        "request",
    )

    def __init__(self, pending: PendingRequest, request: Request, incarnation: int) -> None:
        super().__init__(pending.api_version, pending.client_id, pending.client_host)
        self.pending = pending
        self.request = request
        self.incarnation = incarnation  # of the node that was asked
        self.handled_ms = 0
        self.handled_at = (0, 0)  # step, number of the request
        self.claim_holds = True  # the member and generation that it names are the group's
        self.answers = 0


class Process(Protocol):
    """The process that owns the sockets: node.py."""

    incarnation: int
    sim: Sim
    coordinator: GroupCoordinator

    @property
    def now(self) -> Now: ...

    def later(self, delay_ms: int, action: "partial[None]") -> None: ...

    def handling(self, token: Token) -> None:
        """The coordinator is about to get this request."""

    def replied(self, token: Token, response: Response) -> None:
        """The coordinator has answered it."""


class NodeClock(SystemClock):
    """The time of a process of the simulation."""

    def __init__(self, node: Process) -> None:
        super().__init__()
        self._node = node

    def now(self) -> Now:
        return self._node.now


class Sockets:
    def __init__(self, node: Process) -> None:
        self._node = node
        dice = node.sim.dice
        self._request_s = dice.choice((0.0, 0.000_1, 0.001, 0.003))
        self._stopwatch_s = 0.0
        self.server = Server(
            cast("asyncio.AbstractEventLoop", self),
            NodeClock(node),
            ServerLimits(
                queued_max_request_bytes=dice.choice((-1, -1, 2_000)),
                connection_unsent_max_bytes=dice.choice((16_777_216, 20_000)),
                connections_unsent_max_bytes=dice.choice((268_435_456, 50_000)),
            ),
            self._observe,
            self._stopwatch,
        )
        self.server.use(Dispatcher(self.server.reply, self))

    def accept(self, client: Connection) -> "Socket":
        return Socket(self._node, self.server, client)

    def _stopwatch(self) -> float:
        self._stopwatch_s += self._request_s
        return self._stopwatch_s

    def _observe(self, event: ShellEvent) -> None:
        """No client of the simulation gives cause for a complaint; a failure is a mistake."""
        if isinstance(event, RequestFailed | PartFailed):
            raise event.error
        if isinstance(event, ConnectionDropped):
            raise Broken(f"{event.peer} is dropped: {event.fault}, {event.detail}")

    # As the server sees its loop.

    def call_soon(self, callback: "partial[None]", *args: object) -> None:
        self._node.later(0, partial(callback, *args))

    # As the dispatcher sees its cores.

    @property
    def handlers(self) -> dict[ApiKey, Handler]:
        return dict.fromkeys(REQUESTS.keys() - {ApiKey.API_VERSIONS}, self.handle)

    def handle(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(token, PendingRequest)
        handled = Token(token, request, self._node.incarnation)
        self._node.handling(handled)
        self._node.coordinator.handlers[request.API_KEY](request, handled, now)

    def disconnected(self, token: ReplyToken, now: Now) -> None:
        self._node.coordinator.disconnected(token, now)

    def reply(self, token: ReplyToken, response: Response) -> None:
        assert isinstance(token, Token)
        self._node.replied(token, response)
        self.server.reply(token.pending, response)


class Socket:
    """What asyncio calls a transport."""

    def __init__(self, node: Process, server: Server, client: Connection) -> None:
        self._node = node
        self._client = client
        self._unsent = bytearray()
        self._kernel_bytes = 0  # on their way to the client
        self._is_paused = False
        self._is_reading = True
        self._unread = bytearray()  # in the kernel, while nobody reads
        self._end_has_come = self._end_is_reported = False
        self._closing = self._lost = False
        self.is_unreachable = False  # by what is still on its way
        self._connection = ServerConnection(server, _LISTENER)
        self._connection.connection_made(cast("asyncio.BaseTransport", self))

    # ------------------------------------------------------------ from the client

    def arrive(self, data: bytes) -> None:
        if not self._lost and not self.is_unreachable:
            self._unread += data
            self._read()

    def arrive_end(self) -> None:
        if not self._lost and not self.is_unreachable:
            self._end_has_come = True
            self._read()

    def arrive_reset(self) -> None:
        self._lose(ConnectionResetError())

    def _read(self) -> None:
        if self._unread and self._is_reading:
            data = bytes(self._unread)
            self._unread.clear()
            self._connection.data_received(data)
        if self._end_has_come and self._is_reading and not self._end_is_reported:
            self._is_reading = False
            self._end_is_reported = True
            if not self._connection.eof_received():
                self.close()

    def _taken(self, size: int) -> None:
        self._kernel_bytes -= size
        if self._lost and not self._unsent:
            return
        self._push()
        if self._is_paused and not self._unsent:
            self._is_paused = False
            self._connection.resume_writing()
        if self._closing and not self._unsent:
            self._lose(None)

    # ------------------------------------------------------------ the transport

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 1) if name == "peername" else None

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0, "every byte that is not taken is told"

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        if self._lost or self._closing:
            return
        self._unsent += data
        self._push()
        if self._unsent and not self._is_paused:
            self._is_paused = True
            self._connection.pause_writing()

    def _push(self) -> None:
        while self._unsent and self._kernel_bytes < KERNEL_BYTES:
            piece = bytes(self._unsent[: KERNEL_BYTES - self._kernel_bytes])
            del self._unsent[: len(piece)]
            self._kernel_bytes += len(piece)
            taken = partial(self._node.later, 0, partial(self._taken, len(piece)))
            self._client.on_its_way(piece, taken)

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        assert not self._end_is_reported, "reading goes on behind the end"
        self._is_reading = True
        self._node.later(0, partial(self._read))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._is_reading = False
        if not self._unsent:
            self._lose(None)

    def abort(self) -> None:
        self._closing = True
        self._unsent.clear()
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._is_reading = False
        self._unsent.clear()
        self._client.closed_by_node()
        self._node.later(0, partial(self._connection.connection_lost, error))
