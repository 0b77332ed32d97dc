"""Stat: `rollcall log stat` counts right, and predicts what the cleaner will free."""

import json
import random
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from coordinator.consumer.member import ConsumerMemberMetadata, CurrentAssignment
from coordinator.consumer.records import (
    current_assignment_record,
    member_metadata_record,
    member_tombstones,
)
from coordinator.group import CommittedOffset
from coordinator.records import (
    group_metadata_record,
    group_tombstone,
    offset_commit_key,
    offset_commit_value,
)
from coordinator.stored_records import StoredMember
from logtools.layout import place_at
from logtools.stat import Statistics, statistics
from logtools.stat_report import size_text
from logtools.upkeep import upkeep_of
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    write_assignment,
)
from protocol.names import GroupId, MemberId, TopicName
from storage.api import LogSettings, Record
from storage.batch.record_batch import encode_batch, iter_batches, read_records
from storage.cleaner.cleaner_pass import run_pass
from storage.cleaner.messages import Pass, SegmentExtent
from storage.disk import RealDisk
from tests.cli.test_command import Command, rollcall
from tests.logtools.logs import (
    GROUP,
    NOW_MS,
    OFFSETS,
    PARTITION,
    batches,
    commit,
    flip,
    logs_of,
    tombstone,
    write_data_dir,
    write_partition,
)

__all__ = ["rollcall"]  # the fixture
LATER_MS = NOW_MS + 10**9


def counted(path: Path, **settings: float) -> Statistics:
    place = place_at(path, topic=OFFSETS)
    chosen = LogSettings(**settings)  # type: ignore[arg-type]
    return statistics(place, LATER_MS, settings=chosen, upkeep=upkeep_of(place))


def generation(*members: tuple[str, list[int]], group: str = GROUP) -> Record:
    def stored(member_id: str, partitions: list[int]) -> StoredMember:
        assigned = [TopicPartitions(TopicName("orders"), partitions)]
        blob = write_assignment(ConsumerProtocolAssignment(assigned))
        return StoredMember(MemberId(member_id), None, "app", "/10.0.0.1", 1, 1, b"", blob)

    return group_metadata_record(
        GroupId(group),
        protocol_type="consumer",
        generation_id=1,
        protocol_name="range",
        leader_id="m",
        state_since_ms=NOW_MS,
        members=[stored(*member) for member in members],
    )


def test_everything_is_counted(tmp_path: Path) -> None:
    made = batches(
        [
            [commit(1, 0), commit(1, 1)],
            [commit(2, 0)],
            [commit(1, 0, group="audit", topic="payments")],
            [tombstone(1), generation(("m", [0]))],
        ]
    )
    folder = write_partition(tmp_path, OFFSETS, PARTITION, made)
    total = counted(folder).total

    assert (total.segments, total.batches, total.records) == (1, 4, 6)
    assert total.bytes == logs_of(folder)[0].stat().st_size
    assert (total.commits, total.tombstones, total.live_records) == (4, 1, 3)
    assert total.by_type == {"OffsetCommit": 5, "GroupMetadata": 1}
    assert (total.oldest_ms, total.newest_ms) == (NOW_MS, NOW_MS + 4_000)
    assert total.commits_per_second == 1.0
    assert total.records_per_batch == 1.5
    sizes = [len(batch) for batch in made]
    # The first batch's records are superseded by the second and the last; at most it all goes, with
    # the tombstone once its time is over.
    assert total.frees_at_most.records == 3
    assert sizes[0] < total.frees_at_most.bytes < sizes[0] + 61
    assert total.frees_now.records == 0  # the active segment is never cleaned


def test_bytes_add_up_to_the_file(tmp_path: Path) -> None:
    """Every byte is live, dead or a header."""
    numbers = random.Random(1)
    made = random_batches(numbers, 200)
    folder = write_partition(tmp_path, OFFSETS, PARTITION, made)
    total = counted(folder).total
    live = surviving(folder)
    assert total.live_records == len(live)
    assert total.records - total.live_records == total.frees_at_most.records
    kept_headers = len({batch for batch, _ in live.values()})
    assert total.bytes - total.frees_at_most.bytes == total.live_bytes + 61 * kept_headers


def surviving(folder: Path) -> dict[bytes, tuple[int, int]]:
    """Key -> (batch, offset) of its newest record, tombstones left out; by brute force."""
    newest: dict[bytes, tuple[int, int]] = {}
    number = 0
    for log in logs_of(folder):
        content = log.read_bytes()
        for position, header in iter_batches(content):
            number += 1
            for offset, _, key, value, _ in read_records(
                content[position : position + header.size]
            ):
                newest.pop(key, None)
                if value is not None:
                    newest[key] = (number, offset)
    return newest


