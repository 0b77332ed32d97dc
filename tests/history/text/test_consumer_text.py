"""Text of consumer groups: rebalances and entries as lines and as JSON, word for word."""

from typing import get_args

import pytest

from broker.history_log.consumer_wait import consumer_group_wait
from history.causes import Cause, WaitEnd
from history.consumer_entries import (
    ConsumerEntry,
    PartitionsAssignedEntry,
    RevocationEndedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import (
    MemberFencedEntry,
    Rebalance,
)
from history.entry_values import MemberWait, PartitionHandover
from history.text.consumer_text import format_consumer_entry
from history.text.entry_text import format_entry
from history.text.rebalance_json import rebalance_json
from history.text.rebalance_text import format_rebalance, format_wait
from history.waiting import WaitReason
from tests.consumer_client import ConsumerClient
from tests.history.consumer_history import ConsumerHistory
from tests.history.history_world import HistoryWorld


def test_the_story_of_a_reconciliation() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(12_000)
    world.turn(world.moves("m-1", 3, owned=(0, 1)))
    world.advance(3_000)
    world.turn(world.moves("m-2", 3, owned=(2, 3)))
    rebalance, first = world.rebalances()
    assert format_rebalance(rebalance) == [
        "2023-11-14T22:14:20.000Z  epoch 2 -> 3, members 1 -> 2, took 20 s",
        "  Cause: member_joined. client-m-2 (m-2) at 10.0.0.1 joined the group.",
        "  Waited for 1 member: client-m-1 (m-1) at 10.0.0.1 gave back 2 partitions after 12 s.",
        (
            "  Reached the target assignment (assignor uniform): client-m-2 (m-2) at 10.0.0.1 "
            "after 20 s, client-m-1 (m-1) at 10.0.0.1 after 17 s."
        ),
        "  Cost: 2 partitions moved; 6 partition-seconds without an owner.",
        "  Moved: t-2, t-3 from client-m-1 (m-1) at 10.0.0.1 to client-m-2 (m-2) at 10.0.0.1.",
    ]
    assert format_rebalance(first)[0].endswith("epoch 1 -> 2, members 0 -> 1, took 0 ms")
    plain = rebalance_json(rebalance)
    assert (plain["group_type"], plain["assignor"]) == ("consumer", "uniform")
    assert plain["waited_for"] == [
        {
            "member_id": "m-1",
            "client_id": "client-m-1",
            "join_delay_ms": 17_000,
            "how_it_ended": "revoked",
            "waited_ms": 12_000,
            "partitions": 2,
        }
    ]
    reached = plain["reached_target"]
    assert isinstance(reached, list)
    assert [(member["member_id"], member["delay_ms"]) for member in reached] == [
        ("m-2", 20_000),
        ("m-1", 17_000),
    ]


def test_the_lines_of_a_handover() -> None:
    world = ConsumerHistory()
    world.given_revocation()
    world.advance(12_000)
    world.turn(world.moves("m-1", 3, owned=(0, 1)))
    world.advance(3_000)
    world.turn(world.moves("m-2", 3, owned=(2, 3)))
    lines = [
        format_entry(entry) for entry in world.entries if isinstance(entry, get_args(ConsumerEntry))
    ]
    assert lines[3:] == [
        "3: member_joined by client-m-2 (m-2) at 10.0.0.1; 2 members",
        (
            "3 by uniform in 3 ms; 2 members with another target; 2 partitions to move; t-2 m-1 -> "
            "m-2, t-3 m-1 -> m-2"
        ),
        "client-m-1 (m-1) at 10.0.0.1 is to give back t-2, t-3 for epoch 3, within 60 s",
        "client-m-1 (m-1) at 10.0.0.1 gave back 2 partitions, after 12 s",
        (
            "client-m-2 (m-2) at 10.0.0.1 in epoch 3: t-2 from m-1 after 3.0 s without an owner, "
            "t-3 from m-1 after 3.0 s without an owner; it has reached its target"
        ),
    ]


@pytest.mark.parametrize("kind", get_args(ConsumerEntry), ids=lambda kind: kind.__name__)
def test_every_entry_has_words_also_without_any_field(kind: type[ConsumerEntry]) -> None:
    text = format_consumer_entry(kind("g", 1))
    assert text
    assert "None" not in text


@pytest.mark.parametrize("end", WaitEnd)
def test_every_end_of_a_wait_for_partitions_has_words(end: WaitEnd) -> None:
    world = ConsumerHistory()
    world.given_revocation()
    wait = MemberWait(world.rebalances()[0].waited_for[0].member, 5, end, 1, 4_000, 3)
    story = format_rebalance(
        Rebalance(Cause.MEMBER_JOINED, 1, group_type="consumer", waited_for=(wait,))
    )
    (line,) = [line for line in story if "Waited for" in line]
    assert "{" not in line
    assert format_entry(RevocationEndedEntry("g", 1, wait.member, end, 3, 3, 4_000))


def test_a_member_that_waits_for_others_is_described_so() -> None:
    entry = PartitionsAssignedEntry(
        "g",
        1,
        member_epoch=3,
        target_epoch=3,
        handed_over=(PartitionHandover("t", 1),),
        waits_for=2,
    )
    assert "t-1; waits for 2 partitions that others still own" in format_entry(entry)
    many = TargetAssignmentUpdatedEntry("g", 1, 4, "mine", 80, 300)
    assert format_entry(many) == "4 by mine in 80 ms; 300 members with another target"
    fenced = MemberFencedEntry(
        "g", 1, "m-1", request="CONSUMER_GROUP_HEARTBEAT", error="FENCED_MEMBER_EPOCH",
        received_epoch=2, member_epoch=3,
    )  # fmt: skip
    assert format_entry(fenced) == (
        "CONSUMER_GROUP_HEARTBEAT of m-1 with epoch 2 refused with FENCED_MEMBER_EPOCH; the "
        "member's is 3"
    )


def test_a_group_says_for_whom_it_waits() -> None:
    world = HistoryWorld()
    world.given_topics(t=4)
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    assert consumer_group_wait(world.consumer_group(), world.now) is None
    b.join()
    waiting = consumer_group_wait(world.consumer_group(), world.now)
    assert waiting is not None
    assert waiting.waits_for is WaitReason.TARGET
    world.advance(5_000)
    b.beat()
    waiting = consumer_group_wait(world.consumer_group(), world.now)
    assert waiting is not None
    assert waiting.waits_for is WaitReason.RECONCILIATION
    a.beat()
    world.advance(2_000)
    waiting = consumer_group_wait(world.consumer_group(), world.now)
    assert waiting is not None
    assert waiting.waits_for is WaitReason.REVOCATIONS
    assert [awaited.member.member_id for awaited in waiting.members] == ["a"]
    first, second, last = format_wait(waiting, world.now.wall_ms)
    assert first.startswith("Reconciling for 2.0 s: waits for 1 member to give partitions back")
    assert "a (a)" in second
    assert "max.poll.interval.ms" in last
