"""Principals: history names as whom a client was authenticated, wherever it names the client."""

from typing import TypeVar

import msgpack
import pytest

from history.causes import Cause, OffsetsBy, Removal
from history.encoding import as_plain, decode, encode
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    OffsetsMovedEntry,
    PendingOffsetsEndedEntry,
    StaticMemberReplacedEntry,
)
from history.entry_values import RequestClient
from history.text.entry_text import format_entry
from history.text.rebalance_json import rebalance_json
from history.text.rebalance_text import format_rebalance
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.names import ErrorCode, GroupId, MemberId, TopicName
from seams.principal import ANONYMOUS, Principal
from tests.coordinator.transaction_givens import P1, TransactionWorld
from tests.history.history_world import HistoryWorld

ALICE = Principal("User", "alice")
BOB = Principal("User", "bob")
BY_ALICE = RequestClient("client", "/127.0.0.1", "User:alice")


E = TypeVar("E", bound=HistoryEntry)


def of(world: HistoryWorld, kind: type[E]) -> list[E]:
    """The entries of one type, as a reader of the topic has them."""
    return [decoded for event in world.history if isinstance(decoded := again(event), kind)]


def again(event: HistoryEntry) -> HistoryEntry:
    decoded = decode(encode(event)[1])
    assert decoded == event
    return decoded


def principals(plain: object) -> list[str]:
    """All of them in maps and lists, in order."""
    if isinstance(plain, dict):
        own = [plain["principal"]] if plain.get("principal") else []
        return own + [name for value in plain.values() for name in principals(value)]
    if isinstance(plain, list):
        return [name for value in plain for name in principals(value)]
    return []


def test_members_of_a_classic_group() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    (only,) = world.consumers(1)
    added = of(world, MemberAddedEntry)[-1]
    assert added.member.principal == "User:alice"
    assert world.last.trigger is not None
    assert world.last.trigger.principal == "User:alice"

    world.principal = BOB  # who sends the LeaveGroup
    world.leave("g", only)
    removed = of(world, MembersRemovedEntry)[-1]
    assert removed.cause is Removal.LEFT
    assert [gone.member.principal for gone in removed.members] == ["User:alice"]
    assert removed.client is not None
    assert removed.client.principal == "User:bob"


def test_a_member_that_expired() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    world.consumers(2)
    world.advance(world.settings.group_max_session_timeout_ms)
    gone = [gone for entry in of(world, MembersRemovedEntry) for gone in entry.members]
    assert [removal.member.principal for removal in gone] == ["User:alice"] * 2


def test_a_process_that_takes_over_a_static_member() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    world.consumers(instances=["i1"])
    world.principal = BOB
    world.rejoin("", instance_id="i1")
    (replaced,) = of(world, StaticMemberReplacedEntry)
    assert replaced.member.principal == "User:bob"
    assert replaced.replaced is not None
    assert replaced.replaced.principal == "User:alice"


def test_members_of_a_consumer_group() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    assert world.heartbeat_consumer("g", "m1").error is ErrorCode.NONE
    (added,) = of(world, MemberAddedEntry)
    assert added.member.principal == "User:alice"
    assert world.heartbeat_consumer("g", "m1", -1).error is ErrorCode.NONE
    (removed,) = of(world, MembersRemovedEntry)
    assert [gone.member.principal for gone in removed.members] == ["User:alice"]


def test_a_consumer_member_after_a_load_is_not_written_again_for_its_principal() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    world.given_topics(t=1, u=1)
    epoch = world.heartbeat_consumer("g", "m1").beaten.member_epoch
    world.crash()
    written = world.log.end_position
    assert world.heartbeat_consumer("g", "m1", epoch, topics=["t"]).error is ErrorCode.NONE
    assert world.log.end_position == written
    assert world.consumer_group().members[MemberId("m1")].metadata.principal is None
    # It comes with the next thing that the member says.
    world.heartbeat_consumer("g", "m1", epoch, topics=["t", "u"])
    assert world.consumer_group().members[MemberId("m1")].metadata.principal == "User:alice"


