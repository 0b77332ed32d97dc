"""Load progress: how far a load is, how long it will take, and its text."""

from broker.observe.events import LoadProgressed
from broker.observe.node_lines import NODE_LINES
from broker.partitions.load_progress import ESTIMATE_AFTER_MS, LoadProgress


def test_what_is_left_is_estimated_from_what_is_done() -> None:
    progress = LoadProgress(began_ms=1_000)
    progress.expect(log_bytes=600, blob_bytes=200)  # 600 + 400 units
    progress.took(records=7, log_bytes=250)
    report = progress.report(1_000 + ESTIMATE_AFTER_MS)
    assert report.left_ms == ESTIMATE_AFTER_MS * 3
    assert (report.records, report.bytes, report.bytes_total) == (7, 250, 600)

    progress.took(records=3, log_bytes=350)
    progress.read(groups=4)
    progress.ready(groups=2, blob_bytes=100)
    report = progress.report(1_800)
    assert (report.partitions, report.partitions_read) == (1, 1)
    assert (report.groups_found, report.groups_ready, report.records) == (4, 2, 10)
    assert (report.elapsed_ms, report.left_ms) == (800, 200)


def test_there_is_no_estimate_before_there_is_something_to_go_by() -> None:
    progress = LoadProgress(0)
    assert progress.report(10_000).left_ms is None  # nothing done
    progress.expect(100, 0)
    progress.took(1, 100)
    assert progress.report(ESTIMATE_AFTER_MS - 1).left_ms is None  # too early
    assert progress.report(ESTIMATE_AFTER_MS).left_ms == 0


def test_more_than_was_expected_is_no_harm() -> None:
    progress = LoadProgress(0)
    progress.expect(100, 10)
    progress.took(9, 500)
    progress.ready(3, 1_000)
    report = progress.report(1_000)
    assert report.left_ms == 0
    assert report.bytes == report.bytes_total == 100


def test_the_line_of_the_log() -> None:
    progress = LoadProgress(0)
    progress.expect(100, 0)
    progress.took(9, 50)
    (line,) = NODE_LINES[LoadProgressed](LoadProgressed(progress.report(1_000)))
    assert line.message == "Loading metadata from __consumer_offsets"
    assert line.fields == {
        "partitions": "0/1",
        "groups": "0/0",
        "records": 9,
        "bytes": "50/100",
        "elapsed_ms": 1_000,
        "left_ms": 1_000,
    }
