"""Usual assignments are read by hand: with the same result as by the declared reader."""

from hypothesis import given
from hypothesis import strategies as st

from history.ownership import partitions_of
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    read_assignment,
    write_assignment,
)
from protocol.primitives import Malformed

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
TOPICS = st.builds(
    TopicPartitions,
    topic=st.text(st.sampled_from("abc.-_é☃"), max_size=12),
    partitions=st.lists(INT32, max_size=5),
)
ASSIGNMENTS = st.builds(
    ConsumerProtocolAssignment,
    assigned_partitions=st.lists(TOPICS, max_size=4),
    user_data=st.none() | st.binary(max_size=5),
)


def by_the_reader(raw: bytes) -> list[tuple[str, int]] | None:
    try:
        read = read_assignment(raw)
    except Malformed:
        return None
    return [
        (topic.topic, index) for topic in read.assigned_partitions for index in topic.partitions
    ]


def by_hand(raw: bytes) -> list[tuple[str, int]] | None:
    try:
        return partitions_of(raw)
    except Malformed:
        return None


@given(ASSIGNMENTS, st.integers(0, 3))
def test_a_written_assignment_is_read_as_by_the_reader(
    assignment: ConsumerProtocolAssignment, version: int
) -> None:
    raw = write_assignment(assignment, version)
    assert by_hand(raw) == by_the_reader(raw)


@given(ASSIGNMENTS, st.integers(0, 3), st.data())
def test_damaged_bytes_are_read_as_by_the_reader(
    assignment: ConsumerProtocolAssignment, version: int, data: st.DataObject
) -> None:
    raw = bytearray(write_assignment(assignment, version))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    damaged = bytes(raw[: data.draw(st.integers(1, len(raw)))])
    assert by_hand(damaged) == by_the_reader(damaged)


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_are_read_as_by_the_reader(raw: bytes) -> None:
    assert by_hand(raw) == by_the_reader(raw)
    known = b"\0\1" + raw + b"\xff\xff\xff\xff"
    assert by_hand(known) == by_the_reader(known)
