"""The book of all windows: bounded, forgetful of what is gone, restored after a restart."""

import msgpack
import pytest

from coordinator.member_identity import MemberIdentity
from history.lag.model import GroupLag, LagNote, LagStatus, Reading
from history.lag.records import Sample, UnreadableSample, decode_sample, encode_sample
from history.lag.store import LagLimits, LagStore, RecordTime
from history.lag.window import SampledCommit

START = 1_700_000_000_000
SECOND = 1_000


def lag_of(
    book: LagStore,
    group_id: str,
    readings: list[Reading],
    times: dict[tuple[str, int], RecordTime] | None = None,
    owners: dict[tuple[str, int], tuple[MemberIdentity, ...]] | None = None,
) -> GroupLag:
    partitions = book.group_partitions(group_id, readings, times or {}, owners or {}, START)
    return GroupLag.of(group_id, "Stable", START, partitions)


LIMITS = LagLimits(interval_ms=SECOND, window_commits=3, partitions_max=4)


def reading(partition: int, committed: int | None, end: int | None, at_ms: int = START) -> Reading:
    return Reading("t", partition, committed, None if committed is None else at_ms, 0, end)


def sample(book: LagStore, at_ms: int, **groups: list[Reading]) -> None:
    for group_id, readings in groups.items():
        book.add_readings(group_id, readings, at_ms)
        book.evaluate_windows(group_id, readings, {}, at_ms)
        book.end_group(group_id, {(reading.topic, reading.partition) for reading in readings})
    book.end_round(set(groups), at_ms)


def test_sums_of_a_group_a_topic_and_a_member() -> None:
    book = LagStore(LIMITS)
    ann = MemberIdentity("m-1", None, "ann", "/10.0.0.1")
    bob = MemberIdentity("m-2", None, "bob", "/10.0.0.2")
    readings = [reading(1, 10, 25), reading(0, 10, 30), reading(2, None, 7), reading(3, 99, 5)]
    lag = lag_of(
        book,
        "g",
        readings,
        {("t", 0): RecordTime(START - 90_000, exact=True)},
        {("t", 0): (ann, bob), ("t", 2): (ann,)},
    )
    assert [partition.partition for partition in lag.partitions] == [0, 1, 2, 3]
    assert [(partition.owner, partition.other_owners) for partition in lag.partitions[:2]] == [
        (ann, (bob,)),
        (None, ()),
    ]
    assert [partition.lag for partition in lag.partitions] == [20, 15, None, 0]
    assert [partition.seconds for partition in lag.partitions] == [90.0, None, None, 0.0]
    assert [partition.seconds_exact for partition in lag.partitions] == [True, False, False, True]
    assert lag.partitions[3].note is LagNote.BEYOND_END
    assert (lag.total.partitions, lag.total.lag, lag.total.lag_max) == (4, 35, 20)
    assert lag.total.seconds_max == 90.0
    assert lag.by_topic() == {"t": lag.total}
    assert lag.by_member()[ann].lag == 20
    assert lag.by_member()[None].partitions == 2
    assert lag.catch_up_seconds is None  # no rate is known yet


def test_a_group_that_has_committed_nothing_has_no_lag() -> None:
    lag = lag_of(LagStore(LIMITS), "g", [reading(0, None, 7)])
    assert (lag.total.lag, lag.total.lag_max, lag.catch_up_seconds) == (None, None, None)


def test_a_record_from_the_future_is_not_negative_seconds_old() -> None:
    time = {("t", 0): RecordTime(START + 5_000, exact=True)}
    lag = lag_of(LagStore(LIMITS), "g", [reading(0, 1, 7)], time)
    assert lag.partitions[0].seconds == 0.0


def test_beyond_the_limit_no_window_is_opened_and_that_is_said() -> None:
    book = LagStore(LIMITS)
    sample(
        book, START, a=[reading(n, 1, 5) for n in range(3)], b=[reading(n, 1, 5) for n in (0, 1)]
    )
    assert (book.windows, book.left_out) == (4, 1)
    # What is over the limit still has its lag; it only has no past.
    lag = lag_of(book, "b", [reading(1, 1, 5)])
    assert lag.partitions[0].lag == 4
    # When the other group is gone there is room again, from the next round on.
    sample(book, START + SECOND, b=[reading(n, 1, 5) for n in (0, 1)])
    sample(book, START + SECOND, b=[reading(n, 1, 5) for n in (0, 1)])
    assert (book.windows, book.left_out) == (2, 0)
    assert set(book.groups) == {"b"}


