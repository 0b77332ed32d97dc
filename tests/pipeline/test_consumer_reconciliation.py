"""Consumer reconciliation: rebalances and owners of KIP-848 groups, from their records.

Record by record without Spark; then the records of a real Kafka 4.3.1 through the job.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from pyspark.sql import SparkSession

from pipeline.derive.consumer_reconciliation import ConsumerGroupRecord, GroupReplay
from pipeline.derive.rebalances import of_records
from pipeline.jobs import JOBS, JobInput
from pipeline.read.sources import PipelineSource
from pipeline.tables import CONSUMER_GROUPS, GROUP_METADATA_TABLE
from tests.pipeline.histories import START_MS, frame

pytestmark = pytest.mark.xdist_group("spark")

GOLDEN = Path(__file__).with_name("golden")
FOREVER = 4_000_000_000_000
T = b"t" * 16


class Log:
    """Records of the group `g`, each at its time."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def add(self, at_s: float, record: str, **said: object) -> None:
        empty = dict.fromkeys(
            ("member_id", "epoch", "state", "partitions", "pending_revocation", "client_id",
             "client_host", "topics")
        )  # fmt: skip
        self.records.append(
            {
                **empty,
                "log_partition": 0,
                "log_offset": len(self.records),
                "log_timestamp_ms": START_MS + int(at_s * 1000),
                "record": record,
                "record_type": 3,
                "group": "g",
                "tombstone": not said,
                **said,
            }
        )

    def join(self, at_s: float, member: str, topics: tuple[str, ...] = ("orders",)) -> None:
        self.add(at_s, "member", member_id=member, client_id=f"client-{member}",
                 client_host="/h", topics=list(topics), tombstone=False)  # fmt: skip

    def leave(self, at_s: float, member: str) -> None:
        self.add(at_s, "current", member_id=member, tombstone=True)
        self.add(at_s, "target", member_id=member, tombstone=True)
        self.add(at_s, "member", member_id=member, tombstone=True)

    def epoch(self, at_s: float, epoch: int) -> None:
        self.add(at_s, "group", epoch=epoch, tombstone=False)

    def has(
        self, at_s: float, member: str, epoch: int, owned: list[int], pending: tuple[int, ...] = (),
        state: str = "STABLE",
    ) -> None:  # fmt: skip
        self.add(
            at_s, "current", member_id=member, epoch=epoch, state=state,
            partitions=[{"topic_id": T, "partitions": owned}],
            pending_revocation=[{"topic_id": T, "partitions": list(pending)}], tombstone=False,
        )  # fmt: skip

    def replayed(self) -> GroupReplay:
        replay = GroupReplay("g")
        replay.apply(convert(self.records, list[ConsumerGroupRecord]))
        return replay


def two_members() -> Log:
    """The first gets everything, a second joins, and the first gives it half two seconds later."""
    log = Log()
    log.join(0, "a")
    log.epoch(0, 1)
    log.has(0, "a", 1, [0, 1, 2, 3])
    log.join(60, "b")
    log.epoch(60, 2)
    log.has(60, "b", 2, [], state="UNRELEASED_PARTITIONS")
    log.has(61, "a", 1, [0, 1], (2, 3), state="UNREVOKED_PARTITIONS")
    log.has(62, "a", 2, [0, 1])
    log.has(65, "b", 2, [2, 3])
    return log


def test_a_rebalance_lasts_until_every_member_has_reached_the_epoch() -> None:
    first, second = two_members().replayed().rebalances

    assert (first["generation_before"], first["generation_after"]) == (None, 1)
    assert (first["members_before"], first["members_after"]) == (None, 1)
    assert (first["duration_ms"], first["partitions_moved"]) == (0, 0)
    assert (second["began_at_ms"], second["duration_ms"]) == (START_MS + 60_000, 5_000)
    assert (second["generation_before"], second["generation_after"]) == (1, 2)
    assert (second["members_before"], second["members_after"]) == (1, 2)
    assert (second["member_id"], second["client_id"], second["host"]) == ("b", "client-b", "/h")
    # Given back at 62 s, taken at 65 s.
    assert (second["partitions_moved"], second["unowned_partition_seconds"]) == (2, 6.0)
    assert (second["group_type"], second["cause"]) == ("consumer", None)


def test_the_owner_is_who_has_the_partition() -> None:
    owners = two_members().replayed().owners

    of_two = [
        (row["log_offset"], row["owner"]["member_id"]) for row in owners if row["partition"] == 2
    ]
    # Until it is given back it is the first one's, also while it is to be given back.
    assert of_two == [(2, "a"), (7, None), (8, "b")]
    assert {row["only_topic"] for row in owners} == {"orders"}


