"""Observer: each type of event becomes log lines and counts, or is silent on purpose."""

import io
import json
from datetime import UTC, datetime
from typing import get_args

import pytest
from msgspec.structs import replace

from broker.audit.entry import AuditEntry
from broker.observe import cleaner_events as cleaner
from broker.observe import events as shell
from broker.observe.counters import COUNTING
from broker.observe.log_lines import VALUE_CHARS_MAX
from broker.observe.observer import LOG_LINES, Observer, open_log, sentence_writer
from coordinator.classic import events as groups
from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import RemovalCause, RemovedMember
from coordinator.consumer import events as consumers
from coordinator.events import (
    ConversionEvent,
    GroupCreated,
    GroupDeleted,
    PartitionClosed,
    PartitionEvent,
    PartitionLoadFailed,
)
from coordinator.group import CommittedOffset
from coordinator.member_identity import MemberIdentity
from coordinator.offsets import events as offsets
from protocol.names import GenerationId, GroupId, GroupState, MemberId, TopicName
from storage import open as opening
from topics import events as topics
from transactions import events as transactions

EVENTS = (
    GroupCreated
    | GroupDeleted
    | ConversionEvent
    | groups.ClassicEvent
    | consumers.ConsumerEvent
    | PartitionEvent
    | offsets.OffsetEvent
    | topics.TopicEvent
    | shell.ShellEvent
    | cleaner.CleanerEvent
    | opening.OpenEvent
    | transactions.TransactionEvent
    | AuditEntry
)
"""What the parts report, of all kinds."""

SILENT = {
    groups.MemberRejoined,
    groups.SessionExtended,
    groups.SessionPaused,
    groups.SyncParked,
    groups.MemberSynced,
    groups.GroupStabilized,  # Kafka logs "Stabilized group" when the generation begins
    PartitionLoadFailed,  # PartitionNotLoaded has its epoch
    groups.ChangedTopicsForgotten,
    groups.ConsumerGroupDowngraded,  # follows GroupConverted
    consumers.ClassicGroupUpgraded,  # likewise
    consumers.ClassicJoinAnswered,
    consumers.ClassicMemberSynced,
    consumers.ClassicRejoinRequested,
    consumers.ConsumerSessionExtended,
    consumers.MetadataRefreshRequested,
    consumers.MetadataRefreshed,
    consumers.RegularExpressionRemoved,
    consumers.RegularExpressionsRequested,
    consumers.TargetAssignmentRequested,
    offsets.OffsetsCommitted,  # thousands a second
    topics.RecordsAppended,
    topics.RecordsFetched,
    topics.ProduceRefused,  # the producer gets the reason
    topics.ProducerIdsReserved,
    shell.MarkersWritten,
    transactions.TransactionBegun,
    transactions.TransactionPartitionsAdded,
    transactions.TransactionsLoadFailed,  # as PartitionLoadFailed
}
"""These have no log line."""

UNCOUNTED = {
    consumers.ClassicGroupUpgraded,
    consumers.ClassicJoinAnswered,
    consumers.ClassicMemberSynced,
    consumers.ClassicRejoinRequested,
    consumers.ConsumerSessionExtended,
    consumers.MetadataRefreshRequested,
    consumers.MetadataRefreshed,
    consumers.RegularExpressionRemoved,
    consumers.RegularExpressionsRequested,
    consumers.TargetAssignmentRequested,
    groups.ChangedTopicsForgotten,
    groups.ConsumerGroupDowngraded,
    groups.MemberRejoined,
    groups.MemberSynced,
    groups.SessionExtended,
    groups.SessionPaused,
    groups.SyncParked,
    PartitionLoadFailed,
    topics.ProduceRefused,
    topics.ProducerIdsReserved,
    transactions.TransactionBegun,
    transactions.TransactionPartitionsAdded,
    transactions.TransactionsLoadFailed,
}
"""These have no log line and no counter: the parts count them, or nobody asks."""


def test_every_event_has_a_log_line_or_is_silent_on_purpose() -> None:
    assert LOG_LINES.keys() | SILENT == set(get_args(EVENTS))
    assert LOG_LINES.keys() & SILENT == set()


def test_every_silent_event_is_counted_or_neither_on_purpose() -> None:
    assert COUNTING.keys() <= set(get_args(EVENTS))
    assert SILENT - COUNTING.keys() == UNCOUNTED


G = GroupId("billing")
MEMBER = MemberIdentity(MemberId("m-1"), None, "app", "/10.0.0.7")


