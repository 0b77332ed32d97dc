"""Checkers of transactions: exactly once, whatever died in between.

What a read_committed consumer has seen never changes. In the end each number of a copier is in the
target once, in the order of its partition, up to the committed position and no further; no
transaction is left open; and no transaction was committed in one partition and aborted in another.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from struct import Struct
from typing import Final

from storage.api import StoredRecord, TopicLog, TopicPartition
from storage.batch.record_batch import read_header, read_records
from tests.simulator.sim import Broken
from tests.simulator.transaction_clients import PARTITIONS, Progress, Visible

_MARKER_KEY: Final = Struct(">hh")
_COMMIT: Final = 1


class TransactionCheckers:
    def __init__(self) -> None:
        self._seen: dict[int, Visible] = {}
        self.reads = 0

    def seen(self, partition: int, visible: Visible) -> None:
        """A consumer has read a partition from its beginning."""
        self.reads += 1
        before = self._seen.get(partition)
        if before is None:
            self._seen[partition] = visible
            return
        if before.end <= visible.end:  # a slow reader may come later with less
            self._seen[partition] = visible
        end = min(before.end, visible.end)
        old = [record for record in before.records if record[0] < end]
        new = [record for record in visible.records if record[0] < end]
        if old != new:
            raise Broken(f"partition {partition}: below {end} there was {old}, now there is {new}")

    def check_end(self, progress: Mapping[str, Progress], ends: Mapping[int, int]) -> None:
        """All copiers are done; `ends` are the log ends of the partitions of the target."""
        for partition, visible in self._seen.items():
            if visible.end != ends[partition]:
                raise Broken(
                    f"partition {partition}: a transaction is open at {visible.end}, the log ends "
                    f"at {ends[partition]}"
                )
            for name, done in progress.items():
                numbers = [number for _, key, number in visible.records if key == name]
                expected = [n for n in range(done.committed) if n % PARTITIONS == partition]
                if numbers != expected:
                    raise Broken(f"partition {partition} has {numbers} of {name}, not {expected}")


def check_decisions(logs: Iterable[TopicLog], shared_epochs: AbstractSet[int]) -> int:
    """No transaction has markers of both kinds; how many markers there are.

    `shared_epochs`: producers of transaction version 1, where an epoch is not one transaction.
    """
    decisions: dict[tuple[int, int], tuple[bool, TopicPartition]] = {}
    epochs: dict[tuple[TopicPartition, int], int] = {}
    count = 0
    for log in logs:
        for batch in log.batches(log.log_start_offset):
            header = read_header(batch)
            if not header.is_control:
                continue
            count += 1
            (fields,) = read_records(batch)
            marker_key = StoredRecord(*fields[:4]).key
            assert marker_key is not None
            is_commit = _MARKER_KEY.unpack_from(marker_key)[1] == _COMMIT
            key = header.producer_id, header.producer_epoch
            if header.producer_id in shared_epochs:
                continue
            known, where = decisions.setdefault(key, (is_commit, log.topic_partition))
            if known != is_commit:
                raise Broken(f"producer {key} was committed and aborted, see {where} and {log}")
            last = epochs.get((log.topic_partition, header.producer_id), -1)
            if header.producer_epoch < last:
                raise Broken(f"the epochs of the markers of producer {key} go back from {last}")
            epochs[log.topic_partition, header.producer_id] = header.producer_epoch
    return count
