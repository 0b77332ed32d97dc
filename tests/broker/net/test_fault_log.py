"""Lines about clients: one per cause, host and interval, whatever clients do in between."""

import pytest

from broker.net.connection import Connection
from broker.net.fault_log import ENTRIES_MAX, INTERVAL_MS, FaultLog
from broker.observe.events import PartFailed, PeerFault, RequestFailed
from protocol.messages import Request
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.names import ApiKey
from seams.reply_token import ReplyToken
from tests.broker.shell import commit, heartbeat
from tests.broker.wire import Wire


def fail(request: Request, _token: ReplyToken) -> None:
    if isinstance(request, OffsetCommitRequest):
        raise ZeroDivisionError("a mistake of ours")
    raise ValueError("x" * 32_767)


def hit(wire: Wire, host: str, *requests: Request) -> None:
    """Each costs its connection."""
    for request in requests:
        pipe = wire.connect(host)
        pipe.ask(request)
        wire.run_until_idle()
        assert pipe.is_lost


def test_requests_that_fail_in_a_loop_get_a_line_per_cause_host_and_interval() -> None:
    wire = Wire()
    wire.core.on_request = fail
    hit(wire, "10.0.0.1", *[commit()] * 50, heartbeat(), commit())
    hit(wire, "10.0.0.2", commit(), commit())

    logged = [event for event in wire.events if isinstance(event, RequestFailed)]
    assert [(event.api_name, event.peer) for event in logged] == [
        ("OFFSET_COMMIT", "10.0.0.1:4711"),
        ("HEARTBEAT", "10.0.0.1:4711"),
        ("OFFSET_COMMIT", "10.0.0.2:4711"),
    ]
    # All of them are counted, and the next line says how many had none.
    assert wire.dispatcher.routes[ApiKey.OFFSET_COMMIT].stats.failures == 53
    wire.clock.mono_ms += INTERVAL_MS
    hit(wire, "10.0.0.1", commit())
    assert isinstance(wire.events[-1], RequestFailed)
    assert wire.events[-1].suppressed == 50


@pytest.mark.pure
def test_turns_that_fail_outside_of_requests_are_limited_and_cost_one_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    healthy = wire.connect()
    request = Connection._request

    def broken(self: Connection, *args: object) -> None:
        if self.host != "127.0.0.1":
            raise MemoryError
        request(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Connection, "_request", broken)
    hit(wire, "10.0.0.1", *[heartbeat()] * 50)
    failures = [event for event in wire.events if isinstance(event, PartFailed)]
    assert len(failures) == 50
    assert [event.is_logged for event in failures] == [True] + [False] * 49

    healthy.ask(heartbeat())
    wire.run_until_idle()
    assert healthy.answered == [1]
    assert [type(asked) for asked, _ in wire.core.asked] == [HeartbeatRequest]


def test_the_table_of_hosts_is_bounded() -> None:
    fault_log = FaultLog()
    for number in range(2 * ENTRIES_MAX):
        assert fault_log.peer_fault(PeerFault.IDLE, f"host {number}", "", "", 0) is not None
    assert fault_log.peer_fault(PeerFault.IDLE, f"host {2 * ENTRIES_MAX - 1}", "", "", 1) is None
    # At worst a line too many: of the one that was dropped.
    assert fault_log.peer_fault(PeerFault.IDLE, "host 0", "", "", 1) is not None
    assert fault_log.counts[PeerFault.IDLE] == 2 * ENTRIES_MAX + 2