def rebalance_begun(now_ms: int) -> groups.RebalanceBegun:
    return groups.RebalanceBegun(
        group_id=G,
        at_ms=1,
        now_ms=now_ms,
        from_state=GroupState.STABLE,
        old_generation_id=GenerationId(3),
        cause=RebalanceCause.MEMBER_JOINED,
        reason="Adding new member m-1",
        trigger_ids=(MemberId("m-1"),),
        waiting_for=tuple(MEMBER._replace(member_id=MemberId(f"m-{n}")) for n in range(30)),
        rebalance_timeout_ms=1,
    )


def removed(cause: RemovalCause, member: MemberIdentity = MEMBER) -> groups.MembersRemoved:
    return groups.MembersRemoved(
        group_id=G,
        at_ms=1,
        state=GroupState.STABLE,
        generation_id=GenerationId(3),
        cause=cause,
        removed=(RemovedMember(member, "closing"),),
    )


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            RemovalCause.SESSION_EXPIRED,
            "Member m-1 in group billing has failed, removing it from the group.",
        ),
        (
            RemovalCause.LEFT,
            (
                "[Group billing] Member m-1 has left group through explicit `LeaveGroup` request; "
                "client reason: closing"
            ),
        ),
        (
            RemovalCause.DID_NOT_REJOIN,
            "Group billing removed dynamic members who haven't joined: [m-1]",
        ),
        (
            RemovalCause.DID_NOT_SYNC,
            "Group billing removed members who haven't sent their sync requests: [m-1]",
        ),
    ],
)
def test_a_removal_is_logged_in_the_words_of_its_cause(
    stream: io.StringIO, cause: RemovalCause, words: str
) -> None:
    Observer(open_log("json", "debug", stream))(removed(cause))
    (line,) = lines(stream)
    assert line["event"] == words
    assert line["group_id"] == "billing"


def test_a_line_names_some_members_and_counts_the_rest(stream: io.StringIO) -> None:
    Observer(open_log("json", "info", stream))(rebalance_begun(0))
    (line,) = lines(stream)
    assert line["event"] == (
        "Preparing to rebalance group billing in state PreparingRebalance with old generation 3 "
        "(reason: Adding new member m-1)."
    )
    assert line["state"] == "PreparingRebalance"
    assert line["reason"] == "Adding new member m-1"
    waiting = line["waiting_for"]
    assert isinstance(waiting, list)
    assert len(waiting) == 21
    assert waiting[-1] == "and 10 more"


def test_people_read_kafkas_sentence_and_programs_the_fields_beside_it(
    stream: io.StringIO,
) -> None:
    expired = removed(RemovalCause.SESSION_EXPIRED)
    sentence = "Member m-1 in group billing has failed, removing it from the group."
    Observer(open_log("human", "info", stream))(expired)
    time, _, line = stream.getvalue().partition(" ")
    assert time.endswith("Z")
    assert line == f"[info     ] {sentence}\n"  # no colours where nobody sees them
    stream.seek(0)
    stream.truncate()
    Observer(open_log("json", "info", stream))(expired)
    (fields,) = lines(stream)
    del fields["timestamp"]
    assert fields == {
        "event": sentence,
        "level": "info",
        "group_id": "billing",
        "member_id": "m-1",
        "client_host": "/10.0.0.7",
    }


@pytest.mark.parametrize(
    ("principal", "behind"), [(None, ""), ("User:alice", " principal=User:alice")]
)
def test_behind_a_sentence_people_read_who_has_logged_in(
    stream: io.StringIO, principal: str | None, behind: str
) -> None:
    member = MEMBER._replace(principal=principal)
    expired = removed(RemovalCause.SESSION_EXPIRED, member)
    Observer(open_log("human", "info", stream))(expired)
    sentence = "Member m-1 in group billing has failed, removing it from the group."
    assert stream.getvalue().partition("] ")[2] == f"{sentence}{behind}\n"


@pytest.mark.parametrize(
    "member",
    [
        MEMBER,
        MEMBER._replace(principal="User:alice"),
        MEMBER._replace(member_id=MemberId("\x1b[31m red\n")),
        MEMBER._replace(member_id=MemberId("m" * 2_000)),
    ],
)
def test_the_short_way_writes_the_same_line(stream: io.StringIO, member: MemberIdentity) -> None:
    event = removed(RemovalCause.SESSION_EXPIRED, member)
    Observer(open_log("human", "info", stream))(event)
    long_way = stream.getvalue().partition(" ")[2]
    stream.seek(0)
    stream.truncate()
    Observer(open_log("human", "info", stream), "info", sentence_writer("human", stream))(event)
    time, _, line = stream.getvalue().partition(" ")
    assert line == long_way
    assert datetime.fromisoformat(time).tzinfo is UTC


