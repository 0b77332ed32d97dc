"""Outcome: replies that are made later are those that a list would have."""

import pytest

from coordinator.outcome import MADE_AT_ONCE, LaterReplies, Reply, replies_to_many
from protocol.messages.heartbeat import HeartbeatResponse
from seams.reply_token import ReplyToken


def made(count: int) -> tuple[list[Reply], list[range], LaterReplies]:
    """The replies, which were made, and what makes them."""
    replies = [Reply(ReplyToken(n, "c", "h"), HeartbeatResponse(n)) for n in range(count)]
    asked: list[range] = []

    def make(first: int, end: int) -> list[Reply]:
        asked.append(range(first, end))
        return replies[first:end]

    return replies, asked, LaterReplies(count, make)


def test_they_are_the_sequence_that_they_stand_for() -> None:
    replies, asked, later = made(7)
    assert len(later) == 7
    assert not asked
    assert list(later) == replies
    assert [later[n] for n in range(-7, 7)] == replies + replies
    with pytest.raises(IndexError):
        later[7]
    for first in range(-8, 9):
        for end in (*range(-8, 9), None):
            assert later[first:end] == replies[first:end]
    assert later[::-2] == replies[::-2]


def test_a_slice_makes_no_others() -> None:
    _, asked, later = made(1_000)
    assert len(later[400:800]) == 400
    assert asked == [range(400, 800)]


def test_few_are_made_at_once() -> None:
    replies, asked, later = made(MADE_AT_ONCE)
    assert replies_to_many(MADE_AT_ONCE, later._make) == replies
    assert asked == [range(MADE_AT_ONCE)]
    assert isinstance(replies_to_many(MADE_AT_ONCE + 1, later._make), LaterReplies)
    assert asked == [range(MADE_AT_ONCE)]
