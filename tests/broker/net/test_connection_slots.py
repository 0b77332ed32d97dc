"""Connection limits per listener and per second: who waits, who is closed, who is next.

`max.connections` and `max.connections.per.ip` on real sockets are in test_connection_limits.py.
"""

import pytest
from msgspec.structs import replace

from broker.net.connection_slots import RATE_WINDOW_MS, ConnectionSlots, RateLimit
from broker.net.sockets import Bound
from broker.observe.events import PeerFault
from config.limits import NO_CONNECTION_LIMIT, ListenerLimits, ServerLimits
from tests.broker.shell import heartbeat
from tests.broker.wire import LISTENER, Wire

OUTSIDE = Bound("OUTSIDE", (), "0.0.0.0", 9093, "b", 9093)


class Client:
    """A connection that has arrived."""

    def __init__(self, listener: Bound = LISTENER, host: str = "10.0.0.1") -> None:
        self.listener = listener
        self.host = host
        self.is_served = True

    def wait_for_slot(self) -> None:
        self.is_served = False

    def take_slot(self) -> None:
        self.is_served = True


class Slots:
    """The connections of one server in virtual time."""

    def __init__(self, limits: ServerLimits, allowed: int = NO_CONNECTION_LIMIT) -> None:
        self.slots = ConnectionSlots(limits, lambda: allowed)
        self.now_ms = 1_000_000
        self.refused: list[PeerFault] = []

    def connect(self, listener: Bound = LISTENER, host: str = "10.0.0.1") -> Client:
        client = Client(listener, host)
        refusal = self.slots.admit(client, self.now_ms)
        if refusal is not None:
            self.refused.append(refusal.fault)
            if refusal.must_close:
                client.is_served = False
        return client

    def leave(self, client: Client) -> None:
        self.slots.forget(client)
        self.slots.give_slots(self.now_ms)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.slots.give_slots(self.now_ms)


def limits_of(listener: str, **limits: int) -> ServerLimits:
    return ServerLimits(by_listener={listener: ListenerLimits(**limits)})


def test_a_full_listener_makes_its_own_clients_wait_and_no_others() -> None:
    slots = Slots(limits_of("OUTSIDE", max_connections=2))
    first, second, third = (slots.connect(OUTSIDE) for _ in range(3))
    inside = slots.connect()
    assert (first.is_served, second.is_served, third.is_served) == (True, True, False)
    assert inside.is_served
    assert slots.refused == [PeerFault.TOO_MANY_OF_LISTENER]
    slots.leave(inside)
    assert not third.is_served
    slots.leave(first)
    assert third.is_served


def test_a_client_that_waits_and_leaves_takes_no_slot() -> None:
    slots = Slots(limits_of("OUTSIDE", max_connections=1))
    first, second, third = (slots.connect(OUTSIDE) for _ in range(3))
    slots.leave(second)
    assert not third.is_served
    slots.leave(first)
    assert third.is_served
    slots.leave(third)
    assert slots.slots.waiting == 0


def test_only_as_many_wait_as_the_kernel_would_queue_of_each_listener() -> None:
    limits = replace(limits_of("OUTSIDE", max_connections=1), socket_listen_backlog_size=2)
    slots = Slots(replace(limits, max_connections=2))
    clients = [slots.connect(OUTSIDE) for _ in range(4)]
    assert slots.slots.waiting == 2
    assert [slots.connect() for _ in range(3)]
    assert slots.slots.waiting == 4
    slots.leave(clients[3])  # the one that was closed
    slots.leave(clients[0])
    assert clients[1].is_served


def test_the_limit_of_all_holds_for_each_listener() -> None:
    limits = replace(limits_of("OUTSIDE", max_connections=5), max_connections=2)
    slots = Slots(limits)
    first = slots.connect(OUTSIDE)
    slots.connect()
    third, fourth = slots.connect(), slots.connect(OUTSIDE)
    assert slots.refused == [PeerFault.TOO_MANY] * 2
    slots.leave(first)
    assert (third.is_served, fourth.is_served) == (True, False)


def test_the_file_descriptors_limit_too() -> None:
    slots = Slots(ServerLimits(), allowed=1)
    slots.connect()
    assert not slots.connect().is_served


