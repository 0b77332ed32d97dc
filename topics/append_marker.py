"""Marker append: ends a producer's transaction in one partition, in the appender thread.

The order matters to readers: the marker is in the log, then the list of aborted transactions is up
to date, and only then the last stable offset passes the transaction.
Kafka's counterparts: `UnifiedLog.appendAsLeader`, `ProducerAppendInfo.appendEndTxnMarker`.
"""

from seams.now import Now
from seams.transactions import TransactionMarker
from storage.api import EndMarker, TopicLog
from storage.batch.control_batch import encode_marker
from topics.partition import Partition
from topics.producers import ProducerStates, RejectedSequence


def append_marker(
    partition: Partition, marker: TransactionMarker, now: Now, *, log_append_time: bool = False
) -> RejectedSequence | None:
    """In the appender: append it, or the reason why not. Raises what an append raises."""
    log, producers = partition.log, partition.producers
    assert log is not None, "a partition of the data plane"
    assert producers is not None, "restored before"
    refused = producers.check_marker(marker)
    if refused is not None:
        return refused
    end = EndMarker(
        marker.producer_id, marker.producer_epoch, marker.is_commit, marker.coordinator_epoch
    )
    batch = encode_marker(end, 0, now.wall_ms, log_append_time=log_append_time)
    offset = log.append(batch, now.wall_ms)
    if log.producer_files.rolled_at == offset:
        write_producers(log, producers)
    partition.appended(1, len(batch), now.mono_ms)
    aborted = producers.marker_appended(end, offset, now.wall_ms)
    if aborted is not None:
        log.add_aborted(aborted)
    partition.set_first_unstable(producers.first_unstable_offset)
    return None


def write_producers(log: TopicLog, producers: ProducerStates) -> None:
    """Write the states, as of their offset, to a file that a Kafka reads."""
    log.producer_files.write(producers.offset, producers.stored())