def random_batches(numbers: random.Random, count: int) -> list[bytes]:
    def record(n: int) -> Record:
        partition, group = numbers.randrange(6), numbers.choice(["a", "b"])
        if numbers.random() < 0.1:
            return tombstone(partition, group=group)
        if numbers.random() < 0.1:
            return generation(("m", [partition]), group=group)
        if numbers.random() < 0.02:
            return group_tombstone(GroupId(group))
        return commit(n, partition, group=group)

    return batches([[record(n) for _ in range(numbers.randint(1, 4))] for n in range(count)])


@pytest.mark.parametrize("seed", range(12))
def test_what_cleaning_would_free_is_what_the_cleaner_frees(tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    made = random_batches(numbers, 120)
    first, second = sorted(numbers.sample(range(10, 110), 2))
    segments = made[:first], made[first:second], made[second:]
    folder = write_partition(tmp_path, OFFSETS, PARTITION, *segments)
    foreseen = counted(folder)
    logs = logs_of(folder)

    bases = [int(log.stem) for log in logs]
    job = Pass(
        folder=str(folder),
        segments=tuple(
            SegmentExtent(base, after, log.stat().st_size)
            for base, after, log in zip(bases, bases[1:], logs, strict=False)
        ),
        first_dirty=0,
        first_uncleanable=bases[-1],
        now_ms=LATER_MS,
        delete_retention_ms=86_400_000,
        segment_bytes=1 << 30,
        segment_index_bytes=10 << 20,
        index_interval_bytes=4096,
        map_bytes=1 << 20,
    )
    before = sum(log.stat().st_size for log in logs[:-1])
    result = run_pass(RealDisk(), job)

    assert foreseen.total.dirty_ratio is None
    (_, counts), *_ = foreseen.partitions
    assert counts.dirty_ratio == 1.0
    assert foreseen.total.frees_now.records == result.records_read - result.records_written
    # Where a tombstone gets its horizon the batch's times are counted from there: a few bytes more.
    stamped = result.bytes_written - (before - foreseen.total.frees_now.bytes)
    assert 0 <= stamped <= 8 * result.records_written


def test_the_cleaners_conditions_are_the_daemons(tmp_path: Path) -> None:
    write_data_dir(tmp_path)  # 20 of its 60 records are clean, 20 dirty, 20 in the active segment
    now = counted(tmp_path).total.frees_now
    assert now.records == 0  # half is dirty: not more than half
    assert counted(tmp_path, min_cleanable_dirty_ratio=0.4).total.frees_now.records == 38
    assert (
        counted(
            tmp_path, min_cleanable_dirty_ratio=0.4, min_compaction_lag_ms=10**10
        ).total.frees_now.records
        == 0
    )


def test_what_the_journal_may_write_again_is_left_alone(tmp_path: Path) -> None:
    write_data_dir(tmp_path)
    (tmp_path / "cleaner-offset-checkpoint").unlink()
    assert counted(tmp_path).total.frees_now.records == 38
    (tmp_path / "rollcall-journal.wal").write_bytes(b"")  # what makes it Rollcall's
    assert counted(tmp_path).total.frees_now.records == 38
    (tmp_path / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{OFFSETS} {PARTITION} 39\n")
    assert counted(tmp_path).total.frees_now.records == 18


def test_who_commits_most(tmp_path: Path) -> None:
    made = batches(
        [
            [generation(("m-1", [0, 1]), ("m-2", [2]))],
            [commit(1, 0), commit(1, 1), commit(1, 2)],
            [commit(2, 0), commit(2, 7)],
            [generation(("m-2", [0, 1, 2]))],
            [commit(3, 0)],
            [generation()],
            [commit(9, 0)],
            [generation(("n", [0]), group="audit"), commit(1, 0, group="audit", topic="other")],
        ]
    )
    write_partition(tmp_path, OFFSETS, PARTITION, made)
    found = counted(tmp_path)

    groups = {share.name: share.commits for share in found.tops.of("groups")}
    assert groups == {GROUP: 7, "audit": 1}
    assert next(iter(groups)) == GROUP
    members = {share.name.split()[1]: share.commits for share in found.tops.of("members")}
    assert members == {"m-1": 3, "m-2": 2}
    assert found.total.memberless_commits == 3
    topics = {share.name: share.commits for share in found.tops.of("topics")}
    assert topics == {"orders": 7, "other": 1}
    keys = found.tops.of("keys")
    assert (keys[0].name, keys[0].commits) == (f"{GROUP} orders-0", 4)


def test_only_the_largest_are_listed(tmp_path: Path) -> None:
    made = batches([[commit(n, 0, group=f"g-{n}")] * (n + 1) for n in range(6)])
    write_partition(tmp_path, OFFSETS, PARTITION, made)
    write_partition(tmp_path, OFFSETS, 1, batches([[commit(1, 0, group="single")] * 4]))
    place = place_at(tmp_path, topic=OFFSETS)
    parts: list[float] = []
    tops = statistics(place, LATER_MS, keep=3, progressed=parts.append).tops
    assert [share.name for share in tops.of("groups")] == ["g-5", "g-4", "single"]
    assert [share.commits for share in tops.of("topics")] == [25]
    assert parts == [0.5, 1.0]


def test_any_topic_is_counted_by_its_keys(tmp_path: Path) -> None:
    made = [
        encode_batch([Record(b"k", b"1"), Record(b"k", b"2"), Record(b"other", None)], 0, NOW_MS)
    ]
    write_partition(tmp_path, "orders", 0, made)
    total = counted(tmp_path / "orders-0").total
    assert (total.live_records, total.tombstones, total.commits) == (1, 1, 0)
    assert total.by_type == {}


def test_compressed_batches_count_what_they_take_on_disk(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "storage" / "golden" / "java-zstd.log"
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(golden.read_bytes())
    total = counted(folder).total
    assert total.records == total.live_records == 3
    assert abs(total.live_bytes + 61 - total.bytes) <= 3


def test_damage_is_counted_and_reported(tmp_path: Path, rollcall: Command) -> None:
    write_data_dir(tmp_path)
    flip(logs_of(tmp_path / f"{OFFSETS}-{PARTITION}")[0], 70)
    total = counted(tmp_path).total
    assert total.damaged_bytes > 0
    assert total.records == 58
    assert "`rollcall log lint` says where" in rollcall("log", "stat", str(tmp_path)).out


def test_the_table_and_the_json_say_the_same(tmp_path: Path, rollcall: Command) -> None:
    write_data_dir(tmp_path)
    write_partition(tmp_path, OFFSETS, 7)
    shown = rollcall("log", "stat", str(tmp_path), "--min-cleanable-dirty-ratio", "0.4")
    as_json = rollcall("log", "stat", str(tmp_path), "--min-cleanable-dirty-ratio", "0.4", "--json")
    assert shown.exit_code == as_json.exit_code == 0
    document = json.loads(as_json.out)
    assert document["total"]["records"] == 60
    assert document["total"]["liveRecords"] == 2
    assert document["total"]["cleaningFreesNow"]["records"] == 38
    assert document["top"]["groups"][0]["name"] == GROUP
    assert Counter(part["records"] for part in document["partitions"]) == {60: 1, 0: 1}

    lines = shown.out.splitlines()
    header = lines[0].split("  ")
    assert header[0].strip() == "log"
    assert f"{OFFSETS}-{PARTITION}" in lines[1]
    assert "(1 more are empty)" in shown.out
    now = document["total"]["cleaningFreesNow"]["bytes"]
    assert f"frees {size_text(now)} in 38 records" in shown.out


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (7 << 40, "7.0 TiB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert size_text(size) == text


def test_commits_count_for_the_owning_member_of_a_consumer_group(tmp_path: Path) -> None:
    topic_id = UUID(int=5)
    group, alice, bob = GroupId(GROUP), MemberId("alice"), MemberId("bob")

    def committed(partition: int) -> Record:
        key = offset_commit_key(group, TopicName("orders"), partition)
        value = CommittedOffset(1, committed_at_ms=NOW_MS, topic_id=topic_id)
        return Record(key, offset_commit_value(value, 4))

    def owns(member_id: MemberId, *partitions: int) -> Record:
        owned = {topic_id: dict.fromkeys(partitions, 2)}
        return current_assignment_record(group, member_id, CurrentAssignment(2, 1, assigned=owned))

    metadata = ConsumerMemberMetadata(alice, client_id="app", client_host="/10.0.0.1")
    made = [
        [committed(0)],  # by nobody yet
        [member_metadata_record(group, metadata), owns(alice, 0, 1)],
        [committed(0), committed(1), committed(2)],
        [owns(alice, 0), owns(bob, 1)],
        [committed(0), committed(1)],
        [*member_tombstones(group, alice)],
        [committed(0)],
    ]
    write_partition(tmp_path, OFFSETS, PARTITION, batches(made))

    found = counted(tmp_path)

    members = {share.name: share.commits for share in found.tops.of("members")}
    assert members == {f"{GROUP} alice (app@/10.0.0.1)": 3, f"{GROUP} bob": 1}
    assert found.total.memberless_commits == 3