@pytest.mark.parametrize(("style", "is_terminal"), [("json", False), ("human", True)])
def test_there_is_no_short_way_for_lines_of_other_forms(style: str, is_terminal: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    assert sentence_writer(style, Stream()) is None


def test_words_of_our_own_have_their_values_behind_them(stream: io.StringIO) -> None:
    Observer(open_log("human", "info", stream))(shell.LoopStalled(1_500))
    assert "sessions are extended by as much stalled_ms=1500" in stream.getvalue()


def test_below_its_level_nothing_is_written(stream: io.StringIO) -> None:
    Observer(open_log("json", "error", stream))(removed(RemovalCause.LEFT))
    assert stream.getvalue() == ""


def test_a_log_that_cannot_be_written_stops_nothing(stream: io.StringIO) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    observer = Observer(open_log("json", "info", Full()))
    observer(removed(RemovalCause.LEFT))
    assert observer.lines_lost == 1
    assert observer.counters.members_removed == {"left": 1}


def test_rebalances_are_counted_by_cause_and_timed_to_their_end(stream: io.StringIO) -> None:
    observer = Observer(open_log("json", "error", stream))
    observer(rebalance_begun(1_000))
    observer(rebalance_begun(2_000))  # begun again before it ended: it is one for its clients
    observer(
        groups.GroupStabilized(
            group_id=G,
            at_ms=1,
            now_ms=3_500,
            generation_id=GenerationId(4),
            assignments={},
            answered=(),
        )
    )
    counters = observer.counters
    assert counters.rebalances_begun == {"member_joined": 2}
    assert counters.rebalances_completed == {"member_joined": 1}
    assert counters.rebalance_seconds.total == 2.5
    assert sum(counters.rebalance_seconds.counts) == 1


def test_commits_are_counted_by_partition(stream: io.StringIO) -> None:
    observer = Observer(open_log("json", "error", stream))
    committed = {0: CommittedOffset(1), 1: CommittedOffset(2)}
    observer(
        offsets.OffsetsCommitted(
            group_id=G,
            at_ms=1,
            generation_id=GenerationId(1),
            member_id=MemberId("m"),
            client_id="c",
            client_host="/h",
            offsets=[(TopicName("a"), committed), (TopicName("b"), {5: CommittedOffset(9)})],
        )
    )
    assert observer.counters.offsets_committed == 3


def test_an_unexpected_error_says_what_and_where(stream: io.StringIO) -> None:
    try:
        _make_a_mistake()
    except ZeroDivisionError as error:
        Observer(open_log("json", "info", stream))(shell.PartFailed("timer", error))
    (line,) = lines(stream)
    assert line["part"] == "timer"
    assert line["error"] == "ZeroDivisionError('division by zero')"
    assert str(line["at"]).endswith("_make_a_mistake")
    assert "Traceback" not in stream.getvalue()


@pytest.mark.parametrize("style", ["json", "human"])
def test_what_a_client_made_long_does_not_make_long_lines(stream: io.StringIO, style: str) -> None:
    observer = Observer(open_log(style, "debug", stream))
    long_id = "x" * 32_767
    observer(replace(generation_begun(), group_id=GroupId(long_id)))
    observer(shell.RequestFailed("JOIN_GROUP", 9, "127.0.0.1:1", ValueError(long_id)))
    observer(shell.PartFailed("connection", ValueError(long_id)))
    observer(shell.Warned("words", {"names": [long_id, "short"], "error": ValueError(long_id)}))
    written = stream.getvalue().splitlines()
    assert len(written) == 4
    assert max(map(len, written)) < 3 * VALUE_CHARS_MAX
    assert all("characters)" in line for line in written)
    assert "short" in written[-1]


def test_a_failure_that_is_only_counted_is_counted(stream: io.StringIO) -> None:
    observer = Observer(open_log("json", "info", stream))
    observer(shell.PartFailed("connection", ValueError("x"), 99))
    observer(shell.PartFailed("connection", ValueError("x"), is_logged=False))
    assert observer.counters.parts_failed == 2
    assert [line["since_last_line"] for line in lines(stream)] == [99]


def _make_a_mistake() -> None:
    1 / 0  # noqa: B018 - that is the mistake


def generation_begun(*waited_ms: int) -> groups.GenerationBegun:
    return groups.GenerationBegun(
        group_id=G,
        at_ms=1,
        now_ms=1,
        generation_id=GenerationId(4),
        protocol_type="consumer",
        protocol_name="range",
        leader_id=MemberId("m-1"),
        subscribed_topics=None,
        recorded=True,
        joined=(MEMBER,) * len(waited_ms),
        waited_ms=waited_ms,
        absent=(),
    )


def test_each_join_is_counted_with_the_time_that_it_waited(stream: io.StringIO) -> None:
    observer = Observer(open_log("json", "error", stream))
    observer(generation_begun(5, 2_000, 2_000))
    waits = observer.counters.join_wait_seconds
    assert sum(waits.counts) == 3
    assert waits.total == 4.005


def test_the_oldest_rebalance_is_the_one_that_began_first_and_has_not_ended(
    stream: io.StringIO,
) -> None:
    observer = Observer(open_log("json", "error", stream))
    counters = observer.counters
    assert counters.oldest_rebalance_ms(1_000) == 0
    observer(rebalance_begun(100))
    observer(replace(rebalance_begun(400), group_id=GroupId("other")))
    observer(rebalance_begun(700))  # again: its members have waited since the first time
    assert counters.oldest_rebalance_ms(1_000) == 900
    observer(GroupDeleted(G, at_ms=1, cause=offsets.DeletionCause.REQUESTED, offsets=()))
    assert counters.oldest_rebalance_ms(1_000) == 600
    observer(PartitionClosed(partition=1, at_ms=1, groups=1))
    assert counters.oldest_rebalance_ms(1_000) == 0


@pytest.mark.parametrize(("generation_id", "outside"), [(-1, 2), (7, 0)])
def test_commits_from_outside_a_generation_are_counted_apart(
    stream: io.StringIO, generation_id: int, outside: int
) -> None:
    observer = Observer(open_log("json", "error", stream))
    committed = {0: CommittedOffset(5), 1: CommittedOffset(6)}
    observer(
        offsets.OffsetsCommitted(
            group_id=G,
            at_ms=1,
            generation_id=GenerationId(generation_id),
            member_id=MemberId(""),
            client_id="c",
            client_host="/h",
            offsets=[(TopicName("t"), committed)],
        )
    )
    assert observer.counters.offsets_committed == 2
    assert observer.counters.offsets_committed_outside == outside


def test_loads_are_timed(stream: io.StringIO) -> None:
    observer = Observer(open_log("json", "error", stream))
    for load_ms in (20, 1_500):
        observer(
            shell.PartitionRead(
                partition=1, epoch=1, records=10, size_bytes=1, load_ms=load_ms, queued_ms=0
            )
        )
    assert sum(observer.counters.load_seconds.counts) == 2
    assert observer.counters.load_seconds_max == 1.5
    assert observer.counters.records_loaded == 20


def test_what_a_client_chose_is_escaped_for_people_and_exact_for_programs() -> None:
    evil = GroupId("a{}\x1b[31mred\nline\u202eeslaer\x00\x7f\x9b")
    event = replace(rebalance_begun(0), group_id=evil, reason=f"because of {evil}")
    for_people, for_programs = io.StringIO(), io.StringIO()
    Observer(open_log("human", "debug", for_people))(event)
    Observer(open_log("json", "debug", for_programs))(event)
    (line,) = for_people.getvalue().splitlines()
    assert line.isprintable()
    assert "rebalance group a{}\\x1b[31mred\\nline\\u202eeslaer\\x00\\x7f\\x9b" in line
    assert lines(for_programs)[0]["group_id"] == evil


def test_names_in_lists_and_faults_are_escaped_too() -> None:
    evil = "m\x1b[2J\u202e\n"
    event = replace(rebalance_begun(0), waiting_for=(MEMBER._replace(member_id=MemberId(evil)),))
    stream = io.StringIO()
    observer = Observer(open_log("human", "debug", stream))
    observer(event)
    observer(shell.PartFailed("part", ValueError(evil)))
    observer(shell.Warned("words", {"reason": OSError(evil)}))
    assert all(line.isprintable() for line in stream.getvalue().splitlines())
    assert len(stream.getvalue().splitlines()) == 3


def test_a_loop_of_rebalances_without_a_rejoin_does_not_flood_the_log(
    stream: io.StringIO,
) -> None:
    observer = Observer(open_log("json", "info", stream))
    for n in range(490):
        observer(groups.NoMemberRejoined(G, 1_000 + n, (MEMBER,)))
    times = [line.get("times", 1) for line in lines(stream)]
    assert times == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_a_gap_in_the_history_is_logged_in_the_words_that_scripts_expect(
    stream: io.StringIO,
) -> None:
    Observer(open_log("json", "info", stream))(shell.HistoryLost("disk full"))
    (line,) = lines(stream)
    assert line["event"] == "The history of groups has a gap: facts could not be kept"
    assert (line["level"], line["reason"]) == ("warning", "disk full")
