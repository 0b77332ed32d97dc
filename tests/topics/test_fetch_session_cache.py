"""Fetch session cache: who gets a slot, and who loses one. As Kafka's FetchSessionCacheShard does.

The boundaries were compared with the class of Kafka 4.3.1: a session is stale after more than two
minutes without use, and is evicted for a session that has more partitions, not for an equal one.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicName
from topics.fetch_session import FetchContext, RequestedPartition
from topics.fetch_session_cache import EVICTION_MS, FetchSessionCache, random_session_id
from topics.log_read import LogReadResult


def partitions(count: int, first: int = 0) -> list[RequestedPartition]:
    return [
        RequestedPartition(TopicName("a"), ZERO_TOPIC_ID, FetchPartition(index))
        for index in range(first, first + count)
    ]


class Clients:
    """Clients of one cache. The ids of their sessions are 1, 2, ..."""

    def __init__(self, slots: int, partitions_max: int = 1_000) -> None:
        self._ids: Iterator[int] = iter(range(1, 1_000_000))
        self.cache = FetchSessionCache(
            slots, partitions_max, lambda _: None, lambda: next(self._ids)
        )

    def begin(self, count: int, now_ms: int = 0) -> int:
        asked = partitions(count)
        context = self.cache.accept(
            FetchRequest(session_epoch=0), asked, (), now_ms, uses_topic_ids=False
        )
        assert isinstance(context, FetchContext)
        reads = [LogReadResult(requested, PartitionData()) for requested in asked]
        answer = self.cache.answer(context, reads)
        assert not isinstance(answer, ErrorCode)
        return answer[0]

    def go_on(
        self, session_id: int, epoch: int, now_ms: int = 0, *, added: int = 0, forgotten: int = 0
    ) -> ErrorCode:
        context = self.cache.accept(
            FetchRequest(session_id=session_id, session_epoch=epoch),
            partitions(added, first=100),
            [(TopicName("a"), index) for index in range(forgotten)],
            now_ms,
            uses_topic_ids=False,
        )
        return context if isinstance(context, ErrorCode) else ErrorCode.NONE


def test_a_full_cache_gives_no_session() -> None:
    clients = Clients(slots=2)
    assert [clients.begin(1), clients.begin(1)] == [1, 2]
    assert clients.begin(9) == 0
    assert clients.begin(9, now_ms=EVICTION_MS) == 0
    assert (len(clients.cache), clients.cache.evictions) == (2, 0)


def test_a_session_that_nobody_uses_is_evicted_after_two_minutes() -> None:
    clients = Clients(slots=2)
    clients.begin(5)
    clients.begin(5)
    clients.go_on(1, 1, now_ms=1)
    assert clients.begin(1, now_ms=EVICTION_MS + 1) == 3
    assert clients.go_on(2, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert clients.go_on(1, 2) is ErrorCode.NONE
    assert clients.cache.evictions == 1


@pytest.mark.parametrize(("size", "gets_it"), [(1, False), (2, False), (3, True)])
def test_a_used_session_is_evicted_for_a_larger_one(size: int, *, gets_it: bool) -> None:
    clients = Clients(slots=2)
    clients.begin(3)
    clients.begin(2)
    now_ms = EVICTION_MS + 1
    clients.go_on(1, 1, now_ms)
    clients.go_on(2, 1, now_ms)
    assert (clients.begin(size, now_ms) > 0) is gets_it
    left = [clients.go_on(n, 2, now_ms) for n in (1, 2)]
    smaller = ErrorCode.FETCH_SESSION_ID_NOT_FOUND if gets_it else ErrorCode.NONE
    assert left == [ErrorCode.NONE, smaller]


def test_a_young_session_is_not_evicted_for_a_larger_one() -> None:
    clients = Clients(slots=1)
    clients.begin(1)
    clients.go_on(1, 1, EVICTION_MS)
    assert clients.begin(9, EVICTION_MS) == 0


def test_the_size_is_that_of_the_last_request() -> None:
    clients = Clients(slots=1)
    clients.begin(3)
    now_ms = EVICTION_MS + 1
    clients.go_on(1, 1, now_ms, added=5)
    assert clients.begin(8, now_ms) == 0
    clients.go_on(1, 2, now_ms, forgotten=2)
    assert clients.begin(6, now_ms) == 0
    assert clients.begin(7, now_ms) == 2


def test_no_slot_is_no_session() -> None:
    assert Clients(slots=0).begin(1) == 0


def test_the_partitions_of_all_sessions_are_limited() -> None:
    clients = Clients(slots=10, partitions_max=10)
    assert [clients.begin(11), clients.begin(6), clients.begin(5), clients.begin(4)] == [0, 1, 0, 2]
    assert clients.cache.partitions == 10
    assert clients.begin(3, EVICTION_MS + 1) == 3  # in the place of the oldest
    assert clients.go_on(1, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_grows_beyond_the_limit_is_closed() -> None:
    clients = Clients(slots=10, partitions_max=10)
    clients.begin(6)
    assert clients.go_on(1, 1, added=4) is ErrorCode.NONE
    assert clients.go_on(1, 2, added=4) is ErrorCode.NONE  # they are in it already
    clients.begin(3, EVICTION_MS + 1)
    assert clients.cache.partitions == 3
    assert clients.go_on(2, 1, added=8) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(clients.cache), clients.cache.partitions) == (0, 0)


def test_an_id_that_is_in_use_is_not_given_again() -> None:
    ids = iter([7, 7, 7, 8])
    clients = Clients(slots=3)
    clients.cache._new_session_id = lambda: next(ids)
    assert [clients.begin(1), clients.begin(1)] == [7, 8]


def test_ids_are_positive_and_fit_in_31_bits() -> None:
    ids = {random_session_id() for _ in range(1_000)}
    assert all(0 < session_id < 2**31 for session_id in ids)
    assert len(ids) > 990


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 90_000)), max_size=60)
)
def test_the_cache_never_exceeds_its_limits(steps: list[tuple[int, int, int]]) -> None:
    clients = Clients(slots=4, partitions_max=30)
    cache = clients.cache
    epochs: dict[int, int] = {}
    now_ms = 0
    for kind, number, later_ms in steps:
        now_ms += later_ms
        if kind <= 1:
            session_id = clients.begin(number, now_ms)
            if session_id:
                epochs[session_id] = 1
        elif epochs:
            session_id = sorted(epochs)[number % len(epochs)]
            added = number if kind == 2 else 0
            code = clients.go_on(
                session_id, epochs[session_id], now_ms, added=added, forgotten=number // 3
            )
            epochs[session_id] += 1
            if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                del epochs[session_id]
        sessions = cache._sessions.values()
        assert len(cache) <= 4
        assert cache.partitions == sum(len(session.partitions) for session in sessions) <= 30
        evictable = {
            (session.evictable_size, session.session_id)
            for session in sessions
            if session.evictable_size
        }
        assert evictable <= set(cache._evictable)
        assert len(cache._evictable) <= 2 * 4