def test_a_member_that_leaves_gives_its_partitions_to_the_others() -> None:
    log = two_members()
    log.leave(100, "a")
    log.epoch(100, 3)
    log.has(104, "b", 3, [0, 1, 2, 3])

    last = log.replayed().rebalances[-1]

    assert (last["member_id"], last["duration_ms"]) == ("a", 4_000)
    assert (last["members_before"], last["members_after"]) == (2, 1)
    assert (last["partitions_moved"], last["unowned_partition_seconds"]) == (2, 8.0)


def test_a_rebalance_that_has_not_ended_is_there_without_a_duration() -> None:
    log = two_members()
    log.join(200, "c")
    log.epoch(200, 3)
    log.join(201, "d")
    log.epoch(201, 4)  # the same rebalance goes on
    log.has(202, "c", 4, [0])

    *before, last = log.replayed().rebalances

    assert len(before) == 2
    assert (last["generation_before"], last["generation_after"]) == (2, 4)
    assert (last["duration_ms"], last["unowned_partition_seconds"]) == (None, None)
    assert last["members_after"] == 4


def test_a_group_that_goes_empty_and_is_deleted_begins_again_without_a_past() -> None:
    log = two_members()
    log.leave(100, "a")
    log.epoch(100, 3)
    log.leave(101, "b")
    log.epoch(101, 4)
    log.add(200, "group")  # deleted
    log.join(300, "a")
    log.epoch(300, 1)
    log.has(300, "a", 1, [0])

    rebalances = log.replayed().rebalances

    empty, fresh = rebalances[-2:]
    assert (empty["generation_after"], empty["members_after"], empty["duration_ms"]) == (4, 0, 1000)
    assert (fresh["generation_before"], fresh["members_before"]) == (None, None)
    assert fresh["partitions_moved"] == 0


def test_the_records_of_a_compacted_log_need_no_first_ones() -> None:
    log = Log()
    log.has(0, "a", 7, [0])  # its member record was compacted away, or is in an older segment
    log.leave(1, "z")
    log.epoch(5, 8)
    log.has(6, "a", 8, [0, 1])

    (only,) = log.replayed().rebalances

    assert (only["generation_before"], only["generation_after"], only["duration_ms"]) == (
        None, 8, 1_000,
    )  # fmt: skip


def test_groups_of_every_type_have_their_rebalances(spark: SparkSession) -> None:
    records = two_members().records
    epochs = [
        {"log_partition": 0, "log_offset": 100 + n, "log_timestamp_ms": START_MS + n,
         "group": group, "group_type": kind, "generation": epoch, "tombstone": False}
        for n, (group, kind, epoch) in enumerate(
            [("g", "consumer", 2), ("s", "share", 4), ("s", "share", 5), ("old", "consumer", 9)]
        )
    ]  # fmt: skip

    found = of_records(
        frame(spark, GROUP_METADATA_TABLE, epochs),
        frame(spark, CONSUMER_GROUPS, records + records),  # a record may come twice
    ).collect()

    assert sorted((row.group, row.group_type, row.generation_after) for row in found) == [
        ("g", "consumer", 1),
        ("g", "consumer", 2),
        ("old", "consumer", 9),  # of a lake without the other records
        ("s", "share", 4),
        ("s", "share", 5),
    ]
    assert {row.members_after for row in found if row.group in ("s", "old")} == {None}


def test_a_real_kafkas_groups_are_in_rebalances_and_own_their_partitions(
    spark: SparkSession,
) -> None:
    job_input = JobInput(PipelineSource(spark, str(GOLDEN / "before")), 0, FOREVER)

    made = JOBS["rebalance_stats"].run(job_input)
    found = [row for row in made["rebalances"].collect() if row.group == "search"]
    owned = job_input.ordered.where("group = 'search'").collect()

    assert [
        (row.generation_before, row.generation_after, row.members_before, row.members_after)
        for row in sorted(found, key=lambda row: row.began_at_ms)
    ] == [(None, 2, None, 1), (2, 3, 1, 0)]
    assert {row.group_type for row in found} == {"consumer"}
    assert {"search", "billing"} <= {row.group for row in made["rebalance_stats"].collect()}
    assert {row.group_type for row in made["rebalances"].collect()} >= {"classic", "share"}
    assert owned
    assert all(row.member_id for row in owned if not row.tombstone)