def test_a_commit_a_deletion_and_the_end_of_a_group() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    world.commit("g", offsets={0: 10, 1: 20})
    topics = [OffsetDeleteRequestTopic(TopicName("t"), [OffsetDeleteRequestPartition(1)])]
    world.ask(OffsetDeleteRequest(GroupId("g"), topics), version=0)
    world.ask(DeleteGroupsRequest([GroupId("g")]), version=2)
    assert [(entry.by, entry.client) for entry in of(world, OffsetsMovedEntry)] == [
        (OffsetsBy.COMMIT, BY_ALICE),
        (OffsetsBy.DELETION, BY_ALICE),
        (OffsetsBy.GROUP_DELETION, BY_ALICE),
    ]
    (deleted,) = of(world, GroupDeletedEntry)
    assert deleted.client == BY_ALICE
    assert format_entry(deleted) == "deleted by client as User:alice at 127.0.0.1"


def test_a_deleted_topic() -> None:
    world = HistoryWorld()
    world.commit("g")
    topic = TopicName("t")
    topic_id = world.topics.id_of(topic)
    world.topics.counts = {}
    world.coordinator.topics_deleted(
        [(topic, topic_id)], world.now, "admin", "/10.0.0.1", "User:alice"
    )
    world.advance(1)
    moved = of(world, OffsetsMovedEntry)[-1]
    assert moved.by is OffsetsBy.TOPIC_DELETION
    assert moved.client == RequestClient("admin", "/10.0.0.1", "User:alice")


class TransactionHistoryWorld(HistoryWorld, TransactionWorld):
    """A world with both."""


@pytest.mark.parametrize("commits", [True, False])
def test_the_transaction_of_a_producer(commits: bool) -> None:
    world = TransactionHistoryWorld()
    world.commit("g")
    world.principal = ALICE
    world.txn_commit(offsets={0: 5})
    world.principal = BOB  # a marker has no client
    world.mark(commits=commits)
    ended = world.history[-1]
    assert isinstance(ended, OffsetsMovedEntry if commits else PendingOffsetsEndedEntry)
    assert (ended.client, ended.producer_id) == (BY_ALICE, P1)  # type: ignore[union-attr]


def test_text_and_json_name_it_beside_the_client() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    world.consumers(1)
    assert "as User:alice at 127.0.0.1" in "\n".join(format_rebalance(world.last))
    trigger = rebalance_json(world.last)["trigger"]
    assert isinstance(trigger, dict)
    assert trigger["principal"] == "User:alice"


def test_a_client_without_authentication_is_recorded_as_before() -> None:
    world = HistoryWorld()
    assert world.principal == ANONYMOUS
    world.principal = Principal("User", "ANONYMOUS")
    (only,) = world.consumers(1)
    world.leave("g", only)
    world.commit("g")
    world.ask(DeleteGroupsRequest([GroupId("g")]), version=2)
    assert len(world.recorded.records) > 5
    for _, value in world.recorded.records:
        assert b"principal" not in value
    assert principals([as_plain(event) for event in world.history]) == []


def test_entries_from_before_are_read() -> None:
    old = {
        "v": 1,
        "type": "group_deleted",
        "group_id": "g",
        "at_ms": 1,
        "asker": {"client_id": "a", "host": "/10.0.0.1"},
    }
    assert decode(msgpack.packb(old)) == GroupDeletedEntry(
        "g", 1, client=RequestClient("a", "/10.0.0.1")
    )


def test_a_rebalance_of_a_removal_has_the_member_that_was_removed() -> None:
    world = HistoryWorld()
    world.principal = ALICE
    _, second = world.consumers(2)
    world.principal = BOB
    world.leave("g", second)
    assert world.last.cause is Cause.MEMBER_LEFT
    assert world.last.trigger is not None
    assert world.last.trigger.principal == "User:alice"