def test_what_a_group_has_no_commit_for_any_more_is_forgotten() -> None:
    book = LagStore(LIMITS)
    sample(book, START, a=[reading(0, 1, 5), reading(1, 1, 5)])
    sample(book, START + SECOND, a=[reading(1, 1, 5)])
    assert [window.partition for window in book.windows_of("a")] == [1]
    assert set(book.ends) == {("t", 1)}
    sample(book, START + 2 * SECOND)
    assert (book.windows, book.groups, book.ends) == (0, {}, {})
    assert list(book.windows_of("a")) == []


def test_only_new_commits_are_worth_writing_down() -> None:
    book = LagStore(LIMITS)
    first = book.add_readings("a", [reading(0, 1, 5)], START)
    assert first == [(("t", 0), SampledCommit(START, 1, 4))]
    assert book.add_readings("a", [reading(0, 1, 9)], START + SECOND) == []
    later = book.add_readings("a", [reading(0, 3, 9, START + SECOND)], START + 2 * SECOND)
    assert later == [(("t", 0), SampledCommit(START + SECOND, 3, 6))]


def test_the_status_survives_a_restart() -> None:
    book = LagStore(LIMITS)
    for n in range(3):
        sample(book, START + n * SECOND, a=[reading(0, 7, 9 + n, START + n * SECOND)])
    assert book.groups["a"].status is LagStatus.ERR
    commits = list(book.groups["a"].windows["t", 0].commits())

    key, value = encode_sample(Sample("a", "t", START, whole=True, partitions={0: commits}))
    kept = decode_sample(key, value)
    again = LagStore(LIMITS)
    for partition, known in kept.partitions.items():
        again.restore(kept.group_id, (kept.topic, partition), known)
    at_ms = START + 3 * SECOND
    sample(again, at_ms, a=[reading(0, 7, 12, START + 2 * SECOND)])
    assert [window.status for window in again.windows_of("a")] == [LagStatus.STALL]
    # And without it nothing would be known yet.
    fresh = LagStore(LIMITS)
    sample(fresh, at_ms, a=[reading(0, 7, 12, START + 2 * SECOND)])
    assert [window.status for window in fresh.windows_of("a")] == [LagStatus.OK]


def test_a_restored_group_that_is_gone_is_forgotten_in_the_first_round() -> None:
    book = LagStore(LIMITS)
    book.restore("gone", ("t", 0), [SampledCommit(START, 1, 1)])
    sample(book, START, a=[reading(0, 1, 5)])
    assert (set(book.groups), book.windows) == ({"a"}, 1)


def with_ends(ends: object) -> bytes:
    said = {"v": 1, "topic": "t", "at": 1, "whole": False, "partitions": [], "ends": ends}
    packed = msgpack.packb(said)
    assert isinstance(packed, bytes)
    return packed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"g", None),
        (b"g", b"\xc1"),
        (b"\xff", b"\x80"),
        (b"g", b"\x80"),
        (b"g", b"\x93\x01\x02\x03"),
        (b"g", with_ends(5)),
        (b"g", with_ends([[0, "7"]])),
        (b"g", with_ends([[0, -1]])),
    ],
)
def test_nonsense_in_the_topic_is_no_sample(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(UnreadableSample):
        decode_sample(key, value)


def test_a_sample_of_another_version_is_refused() -> None:
    key, value = encode_sample(Sample("g", "t", START, whole=False, partitions={}))
    with pytest.raises(UnreadableSample):
        decode_sample(key, value.replace(b"\xa1v\x01", b"\xa1v\x02"))


def test_seconds_are_estimated_where_no_record_was_read() -> None:
    book = LagStore(LIMITS)
    sample(book, START, a=[reading(0, 5, 5)])
    sample(book, START + SECOND, a=[reading(0, 5, 15)])
    assert book.estimated_time(("t", 0), 10) == RecordTime(START + 500, exact=False)
    assert book.estimated_time(("t", 0), 4) is None
    assert book.estimated_time(("other", 0), 4) is None
