"""Cleaner properties: whatever is written, cleaned and interrupted, no newest value is lost.

A state machine writes batches, rolls, syncs, cleans with maps large and tiny at times early and
late, reads on with an iterator that it began long ago, and crashes in the middle of any of it. Its
model is the list of all records. After each step a reader from the start must come to the same
values as one who had seen them all; what was there at the last sync must be there after a crash.
"""

import random
from collections.abc import Iterator
from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage.api import Record
from storage.batch.record_batch import encode_batch, read_header, read_records
from storage.cleaner.cleaner import (
    inspect_log,
    plan_pass,
    read_clean_offsets,
    swap_in_pass,
    write_clean_offsets,
)
from storage.cleaner.cleaner_pass import run_pass
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import remove_deleted
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.cleaner.rig import KEY, SETTINGS
from tests.storage.rig import DATA, NOW_MS, TOPIC_ID, new_disk

KEYS = [f"k{number}" for number in range(6)]


class CleanedLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = new_disk()
        self.records: list[tuple[int, str, str | None]] = []
        self.synced_to = 0
        self.now_ms = NOW_MS
        self.serial = 0
        self.reader: Iterator[bytes] | None = None
        self.read: dict[str, str] = {}
        self.read_to = -1
        self.log: PartitionLog

    @initialize()
    def first_start(self) -> None:
        self._start(self.disk)

    def _start(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.store = LogStore(disk, DATA, lambda _: SETTINGS)
        assert not self.store.open().damaged
        self.log = self.store.partition_log(KEY) or self.store.create(KEY, TOPIC_ID, SETTINGS)
        end = self.log.log_end_offset
        assert end >= self.synced_to
        # What was never synced may be gone, also from the middle: a gap costs nothing behind it.
        there = {fields[0] for batch in self.log.batches(0) for fields in read_records(batch)}
        self.records = [
            record for record in self.records if record[0] < self.synced_to or record[0] in there
        ]
        self.reader = None

    @rule(
        some=st.dictionaries(st.sampled_from(KEYS), st.booleans(), min_size=1, max_size=3),
        roll=st.booleans(),
    )
    def write(self, some: dict[str, bool], roll: bool) -> None:
        base = self.log.log_end_offset
        batch: list[Record] = []
        for offset, (key, has_value) in enumerate(some.items(), start=base):
            self.serial += 1
            value = f"v{self.serial}" if has_value else None
            batch.append(Record(key.encode(), None if value is None else value.encode()))
            self.records.append((offset, key, value))
        end = base + len(batch)
        encoded = encode_batch(batch, base, self.now_ms)
        self.log.append_placed([(encoded, end - 1, self.now_ms)], self.now_ms)
        if roll:
            self.log.roll()

    @rule()
    def sync(self) -> None:
        if self.log.segments and self.log.segments[-1].size:
            self.log.roll()
        self.log.flush()
        self.store.write_checkpoints()
        self.synced_to = self.log.log_end_offset

    @rule(later_ms=st.sampled_from([0, 1, 999, 1_000, 5_000]))
    def wait(self, later_ms: int) -> None:
        self.now_ms += later_ms

    @rule(map_bytes=st.sampled_from([1, 500, 1 << 20]))
    def clean(self, map_bytes: int) -> None:
        offsets = read_clean_offsets(self.disk, DATA)
        stable_to = self.store.durable_to(self.log)
        found = inspect_log(
            self.log, checkpoint=offsets.get(KEY), stable_to=stable_to, now_ms=self.now_ms
        ).found
        if found.first_uncleanable <= found.first_dirty:
            return
        job = plan_pass(
            self.log,
            found,
            stable_to=stable_to,
            now_ms=self.now_ms,
            map_bytes=map_bytes,
            producers={},
        )
        result = run_pass(self.disk, job)
        assert found.first_dirty < result.end_offset <= found.first_uncleanable
        replaced = swap_in_pass(self.disk, self.log, result)
        write_clean_offsets(self.disk, DATA, {KEY: result.end_offset})
        remove_deleted(self.disk, self.log, replaced)

    @rule(map_bytes=st.sampled_from([1, 1 << 20]), chance=st.integers(0, 2**32))
    def crash_while_cleaning(self, map_bytes: int, chance: int) -> None:
        dice = random.Random(chance)
        self.disk.cut_power_at = self.disk.operations + dice.randrange(60)
        with suppress(PowerCut):
            self.clean(map_bytes)
        is_kill = dice.random() < 0.3
        self._start(self.disk.after_kill() if is_kill else self.disk.after_crash(dice))

    @rule()
    def begin_to_read(self) -> None:
        self.reader, self.read, self.read_to = self.log.batches(0), {}, -1

    @precondition(lambda self: self.reader is not None)
    @rule(count=st.integers(1, 5))
    def read_on(self, count: int) -> None:
        """Through any number of swaps: what the iterator has begun with, it goes on with."""
        assert self.reader is not None
        for _ in range(count):
            batch = next(self.reader, None)
            if batch is None:
                # It has seen the log as it was at some time, or newer: of no key less than that.
                self.reader = None
                return
            assert read_header(batch).base_offset > self.read_to, "forwards"
            for offset, _, key, _, _ in read_records(batch):
                assert (offset, (key or b"").decode()) in self._keys
                self.read_to = offset

    @property
    def _keys(self) -> set[tuple[int, str]]:
        return {(offset, key) for offset, key, _ in self.records}

    @invariant()
    def a_reader_comes_to_the_newest_values(self) -> None:
        if not hasattr(self, "log"):
            return
        expected: dict[str, str] = {}
        for _, key, value in self.records:
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        found: dict[str, str] = {}
        known = {offset: (key, value) for offset, key, value in self.records}
        for batch in self.log.batches(0):
            for offset, _, raw_key, raw_value, _ in read_records(batch):
                name = (raw_key or b"").decode()
                text = None if raw_value is None else raw_value.decode()
                assert known[offset] == (name, text)
                if text is None:
                    found.pop(name, None)
                else:
                    found[name] = text
        assert found == expected


TestCleanedLog = CleanedLog.TestCase
TestCleanedLog.settings = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
