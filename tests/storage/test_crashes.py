"""Whatever happens to the disk: what was reported stored is there, in order, and nothing but it.

A state machine appends to three partitions through the journal, on a simulated disk, and at any
time kills the process, cuts the power (losing whatever a real disk may lose of what was not
synced), stops cleanly, fails an fsync or fills the disk. Its model is a list per partition. After a
start a partition holds a prefix of what was appended, as long at least as what was reported stored.
"""

import random
from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage.api import LogClosed, TopicPartition
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import NOW_MS, OFFSETS, Rig, new_disk, records

PARTITIONS = (0, 1, 2)


class CrashingLog(RuleBasedStateMachine):
    is_synced = True

    def __init__(self) -> None:
        super().__init__()
        self.disk = new_disk()
        self.appended: dict[int, list[str]] = {partition: [] for partition in PARTITIONS}
        self.promised = dict.fromkeys(PARTITIONS, 0)
        self.serial = 0

    @initialize()
    def first_start(self) -> None:
        self._start(self.disk)

    def _start(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.rig = Rig(disk, is_synced=self.is_synced)
        assert not self.rig.opened.damaged
        self.logs = {partition: self.rig.log(partition) for partition in PARTITIONS}
        for partition, log in self.logs.items():
            found = self.rig.keys(partition)
            assert found == self.appended[partition][: len(found)]
            assert len(found) >= self.promised[partition]
            assert log.end_position == log.stored_position == len(found)
            self.appended[partition] = found
            self.promised[partition] = len(found)

    @property
    def is_open(self) -> bool:
        return self.rig.journal.closed_because is None

    @rule(partition=st.sampled_from(PARTITIONS), count=st.integers(1, 4), size=st.integers(0, 300))
    def append(self, partition: int, count: int, size: int) -> None:
        names = [f"{self.serial + number}-{'x' * size}" for number in range(count)]
        self.serial += count
        try:
            end = self.logs[partition].append(records(*names), NOW_MS + self.serial)
        except LogClosed:
            assert not self.is_open
            return
        self.appended[partition] += names
        assert end == len(self.appended[partition])

    @rule()
    def pump(self) -> None:
        self.rig.journal.pump()

    @rule()
    def checkpoint(self) -> None:
        """What the daemon does in a thread of its own, at any moment after a file was passed."""
        self.rig.journal.checkpointer.run()

    @rule(chance=st.integers(0, 2**32), steps=st.integers(0, 30))
    def cut_power_in_a_checkpoint(self, chance: int, steps: int) -> None:
        self.disk.cut_power_at = self.disk.operations + steps
        with suppress(PowerCut):
            self.rig.journal.checkpointer.run()
        self._start(self._lose_power(random.Random(chance)))

    def _lose_power(self, dice: random.Random) -> SimulatedDisk:
        if not self.is_synced:
            self.promised = dict.fromkeys(PARTITIONS, 0)
        return self.disk.after_crash(dice)

    @rule(chance=st.integers(0, 2**32))
    def cut_power(self, chance: int) -> None:
        self._start(self._lose_power(random.Random(chance)))

    @rule(chance=st.integers(0, 2**32), steps=st.integers(0, 12))
    def cut_power_in_a_flush(self, chance: int, steps: int) -> None:
        self.disk.cut_power_at = self.disk.operations + steps
        try:
            while self.rig.journal.pump():
                pass
        except PowerCut:
            pass
        self.note_stored()
        self._start(self._lose_power(random.Random(chance)))

    @rule(chance=st.integers(0, 2**32), steps=st.integers(0, 60))
    def cut_power_in_a_stop_and_in_the_start(self, chance: int, steps: int) -> None:
        self.disk.cut_power_at = self.disk.operations + steps
        try:
            if self.rig.journal.close():
                self.rig.store.close()
        except PowerCut:
            pass
        self.note_stored()
        dice = random.Random(chance)
        for _ in range(3):
            self.disk = self._lose_power(dice)
            self.disk.cut_power_at = dice.randrange(60)
            try:
                Rig(self.disk, is_synced=self.is_synced)
            except PowerCut:
                continue
        self._start(self._lose_power(dice))

    @rule()
    def kill(self) -> None:
        self._start(self.disk.after_kill())

    @rule()
    def stop_and_start(self) -> None:
        stopped = self.rig.journal.close() and not self.rig.store.close()
        self.note_stored()
        everything = {key: len(names) for key, names in self.appended.items()}
        assert not stopped or self.promised == everything
        self._start(self.disk.after_kill())
        assert self.rig.opened.was_clean == stopped
        assert not stopped or self.rig.opened.repairs == ()

    @rule(what=st.sampled_from(["wal", "log", "index", "-1", "checkpoint"]))
    def fail_next_sync(self, what: str) -> None:
        self.disk.fail_sync(what)

    @rule(room=st.integers(0, 5000))
    def fill_the_disk(self, room: int) -> None:
        self.disk.room = room

    @invariant()
    def note_stored(self) -> None:
        for key, position in self.rig.stored:
            assert key.topic == OFFSETS
            assert position >= self.promised[key.partition]
            assert position <= len(self.appended[key.partition])
            self.promised[key.partition] = position
        self.rig.stored.clear()

    @invariant()
    def readers_see_what_is_stored(self) -> None:
        views = self.rig.store.partitions()
        for partition, log in self.logs.items():
            view = views[TopicPartition(OFFSETS, partition)]
            assert view.high_watermark == log.stored_position == self.promised[partition]
            assert self.rig.keys(partition) == self.appended[partition][: view.high_watermark]


class CrashingLogUnsynced(CrashingLog):
    """`rollcall.flush=os`: a kill loses nothing; a power cut may, but leaves a prefix."""

    is_synced = False


bounded = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCrashingLog = CrashingLog.TestCase
TestCrashingLog.settings = bounded
TestCrashingLogUnsynced = CrashingLogUnsynced.TestCase
TestCrashingLogUnsynced.settings = bounded
