"""Warm-up: waits until each partition of the coordinators' topics has a coordinator.

A fresh Kafka creates `__consumer_offsets` and `__transaction_state` when somebody first asks for a
coordinator, and answers with COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR until that is done.
"""

import time
from typing import Final

from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import CoordinatorType, ErrorCode, GroupId
from tests.compare.wire import Wire

_PROBES: Final = tuple(GroupId(letter) for letter in "abcdefghijklmnop")
"""Enough group ids that every one of a few partitions has some."""


def until_serving(port: int, timeout_s: float = 60.0, *, transactions: bool = False) -> None:
    wire = Wire(port, "warm-up")
    deadline = time.monotonic() + timeout_s
    try:
        while not (_all_serving(wire) and (not transactions or _all_transactional(wire))):
            assert time.monotonic() < deadline, "the broker does not become a coordinator"
            time.sleep(0.1)
    finally:
        wire.close()


def _all_serving(wire: Wire) -> bool:
    for group_id in _PROBES:
        wire.send(FindCoordinatorRequest(group_id), 0)
        found = wire.receive(FindCoordinatorResponse, 0)
        assert isinstance(found, FindCoordinatorResponse)
        if found.error_code is not ErrorCode.NONE:
            return False
        wire.send(HeartbeatRequest(group_id), 0)
        beat = wire.receive(HeartbeatResponse, 0)
        assert isinstance(beat, HeartbeatResponse)
        if beat.error_code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return False
    return True


def _all_transactional(wire: Wire) -> bool:
    """Whether each id of a transaction has a coordinator, and producer ids are at hand."""
    for transactional_id in _PROBES:
        wire.send(FindCoordinatorRequest(transactional_id, key_type=CoordinatorType.TRANSACTION), 2)
        found = wire.receive(FindCoordinatorResponse, 2)
        assert isinstance(found, FindCoordinatorResponse)
        if found.error_code is not ErrorCode.NONE:
            return False
        wire.send(InitProducerIdRequest(f"warm.up.{transactional_id}", 60_000), 2)
        answer = wire.receive(InitProducerIdResponse, 2)
        assert isinstance(answer, InitProducerIdResponse)
        if answer.error_code is not ErrorCode.NONE:
            return False
    wire.send(InitProducerIdRequest(None, 60_000), 2)  # the ids above may be older
    given = wire.receive(InitProducerIdResponse, 2)
    assert isinstance(given, InitProducerIdResponse)
    return given.error_code is ErrorCode.NONE
