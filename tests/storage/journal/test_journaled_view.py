"""Journaled view: readers of a journaled partition see what is stored, and change nothing."""

import pytest

from coordinator.offsets.log_producers import LogProducers
from storage.api import (
    AbortedTransaction,
    BatchProducer,
    EndMarker,
    LogClosed,
    LogSettings,
    TopicPartition,
)
from storage.batch.record_batch import iter_batches
from storage.journal.journaled_view import JournaledView
from tests.storage.rig import NOW_MS, OFFSETS, TOPIC_ID, Rig, batch, keys_in, new_disk, records

KEY = TopicPartition(OFFSETS, 0)


def test_readers_see_what_is_stored_and_no_more() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    view = rig.store.partitions()[KEY]
    log.append(records("a"), NOW_MS)
    rig.journal.pump()
    log.append(records("b"), NOW_MS + 1)
    assert (view.log_start_offset, view.high_watermark, view.log_end_offset) == (0, 1, 2)
    content = view.read(0, 1000, up_to=1 << 40, at_least_one=True)
    assert [header.base_offset for _, header in iter_batches(content)] == [0]
    assert view.read(1, 1000, up_to=1 << 40, at_least_one=True) == b""
    assert view.read(2, 1000, up_to=1 << 40, at_least_one=True) == b""
    with pytest.raises(IndexError):
        view.read(3, 1000, up_to=1 << 40, at_least_one=True)
    assert keys_in(list(view.batches(0))) == ["a"]
    assert view.max_timestamp() == (NOW_MS, 0)
    assert view.offset_for_timestamp(NOW_MS + 1) is None


def test_what_is_in_the_segments_but_not_reported_is_not_shown() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    view = rig.store.partitions()[KEY]
    log.append(records("a"), NOW_MS)
    log.append(records("b"), NOW_MS)
    rig.journal.pump()
    log.stored_position = 1  # as between the write to the segment and the report
    assert keys_in(list(view.batches(0))) == ["a"]
    content = view.read(0, 1000, up_to=1 << 40, at_least_one=True)
    assert [header.base_offset for _, header in iter_batches(content)] == [0]


def test_nobody_else_writes_deletes_or_drops() -> None:
    rig = Rig(new_disk())
    rig.log().append(records("a"), NOW_MS)
    rig.journal.pump()
    view = rig.store.partitions()[KEY]
    with pytest.raises(LogClosed, match="daemon itself"):
        view.append(batch("intruder"), NOW_MS)
    assert view.delete_before(1) == 0
    assert view.enforce_retention(1 << 60) == 0
    view.flush()
    view.close()
    rig.log().append(records("b"), NOW_MS)
    rig.journal.pump()
    assert rig.keys() == ["a", "b"]


def test_facts_are_the_partitions() -> None:
    rig = Rig(new_disk())
    rig.log()
    view = rig.store.partitions()[KEY]
    assert (view.topic_partition, view.topic_id, view.leader_epoch) == (KEY, TOPIC_ID, 0)
    assert view.size_bytes == 0
    view.settings = LogSettings(segment_bytes=99)
    log = rig.store.partition_log(KEY)
    assert log is not None
    assert log.settings.segment_bytes == view.settings.segment_bytes == 99


def test_readers_ask_the_coordinator_which_transactions_were_aborted() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    view = rig.store.partitions()[KEY]
    assert isinstance(view, JournaledView)
    log.append(records("a", "b"), NOW_MS, BatchProducer(7, 0))
    log.append_marker(EndMarker(7, 0, is_commit=False, coordinator_epoch=0), NOW_MS)
    rig.journal.pump()
    content = view.read(0, 1000, up_to=1 << 40, at_least_one=True)
    assert not view.aborted_among(content)
    producers = LogProducers()
    producers.wrote(7, 0, 0, 1, 1, NOW_MS)
    producers.ended(EndMarker(7, 0, is_commit=False, coordinator_epoch=0), 2, NOW_MS)
    view.aborted_source = producers
    assert view.aborted_among(content) == [AbortedTransaction(7, 0, 2, 3)]
    assert not view.aborted_among(b"")