def test_an_address_has_its_limit_whatever_the_listener() -> None:
    limits = ServerLimits(max_connections_per_ip=2, max_connections_by_ip={"10.0.0.9": 1})
    slots = Slots(limits)
    clients = [slots.connect(), slots.connect(OUTSIDE), slots.connect()]
    assert [client.is_served for client in clients] == [True, True, False]
    assert slots.connect(host="10.0.0.9").is_served
    assert not slots.connect(host="10.0.0.9").is_served
    assert slots.refused == [PeerFault.TOO_MANY_PER_IP] * 2
    for client in clients:
        slots.leave(client)
    assert slots.connect().is_served
    assert slots.slots.waiting == 0


# New connections per second


def test_a_burst_of_one_window_is_served_and_then_the_rate() -> None:
    slots = Slots(ServerLimits(max_connection_creation_rate=5))
    burst = [slots.connect() for _ in range(RATE_WINDOW_MS // 1_000 * 5)]
    assert all(client.is_served for client in burst)
    late, later = slots.connect(), slots.connect()
    assert slots.refused == [PeerFault.TOO_FAST] * 2
    assert slots.slots.next_slot_ms(slots.now_ms) == slots.now_ms + 201
    slots.advance(200)
    assert (late.is_served, later.is_served) == (True, False)
    slots.advance(199)
    assert not later.is_served
    slots.advance(1)
    assert later.is_served
    assert slots.slots.next_slot_ms(slots.now_ms) is None


def test_the_rate_of_a_listener_is_its_own() -> None:
    limits = limits_of("OUTSIDE", max_connection_creation_rate=1)
    slots = Slots(limits)
    outside = [slots.connect(OUTSIDE) for _ in range(11)]
    assert [client.is_served for client in outside] == [True] * 10 + [False]
    assert all(slots.connect().is_served for _ in range(50))


def test_a_rate_of_nothing_serves_nobody_and_waits_for_no_time() -> None:
    slots = Slots(ServerLimits(max_connection_creation_rate=0))
    assert not slots.connect().is_served
    assert slots.slots.next_slot_ms(slots.now_ms) is None
    slots.advance(1 << 40)
    assert slots.slots.waiting == 1


def test_a_full_server_is_not_woken_by_the_rate() -> None:
    slots = Slots(ServerLimits(max_connection_creation_rate=1, max_connections=1))
    slots.connect()
    slots.connect()
    assert slots.slots.next_slot_ms(slots.now_ms) is None


@pytest.mark.parametrize("per_second", [1, 7, 1_000])
def test_over_a_long_time_it_is_the_rate(per_second: int) -> None:
    rate = RateLimit(per_second)
    taken = 0
    for now_ms in range(100_000):
        while taken < 200_000 and rate.wait_ms(now_ms) == 0:
            rate.take(now_ms)
            taken += 1
    expected = per_second * 110  # ten seconds in advance
    assert expected - 1 <= taken <= expected + 1


def test_a_changed_rate_starts_with_a_full_window() -> None:
    limits = ServerLimits(max_connection_creation_rate=1)
    slots = Slots(limits)
    clients = [slots.connect() for _ in range(12)]
    slots.slots.set_limits(replace(limits, max_connections_per_ip=100))
    slots.advance(0)
    assert sum(client.is_served for client in clients) == 10
    slots.slots.set_limits(replace(limits, max_connection_creation_rate=NO_CONNECTION_LIMIT))
    slots.advance(0)
    assert all(client.is_served for client in clients)


def test_the_server_gives_slots_when_their_time_has_come() -> None:
    wire = Wire(ServerLimits(max_connection_creation_rate=1))
    first = [wire.connect() for _ in range(10)]
    late = wire.connect()
    late.ask(heartbeat())
    wire.run_until_idle()
    assert len(wire.core.asked) == 0
    wire.pass_time(999)
    assert len(wire.core.asked) == 0
    wire.pass_time(2)
    wire.run_until_idle()
    assert len(wire.core.asked) == 1
    assert not any(pipe.is_lost for pipe in (*first, late))
