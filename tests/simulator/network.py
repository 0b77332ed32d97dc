"""What may lie between a client and the node? Delay, a cut, a half-open connection, late frames.

A connection carries one request at a time, as most clients do. Frames of one direction keep their
order. A cut loses what is on its way back; what is on its way there may still arrive and be carried
out, so a client that asks again may be heard twice. The node may or may not learn of the cut.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from protocol.messages import Request, Response
from protocol.reply_token import ReplyToken
from tests.simulator.sim import Sim

if TYPE_CHECKING:
    from tests.simulator.node import Node

OnAnswer = Callable[[Response], None]


class Token(ReplyToken):
    """One request in flight: where its answer goes, and what the checkers want to know of it."""

    __slots__ = (
        "answers",
        "claim_holds",
        "connection",
        "handled_ms",
        "handled_step",
        "incarnation",
        "request",
    )

    def __init__(self, connection: "Connection", request: Request, api_version: int) -> None:
        super().__init__(api_version, connection.client_id, "/127.0.0.1")
        self.connection = connection
        self.request = request
        self.incarnation = 0  # of the node that was asked
        self.handled_ms = 0
        self.handled_step = 0
        self.claim_holds = True  # the member and generation that it names are the group's
        self.answers = 0


class Connection:
    def __init__(self, network: "Network", client_id: str) -> None:
        self.client_id = client_id
        self.open = True
        self._network = network
        self._on_answer: OnAnswer | None = None
        self._there_ms = 0  # when the last frame to the node arrives

    def ask(self, request: Request, api_version: int, on_answer: OnAnswer) -> None:
        assert self._on_answer is None, "one request at a time"
        self._on_answer = on_answer
        token = Token(self, request, api_version)
        sim = self._network.sim
        self._there_ms = max(self._there_ms, sim.now_ms + self._network.delay_ms())
        sim.at(self._there_ms, lambda: self._network.deliver(token))

    def answer(self, response: Response) -> None:
        """From the node; lost if the connection is cut before it arrives."""
        sim = self._network.sim
        sim.after(self._network.delay_ms(), lambda: self._arrived(response))

    def close(self) -> None:
        """By the client, or by the network: no answer comes through any more."""
        self.open = False
        self._on_answer = None

    def _arrived(self, response: Response) -> None:
        if not self.open:
            return
        on_answer, self._on_answer = self._on_answer, None
        assert on_answer is not None
        on_answer(response)


class Network:
    def __init__(self, sim: Sim) -> None:
        self.sim = sim
        self.node: Node | None = None
        self.slowness = 1.0
        self.connections: list[Connection] = []

    def connect(self, client_id: str) -> Connection | None:
        """None while nobody listens."""
        if self.node is None:
            return None
        connection = Connection(self, client_id)
        self.connections = [c for c in self.connections if c.open]
        self.connections.append(connection)
        return connection

    def delay_ms(self) -> int:
        delay = self.sim.around(3 * self.slowness)
        return delay + (self.sim.between(200, 4_000) if self.sim.happens(0.004) else 0)

    def deliver(self, token: Token) -> None:
        node = self.node
        if node is None:
            return
        if not token.connection.open and self.sim.happens(0.5):
            return  # it was lost with its connection; else it was in the node's buffer already
        node.handle(token)

    def cut(self, connection: Connection) -> None:
        connection.close()

    def cut_all(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections = []
