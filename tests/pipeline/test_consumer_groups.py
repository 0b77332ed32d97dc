"""Consumer groups in the pipeline's tables: their records with typed columns, and their history.

No Spark here: records that the coordinator's encoders made, through the decoder of the tables.
"""

import json
from collections.abc import Sequence

from coordinator.consumer import events
from coordinator.consumer.events import ConsumerEvent, EpochCause
from coordinator.consumer.member import ConsumerMemberState, CurrentAssignment
from coordinator.consumer.records import turn_records
from coordinator.record_schemas import RECORD_SCHEMAS
from pipeline.decode.rows import group_events, group_records
from pipeline.read.data_source import read_chunks
from pipeline.read.segments import Piece
from pipeline.tables import CONSUMER_GROUPS, GROUP_METADATA_TABLE, Table
from protocol.names import OFFSETS_TOPIC, MemberId, TopicName
from storage.api import Record
from storage.batch.record_batch import encode_batch
from tests.history.consumer_history import BEGAN_AT_MS, ConsumerHistory, G, T, metadata
from tests.pipeline.logs import commit

ALICE = MemberId("alice")


def rows_of(happened: Sequence[ConsumerEvent], table: Table = CONSUMER_GROUPS) -> list[dict]:
    records = [Record(*pair) for pair in turn_records(happened)]
    log = encode_batch([commit("g", "orders", 0, 7), *records], 0, BEGAN_AT_MS)
    piece = Piece("f.log", OFFSETS_TOPIC, 3, 0, len(log), is_last=True)
    found = read_chunks(lambda size, at: log[at : at + size], piece, table)
    return [row for batch in found for row in batch.to_pylist()]


def test_the_records_of_a_join_are_rows_with_their_columns() -> None:
    world = ConsumerHistory()
    member = metadata("alice", "orders", "pages", instance_id="i", regex="a.*")
    rows = rows_of(
        [
            events.ConsumerMemberUpdated(G, BEGAN_AT_MS, member, is_new=True),
            world.bumped(EpochCause.MEMBER_JOINED, "alice"),
            world.targets(2, alice=(0, 3)),
            world.moves("alice", 2, ConsumerMemberState.UNREVOKED_PARTITIONS, (0,), (3,)),
            events.RegularExpressionResolved(
                G, BEGAN_AT_MS, "a.*", frozenset({TopicName("ab"), TopicName("aa")}), 4
            ),
        ]
    )
    by_record = {row["record"]: row for row in rows}
    assert [row["record_type"] for row in rows] == [5, 3, 7, 6, 8, 16]
    assert {row["group"] for row in rows} == {"g"}
    assert {row["tombstone"] for row in rows} == {False}
    assert by_record["group"]["epoch"] == by_record["target_epoch"]["epoch"] == 2
    said = by_record["member"]
    assert (said["member_id"], said["group_instance_id"]) == ("alice", "i")
    assert (said["client_id"], said["client_host"]) == ("client-alice", "/10.0.0.1")
    assert (sorted(said["topics"]), said["regex"]) == (["orders", "pages"], "a.*")
    assert (said["rebalance_timeout_ms"], said["session_timeout_ms"]) == (60_000, None)
    current = by_record["current"]
    assert (current["epoch"], current["state"]) == (2, "UNREVOKED_PARTITIONS")
    assert (current["partition_count"], current["pending_count"]) == (1, 1)
    assert current["partitions"] == [
        {"topic_id": T.bytes, "partitions": [0], "assignment_epochs": [2]}
    ]
    assert by_record["target"]["partition_count"] == 2
    assert sorted(by_record["regex"]["topics"]) == ["aa", "ab"]
    assert by_record["regex"]["at_ms"] == BEGAN_AT_MS


def test_a_member_that_goes_leaves_tombstones() -> None:
    member = metadata("alice")
    gone = events.ConsumerMemberRemoved(
        G, BEGAN_AT_MS, member.identity, events.ConsumerRemovalCause.LEFT, 2, {}
    )
    rows = rows_of([gone])
    assert [(row["record"], row["member_id"], row["tombstone"]) for row in rows] == [
        ("current", "alice", True),
        ("target", "alice", True),
        ("member", "alice", True),
    ]
    assert {row["epoch"] for row in rows} == {None}


def test_the_group_epoch_is_in_the_table_of_groups_too() -> None:
    world = ConsumerHistory()
    (row,) = rows_of([world.bumped(EpochCause.MEMBER_JOINED, "alice")], GROUP_METADATA_TABLE)
    assert (row["group_type"], row["generation"]) == ("consumer", 2)


def test_every_type_has_a_row_in_the_table_of_all_records() -> None:
    world = ConsumerHistory()
    current = events.CurrentAssignmentUpdated(G, 1, 1, ALICE, CurrentAssignment(2))
    for key, value in turn_records([world.bumped(EpochCause.MEMBER_JOINED, "a"), current]):
        (row,) = group_records(key, value).rows
        assert row["name"] == RECORD_SCHEMAS[int.from_bytes(key[:2])].name


def test_the_history_of_a_consumer_group_is_in_the_table_of_events() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(12_000)
    world.turn(world.moves("m-1", 3, owned=(0, 1)))
    world.turn(world.moves("m-2", 3, owned=(2, 3)))
    rows = [row for key, value in world.history.records for row in group_events(key, value).rows]
    assert len(rows) == len(world.entries)
    last = {str(row["type"]): row for row in rows}
    bumped = last["group_epoch_bumped"]
    assert (bumped["cause"], bumped["generation"]) == ("member_joined", 3)
    assert (bumped["member_id"], bumped["client_id"]) == ("m-2", "client-m-2")
    assert (
        last["revocation_requested"]["member_id"],
        last["revocation_requested"]["generation"],
    ) == (
        "m-1",
        3,
    )
    assert json.loads(str(last["revocation_ended"]["event"]))["waited_ms"] == 12_000
    ended = last["rebalance_ended"]
    assert (ended["generation_before"], ended["generation_after"]) == (2, 3)
    assert (ended["partitions_moved"], ended["duration_ms"]) == (2, 17_000)
