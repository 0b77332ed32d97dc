"""Lag topic: writes lag samples to `__group_lag`, and reads them back at a start.

Samples go to the page cache, like topic data and unlike offsets: a crash of the machine may lose
the last of them, and the next round of the sampler makes new ones. The topic has time-based
retention and is not compacted: people and Spark read how lag developed over weeks. A start finds
the whole window of each group in the last `rollcall.lag.keepalive.ms` (sampler.py writes it). A
disk fault is reported once; sampling continues without the topic.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from broker.loop.clock import SystemClock
from broker.observe.events import ShellEvent, Warned
from history.lag.records import Sample, UnreadableSample, decode_sample, encode_sample
from protocol.names import LAG_TOPIC
from seams.io_executor import INLINE, IoExecutor
from seams.now import Now
from storage.api import Corrupt, Record, TopicLog, TopicPartition
from storage.batch.record_batch import InvalidBatch, encode_batch, stored_records
from topics.partition import Partition

PARTITION: Final = TopicPartition(LAG_TOPIC, 0)
RETENTION_CHECK_MS: Final = 300_000


class LagTopic:
    """The one partition of `__group_lag`; implements the sampler's LagLog."""

    def __init__(
        self,
        partition: Partition | None,
        clock: SystemClock,
        observe: Callable[[ShellEvent], None],
        *,
        readable: Callable[[TopicPartition, Now], None],
        tail_ms: int,
        tail_bytes_max: int,
        appender: IoExecutor = INLINE,
    ) -> None:
        """`readable` is called after each append; the last `tail_ms` of samples are read back."""
        self._appender = appender
        self.bytes_written = 0
        self._partition = partition
        self._clock = clock
        self._observe = observe
        self._readable = readable
        self._tail_ms = tail_ms
        self._tail_bytes_max = tail_bytes_max
        self._failed = False
        self._retained_at_ms = 0

    @property
    def _log(self) -> TopicLog | None:
        return None if self._partition is None else self._partition.log

    def append(self, samples: Sequence[Sample], now_ms: int) -> None:
        """In one batch, readable once the data plane's appender has written it."""
        log, partition = self._log, self._partition
        if log is None or partition is None or self._failed or not samples:
            return
        batch = encode_batch([Record(*encode_sample(sample)) for sample in samples], 0, now_ms)
        now = self._clock.now()
        retains = now.mono_ms - self._retained_at_ms >= RETENTION_CHECK_MS
        if retains:
            self._retained_at_ms = now.mono_ms

        def write() -> None:
            """In the appender."""
            log.append(batch, now_ms)
            partition.appended(len(samples), len(batch), now.mono_ms)
            if retains:
                log.enforce_retention(now_ms)

        def written(fault: Exception | None) -> None:
            if fault is None:
                self.bytes_written += len(batch)
                self._readable(PARTITION, now)
            elif not self._failed:
                self._fail(fault)

        self._appender.submit(write, written)

    async def read_back(self) -> AsyncIterator[list[Sample]]:
        """Batch by batch, oldest first; as much of the tail as the limits allow."""
        log = self._log
        if log is None or log.high_watermark <= log.log_start_offset:
            return
        loop = asyncio.get_running_loop()
        try:
            tail = await loop.run_in_executor(None, self._read_tail, log)
        except (OSError, Corrupt, IndexError, InvalidBatch) as fault:
            # New samples can still be appended: the windows start empty.
            self._observe(Warned("Lag samples cannot be read back", {"reason": str(fault)}))
            return
        while tail:
            yield _samples(tail.popleft())

    def _read_tail(self, log: TopicLog) -> deque[bytes]:
        """In a thread: the raw batches."""
        newest = log.max_timestamp()
        found = None if newest is None else log.offset_for_timestamp(newest[0] - self._tail_ms)
        tail: deque[bytes] = deque()
        size = 0
        for batch in log.batches(log.log_start_offset if found is None else found[1]):
            tail.append(batch)
            size += len(batch)
            while size > self._tail_bytes_max:
                size -= len(tail.popleft())
        return tail

    def _fail(self, fault: Exception) -> None:
        self._failed = True
        self._observe(Warned("Lag samples are not kept any more", {"reason": str(fault)}))


def _samples(batch: bytes) -> list[Sample]:
    """The samples whose version is known."""
    samples: list[Sample] = []
    try:
        records = stored_records(batch)
    except InvalidBatch:
        return samples
    for record in records:
        try:
            samples.append(decode_sample(record.key, record.value))
        except UnreadableSample:
            continue
    return samples
