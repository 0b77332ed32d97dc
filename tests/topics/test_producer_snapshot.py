"""The producer snapshot: what it keeps, what it costs, and when it is not to be believed."""

import json

import pytest

from protocol.names import ErrorCode
from tests.topics.batches import batch
from tests.topics.plane import Plane
from topics.events import SaveFailed
from topics.producer_snapshot import FRAME_PRODUCERS_MAX
from topics.settings import TopicSettings

SAVE_MS = 60_000
RETENTION_CHECK_MS = 300_000


def send(plane: Plane, sequence: int, producer_id: int = 7, topic: str = "a") -> int:
    """The offset that the batch got, or had got before."""
    records = batch(
        timestamp=plane.now.wall_ms,
        producer_id=producer_id,
        producer_epoch=0,
        sequence=sequence,
    )
    result = plane.produce(topic, records)
    assert result.error_code is ErrorCode.NONE
    return result.base_offset


def content(plane: Plane) -> bytes:
    assert plane.producer_snapshot.content is not None
    return plane.producer_snapshot.content


# What it costs


def test_nothing_is_written_where_nothing_has_changed(plane: Plane) -> None:
    plane.given("a")
    plane.advance(3 * SAVE_MS)
    assert plane.producer_snapshot.content is None
    send(plane, 0)
    plane.advance(5 * SAVE_MS)
    assert plane.producer_snapshot.saves == 1
    plane.restart()
    plane.advance(3 * SAVE_MS)
    plane.stop()
    assert plane.producer_snapshot.saves == 1


def test_only_what_changed_is_written(plane: Plane) -> None:
    plane.given("a")
    for producer_id in range(500):
        send(plane, 0, producer_id)
    plane.advance(SAVE_MS)
    whole = content(plane)
    send(plane, 1, 250)
    plane.advance(SAVE_MS)
    assert content(plane).startswith(whole)
    assert len(content(plane)) < len(whole) + 150


