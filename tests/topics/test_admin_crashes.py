"""Admin crashes: changes of topics, interrupted at every disk operation by a kill or an error.

Whatever was cut short is either done or not done at the next start; that start succeeds, also when
it is killed itself, and says the same when it is repeated; every record of the other topics is
served, and no producer id is given twice.
"""

import random
from collections.abc import Callable

import pytest

from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.names import OFFSETS_TOPIC, ErrorCode, TopicName
from storage.atomic_file import StoredFile
from storage.batch.record_batch import iter_batches
from storage.log.log_store import LogStore
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.topics.plane import Plane
from topics.data_plane import DataPlane
from topics.events import PartitionFailed
from topics.settings import TopicSettings

DATA = "/data"
SETTINGS = TopicSettings(offsets_topic_num_partitions=2)
NAMES = [TopicName(name) for name in ("new", "newer", "old", "older")]


class DiskPlane(Plane):
    """A data plane above the daemon's own store, on a disk that can be cut off."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        super().__init__(SETTINGS)

    def _start(self) -> DataPlane:
        store = LogStore(self.disk, DATA)
        store.open()
        self.store = store  # type: ignore[assignment] # the daemon's, not the one of memory
        self.catalog = StoredFile(self.disk, f"{DATA}/topics.json")  # type: ignore[assignment]
        self.producer_snapshot = StoredFile(self.disk, f"{DATA}/producers")  # type: ignore[assignment]
        return super()._start()

    def topics(self) -> dict[str, int]:
        counts = {name: self.data.registry.partition_count(name) for name in NAMES}
        return {name: count for name, count in counts.items() if count is not None}

    def records(self, name: str) -> int | None:
        """How many are served in all, by partitions that all can be used; None if it is gone."""
        count = self.data.registry.partition_count(TopicName(name))
        if count is None:
            return None
        return sum(self._records(name, index) for index in range(count))

    def _records(self, name: str, index: int) -> int:
        partition = self.data.registry.partition(name, index)
        assert partition is not None
        assert partition.log is not None
        start = partition.log.log_start_offset
        found = self.fetch(name, start, partition=index)
        assert found.error_code is ErrorCode.NONE
        served = sum(header.records_count for _, header in iter_batches(found.records or b""))
        assert served == found.high_watermark - start
        return served


GIVEN = {"old": 3, "older": 2}


def create(plane: DiskPlane) -> ErrorCode:
    request = CreateTopicsRequest([CreatableTopic(NAMES[0], 3, 1), CreatableTopic(NAMES[1], 2, 1)])
    first, second = plane.ask(request, 7, CreateTopicsResponse).topics
    assert first.error_code is second.error_code
    return first.error_code


def create_by_metadata(plane: DiskPlane) -> ErrorCode:
    request = MetadataRequest([MetadataRequestTopic(name=NAMES[0])], allow_auto_topic_creation=True)
    return plane.ask(request, 12, MetadataResponse).topics[0].error_code


def delete(plane: DiskPlane) -> ErrorCode:
    request = DeleteTopicsRequest([DeleteTopicState(NAMES[2]), DeleteTopicState(NAMES[3])])
    first, second = plane.ask(request, 6, DeleteTopicsResponse).responses
    assert first.error_code is second.error_code
    return first.error_code


def grow(plane: DiskPlane) -> ErrorCode:
    request = CreatePartitionsRequest([CreatePartitionsTopic(NAMES[2], 6, None)])
    return plane.ask(request, 3, CreatePartitionsResponse).results[0].error_code


def init_producer_id(plane: DiskPlane) -> ErrorCode:
    (producer_id,) = plane.take_producer_id()
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if producer_id is None else ErrorCode.NONE


# Each with the topics that there are when it is done.
CHANGES: dict[str, tuple[Callable[[DiskPlane], ErrorCode], dict[str, int]]] = {
    "create": (create, {**GIVEN, "new": 3, "newer": 2}),
    "metadata": (create_by_metadata, {**GIVEN, "new": 1}),
    "delete": (delete, {}),
    "grow": (grow, {"old": 6, "older": 2}),
    "init": (init_producer_id, GIVEN),
}


def given() -> DiskPlane:
    """Topics with records, of which the checkpoints speak."""
    disk = SimulatedDisk()
    disk.make_dir(DATA)
    disk.sync_dir("/")
    plane = DiskPlane(disk)
    for name, count in {"kept": 2, **GIVEN}.items():
        plane.given(name, count)
        for index in range(count):
            plane.given_records(name, 3, index)
            log = plane.data.registry.partition(name, index)
            assert log is not None
            assert log.log is not None
            log.log.flush()
            log.log.delete_before(1)
    assert isinstance(plane.store, LogStore)
    plane.store.write_checkpoints()
    return plane


def check(plane: DiskPlane, after: dict[str, int]) -> None:
    """One start after whatever happened."""
    assert plane.events_of(PartitionFailed) == []
    assert plane.records("kept") == 2 * 2
    found = plane.topics()
    assert found in (GIVEN, after)
    for name in found:
        assert plane.records(name) == {"old": 6, "older": 4}.get(name, 0)
    # Nothing is left of what is not there.
    there = {f"{name}-{n}" for name, count in {"kept": 2, **found}.items() for n in range(count)}
    files = {"topics.json", "producers", ".kafka_cleanshutdown"}
    names = set(plane.disk.listdir(DATA)) - there - files
    assert {name for name in names if not name.endswith(("-checkpoint", ".tmp"))} == set()


def producer_id(plane: DiskPlane) -> int:
    (producer_id,) = plane.take_producer_id()
    assert producer_id is not None
    return producer_id


def started(disk: SimulatedDisk, kill_at: int | None = None) -> DiskPlane | None:
    """None if the start was killed."""
    disk.cut_power_at = None if kill_at is None else disk.operations + kill_at
    try:
        plane = DiskPlane(disk)
    except PowerCut:
        return None
    disk.cut_power_at = None
    return plane


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("loses_power", [False, True], ids=["kill", "power"])
def test_a_change_that_is_cut_short_is_done_or_not_done(name: str, *, loses_power: bool) -> None:
    ask, after = CHANGES[name]
    steps, is_done = 0, False
    while not is_done:
        plane = given()
        ids = set() if name == "init" else {producer_id(plane)}
        plane.disk.cut_power_at = plane.disk.operations + steps
        try:
            assert ask(plane) is ErrorCode.NONE
            is_done = True
        except PowerCut:
            pass
        chance = random.Random(steps)
        kill_at: int | None = 0
        left = plane.disk
        while kill_at is not None:
            left = left.after_crash(chance) if loses_power else left.after_kill()
            again = started(left, kill_at)
            # The next start, of what this one left, is killed a step later, until one is not.
            kill_at = kill_at + 1 if again is None else None
        assert again is not None
        check(again, after)
        if is_done:
            assert again.topics() == after
        twice = started(left.after_kill())
        assert twice is not None
        check(twice, after)
        assert twice.topics() == again.topics()
        assert producer_id(twice) not in ids
        steps += 1
    assert steps > (1 if name == "init" else 5)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_the_disk_refuses_is_answered_and_changes_nothing(name: str) -> None:
    ask, after = CHANGES[name]
    steps, refused = 0, 0
    while True:
        plane = given()
        ids = [producer_id(plane)] if name != "init" else []
        plane.disk.fail_at = plane.disk.operations + steps
        answer = ask(plane)
        is_hit, plane.disk.fail_at = plane.disk.fail_at is None, None
        refused += answer is not ErrorCode.NONE
        assert plane.topics() == (after if answer is ErrorCode.NONE else GIVEN)
        assert plane.records("kept") == 4

        # What is left of it disturbs nothing, neither now nor after a kill.
        left = started(plane.disk.after_kill())
        assert left is not None
        check(left, after)
        if answer is ErrorCode.NONE:
            assert left.topics() == after
        ids.append(producer_id(left))
        assert len(set(ids)) == len(ids)
        if not is_hit:
            break
        steps += 1
    assert refused > 0


@pytest.mark.parametrize("name", ["create", "metadata", "grow"])
def test_what_the_disk_refused_can_be_asked_for_again(name: str) -> None:
    ask, after = CHANGES[name]
    steps, is_hit = 0, True
    while is_hit:
        plane = given()
        plane.disk.fail_at = plane.disk.operations + steps
        if ask(plane) is not ErrorCode.NONE:
            assert ask(plane) is ErrorCode.NONE
        is_hit, plane.disk.fail_at = plane.disk.fail_at is None, None
        assert plane.topics() == after
        plane.given_records("new" if "new" in after else "old", 1)
        again = started(plane.disk.after_kill())
        assert again is not None
        assert again.topics() == after
        steps += 1


def test_a_topic_made_again_keeps_its_records_wherever_a_kill_comes() -> None:
    steps, is_done = 0, False
    while not is_done:
        plane = given()
        plane.disk.cut_power_at = plane.disk.operations + steps
        produced = 0
        try:
            assert delete(plane) is ErrorCode.NONE
            plane.given("old", 3)
            for index in range(3):
                assert plane.produce("old", partition=index).error_code is ErrorCode.NONE
                produced += 1
            is_done = True
        except PowerCut:
            pass
        again = started(plane.disk.after_kill())
        assert again is not None
        assert again.records("kept") == 4
        served = again.records("old")
        if produced:
            assert served is not None
            assert served >= produced
            assert again.fetch("old").error_code is ErrorCode.NONE  # it begins at 0
        else:
            assert served in (None, 0, 1, 6)
        steps += 1


def test_the_offsets_topic_is_as_it_was() -> None:
    plane = given()
    topic_id = plane.topic_id(OFFSETS_TOPIC)
    assert delete(plane) is ErrorCode.NONE
    again = started(plane.disk.after_kill())
    assert again is not None
    assert again.topic_id(OFFSETS_TOPIC) == topic_id
