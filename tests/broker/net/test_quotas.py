"""Unsent bytes: how much one Fetch answer may have, and how often the backlogs are counted."""

import pytest

from broker.net.quotas import UnsentBytes

CONNECTION_MAX = 1_000
TOTAL_MAX = 8_000


class SlowClient:
    """A connection whose client has not read so much."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.times_read = 0

    @property
    def unsent_bytes(self) -> int:
        self.times_read += 1
        return self._size

    def read(self, size: int) -> None:
        self._size -= size


def full(clients: int, size: int) -> tuple[UnsentBytes, list[SlowClient]]:
    unsent = UnsentBytes(CONNECTION_MAX, TOTAL_MAX)
    senders = [SlowClient(size) for _ in range(clients)]
    for sender in senders:
        unsent.set_backlog(sender, size)
    return unsent, senders


def test_an_answer_may_be_as_large_as_a_connection_may_have_unsent() -> None:
    assert full(0, 0)[0].answer_max(1) == CONNECTION_MAX


@pytest.mark.parametrize(
    ("unsent_bytes", "connections", "expected"),
    [
        (4_000, 100, 1_000),  # a quarter of the room
        (6_000, 100, 500),
        (7_960, 100, 40),  # a share of a half of the limit
        (9_999, 100, 40),
        (9_999, 4, 1_000),
        (9_999, 0, 1_000),
    ],
)
def test_the_less_room_the_smaller_the_answer(
    unsent_bytes: int, connections: int, expected: int
) -> None:
    unsent, _ = full(1, unsent_bytes)
    assert unsent.answer_max(connections) == expected


def test_answers_that_wait_for_an_earlier_one_take_room_too() -> None:
    unsent, _ = full(0, 0)
    unsent.kept_bytes = 6_000
    assert unsent.answer_max(100) == 500


def test_many_fetchers_that_read_nothing_exceed_the_limit_by_a_half() -> None:
    unsent, _ = full(0, 0)
    total = 0
    for _ in range(1_000):
        size = unsent.answer_max(1_000)
        total += size
        unsent.set_backlog(SlowClient(size), size)
    assert total <= TOTAL_MAX * 3 // 2


def test_what_clients_have_read_becomes_room_without_counting_all() -> None:
    unsent, senders = full(40, 200)
    assert unsent.answer_max(40) == 100
    for sender in senders:
        sender.read(200)
    for _ in range(10):
        unsent.read_some_again()
    assert [sender.times_read for sender in senders] == [1] * 40
    assert unsent.answer_max(40) == CONNECTION_MAX


def test_all_backlogs_are_counted_only_after_some_were_set() -> None:
    unsent, senders = full(40, 250)
    assert not unsent.allows(1)  # all were set: they are counted
    for _ in range(9):
        unsent.set_backlog(senders[0], 250)
        assert not unsent.allows(1)
    assert senders[0].times_read == 1
    for sender in senders:
        sender.read(250)
    unsent.set_backlog(senders[0], 0)
    assert unsent.allows(1)