def test_changes_that_outgrow_the_picture_are_folded_into_a_new_one(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.producer_snapshot.CHANGES_BYTES_MIN", 1_000)
    plane.given("a")
    sizes = []
    for sequence in range(60):
        send(plane, sequence)
        plane.advance(SAVE_MS)
        sizes.append(len(content(plane)))
    assert max(sizes) < 2_500
    plane.restart()
    assert send(plane, 59) == 59


def test_many_producers_are_written_in_pieces_and_read_back(plane: Plane) -> None:
    plane.given("a")
    producers = 2 * FRAME_PRODUCERS_MAX + 1
    for producer_id in range(producers):
        send(plane, 0, producer_id)
    plane.advance(SAVE_MS)
    plane.log("a").batches = _forbid_reads  # type: ignore[method-assign, assignment] # a spy
    plane.restart()
    assert [send(plane, 0, producer_id) for producer_id in range(producers)] == list(
        range(producers)
    )


def test_a_partition_without_producers_has_an_entry_too(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 3)
    plane.stop()
    plane.log("a").batches = _forbid_reads  # type: ignore[method-assign, assignment] # a spy
    plane.restart()
    assert send(plane, 0) == 3


# What it keeps


def test_retention_does_not_end_what_is_known_of_a_producer(plane: Plane) -> None:
    plane.given("a", retention_ms="1000")
    assert [send(plane, 0), send(plane, 1)] == [0, 1]
    plane.advance(SAVE_MS)
    send(plane, 2)
    plane.advance(RETENTION_CHECK_MS)
    assert plane.log("a").log_start_offset == 3
    plane.restart()
    assert send(plane, 2) == 2
    assert send(plane, 3) == 3


def test_retention_first_reads_what_a_killed_daemon_appended_behind_the_snapshot(
    plane: Plane,
) -> None:
    plane.given("a", retention_ms="1000")
    send(plane, 0)
    plane.advance(SAVE_MS)
    assert [send(plane, 1), send(plane, 2)] == [1, 2]
    plane.restart()  # killed: the snapshot is as of offset 1
    plane.advance(2 * RETENTION_CHECK_MS)
    assert plane.log("a").log_start_offset == 3
    plane.restart()
    assert send(plane, 2) == 2
    assert send(plane, 3) == 3


def test_the_state_outlives_retention_for_as_long_as_producers_are_remembered() -> None:
    plane = Plane(TopicSettings(producer_id_expiration_ms=1_000_000))
    plane.given("a", retention_ms="1000")
    send(plane, 0)
    plane.advance(2 * RETENTION_CHECK_MS)
    plane.restart()
    assert send(plane, 0) == 0
    plane.advance(1_000_000 + 600_000)
    assert send(plane, 0) == 1


# When it is not to be believed


def test_a_snapshot_beyond_a_log_that_was_cut_does_not_come_back_once_the_log_is_as_long_again(
    plane: Plane,
) -> None:
    plane.given("a")
    for sequence in range(4):
        send(plane, sequence)
    plane.stop()
    del plane.log("a").stored[1:]  # a power failure
    plane.restart()
    plane.given_records("a", 5)  # no producer asks for the state
    plane.restart()  # killed before the next save
    assert send(plane, 1) == 6
    assert send(plane, 2) == 7


def test_nor_does_it_on_a_disk_that_was_full_at_the_start(plane: Plane) -> None:
    plane.given("a")
    for sequence in range(4):
        send(plane, sequence)
    plane.stop()
    del plane.log("a").stored[1:]  # a power failure
    plane.producer_snapshot.fail_next = OSError(28, "No space left on device")
    plane.restart()
    plane.given_records("a", 5)
    plane.restart()  # killed before the next save
    assert send(plane, 1) == 6


def test_a_disk_error_of_that_at_a_start_is_reported(plane: Plane) -> None:
    plane.given("a")
    send(plane, 0)
    plane.stop()
    plane.log("a").stored.clear()
    plane.producer_snapshot.fail_next = OSError(28, "No space left on device")
    plane.restart()
    assert [event.what for event in plane.events_of(SaveFailed)] == ["producer snapshot"]
    assert send(plane, 0) == 0


@pytest.mark.parametrize("cut", [1, 7, 9, 30])
def test_what_a_crash_tore_off_is_read_from_the_log(plane: Plane, cut: int) -> None:
    plane.given("a")
    send(plane, 0)
    plane.advance(SAVE_MS)
    send(plane, 1)
    plane.advance(SAVE_MS)
    plane.producer_snapshot.content = content(plane)[:-cut]
    plane.restart()
    assert send(plane, 1) == 1
    plane.advance(SAVE_MS)
    plane.log("a").batches = _forbid_reads  # type: ignore[method-assign, assignment] # a spy
    plane.restart()
    assert send(plane, 1) == 1


def test_a_flipped_bit_costs_no_more_than_what_stands_behind_it(plane: Plane) -> None:
    plane.given("a")
    for sequence in range(3):
        send(plane, sequence)
        plane.advance(SAVE_MS)
    sound = content(plane)
    for at in range(0, len(sound), 3):
        damaged = bytearray(sound)
        damaged[at] ^= 0x10
        plane.producer_snapshot.content = bytes(damaged)
        plane.restart()
        assert send(plane, 2) == 2


def test_what_an_earlier_version_wrote_is_read(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 5)
    key = [plane.topic_id("a").hex, 0]
    entry = [7, 0, plane.now.wall_ms, [[3, 3, 2, plane.now.wall_ms]]]
    document = {"format": 1, "partitions": [[*key, 5, [entry]]]}
    plane.producer_snapshot.content = json.dumps(document).encode()
    plane.log("a").batches = _forbid_reads  # type: ignore[method-assign, assignment] # a spy
    plane.restart()
    assert send(plane, 3) == 2
    assert send(plane, 4) == 5
    plane.advance(SAVE_MS)
    plane.restart()
    assert send(plane, 4) == 5


def _forbid_reads(from_offset: int) -> None:
    raise AssertionError(f"the log was read from {from_offset}")
