"""OffsetCommit: who may move a group's offsets, what is kept of them, and what is told to whom."""

from uuid import UUID

import pytest

from coordinator.classic.events import LapseForgiven, MemberFenced, SessionExtended
from coordinator.classic.group import ClassicGroup
from coordinator.events import GroupCreated
from coordinator.group import CommittedOffset
from coordinator.offsets.events import OffsetsCommitted
from coordinator.offsets.offset_commit import decide_offset_commit, refuse_offset_commit
from coordinator.outcome import Outcome
from coordinator.records import read_offset_commit_value, read_offset_key
from coordinator.settings import GroupSettings
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ZERO_TOPIC_ID,
    ErrorCode,
    GenerationId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from tests.coordinator.offset_givens import (
    AUDIT,
    GENERATION,
    GROUP,
    INSTANCE,
    MEMBER,
    NOW,
    ORDERS,
    SESSION_TIMEOUT_MS,
    SETTINGS,
    STATIC_MEMBER,
    TOPICS,
    Topics,
    carry_out,
    committed,
    given_group,
    the_answer,
    token,
    with_offsets,
)

EMPTY, STABLE = GroupState.EMPTY, GroupState.STABLE
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
NONE = ErrorCode.NONE
NEWEST = 10
BY_NAME = 9


def a_partition(
    index: int = 0, offset: int = 41, metadata: str | None = ""
) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(index, offset, 3, metadata)


def a_topic(
    *partitions: OffsetCommitRequestPartition,
    name: str = "orders",
    topic_id: TopicId = ZERO_TOPIC_ID,
) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(TopicName(name), topic_id, partitions)


def a_request(
    *topics: OffsetCommitRequestTopic,
    generation_id: GenerationId = GENERATION,
    member_id: MemberId = MEMBER,
    instance_id: GroupInstanceId | None = None,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    asked = topics or (a_topic(a_partition()),)
    return OffsetCommitRequest(GROUP, generation_id, member_id, instance_id, retention_ms, asked)


def a_simple_request(
    *topics: OffsetCommitRequestTopic, retention_ms: int = -1
) -> OffsetCommitRequest:
    return a_request(
        *topics,
        generation_id=NO_GENERATION,
        member_id=UNKNOWN_MEMBER_ID,
        retention_ms=retention_ms,
    )


def commit(
    group: ClassicGroup | None,
    request: OffsetCommitRequest,
    version: int = BY_NAME,
    settings: GroupSettings = SETTINGS,
    topics: Topics = TOPICS,
) -> Outcome:
    return decide_offset_commit(group, request, token(version), NOW, settings, topics)


def errors(outcome: Outcome) -> list[tuple[str, int, ErrorCode]]:
    answer = the_answer(outcome)
    assert isinstance(answer, OffsetCommitResponse)
    return errors_of(answer)


def errors_of(answer: OffsetCommitResponse) -> list[tuple[str, int, ErrorCode]]:
    return [(t.name, p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]


def stored(outcome: Outcome) -> dict[tuple[str, int], CommittedOffset]:
    return {
        (read_offset_key(key).topic, read_offset_key(key).partition): (
            read_offset_commit_value(value or b"")
        )
        for key, value in outcome.records
    }


# ---------------------------------------------------------------- what the group says


@pytest.mark.parametrize(
    ("state", "generation_id", "member_id", "instance_id", "expected"),
    [
        # A member in its generation.
        (STABLE, GENERATION, MEMBER, None, NONE),
        (PREPARING, GENERATION, MEMBER, None, NONE),
        (COMPLETING, GENERATION, MEMBER, None, ErrorCode.REBALANCE_IN_PROGRESS),
        (EMPTY, GENERATION, MEMBER, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.DEAD, GENERATION, MEMBER, None, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        # A static member.
        (STABLE, GENERATION, STATIC_MEMBER, INSTANCE, NONE),
        (PREPARING, GENERATION, STATIC_MEMBER, INSTANCE, NONE),
        (STABLE, GENERATION, MEMBER, INSTANCE, ErrorCode.FENCED_INSTANCE_ID),
        (STABLE, GENERATION, UNKNOWN_MEMBER_ID, INSTANCE, ErrorCode.FENCED_INSTANCE_ID),
        (STABLE, NO_GENERATION, UNKNOWN_MEMBER_ID, INSTANCE, ErrorCode.FENCED_INSTANCE_ID),
        (STABLE, GENERATION, MEMBER, "nobody's", ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, GENERATION, STATIC_MEMBER, None, NONE),
        # Another generation, another member; the member is asked before the generation.
        (STABLE, GENERATION - 1, MEMBER, None, ErrorCode.ILLEGAL_GENERATION),
        (STABLE, GENERATION + 1, MEMBER, None, ErrorCode.ILLEGAL_GENERATION),
        (STABLE, NO_GENERATION, MEMBER, None, ErrorCode.ILLEGAL_GENERATION),
        (COMPLETING, GENERATION - 1, MEMBER, None, ErrorCode.ILLEGAL_GENERATION),
        (COMPLETING, GENERATION, "m-gone", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, GENERATION - 1, "m-gone", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, GENERATION - 1, MEMBER, INSTANCE, ErrorCode.FENCED_INSTANCE_ID),
        # A consumer outside the group.
        (EMPTY, NO_GENERATION, UNKNOWN_MEMBER_ID, None, NONE),
        (EMPTY, NO_GENERATION, "whoever", "whatever", NONE),
        (EMPTY, -7, UNKNOWN_MEMBER_ID, None, NONE),
        (EMPTY, 0, UNKNOWN_MEMBER_ID, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, NO_GENERATION, UNKNOWN_MEMBER_ID, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (PREPARING, NO_GENERATION, UNKNOWN_MEMBER_ID, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (COMPLETING, NO_GENERATION, UNKNOWN_MEMBER_ID, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.DEAD, NO_GENERATION, "", None, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [2, 8, 9, 10])
def test_the_group_accepts_or_refuses_by_its_state_and_by_who_asks(
    state: GroupState,
    generation_id: int,
    member_id: str,
    instance_id: str | None,
    expected: ErrorCode,
    version: int,
) -> None:
    group = given_group(state)
    request = a_request(
        a_topic(a_partition(), topic_id=TOPICS.ids["orders"]),
        generation_id=GenerationId(generation_id),
        member_id=MemberId(member_id),
        instance_id=None if instance_id is None else GroupInstanceId(instance_id),
    )

    outcome = commit(group, request, version)

    assert errors(outcome) == [("orders", 0, expected)]
    assert bool(outcome.records) is (expected is NONE)
    kept = any(isinstance(event, OffsetsCommitted) for event in outcome.events)
    assert kept is (expected is NONE)


@pytest.mark.parametrize(
    ("generation_id", "version", "expected"),
    [
        (-1, 2, NONE),
        (-1, 10, NONE),
        (-2, 9, NONE),
        (0, 8, ErrorCode.ILLEGAL_GENERATION),
        (3, 2, ErrorCode.ILLEGAL_GENERATION),
        (3, 9, ErrorCode.GROUP_ID_NOT_FOUND),
        (3, 10, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_group_that_does_not_exist_is_made_for_a_simple_consumer_only(
    generation_id: int, version: int, expected: ErrorCode
) -> None:
    topic = a_topic(a_partition(), topic_id=TOPICS.ids["orders"])
    request = a_request(topic, generation_id=GenerationId(generation_id))

    outcome = commit(None, request, version)

    assert errors(outcome) == [("orders", 0, expected)]
    created = [event for event in outcome.events if isinstance(event, GroupCreated)]
    assert created == ([GroupCreated(GROUP, NOW.wall_ms, simple=True)] if expected is NONE else [])
    # And no record speaks of the group itself.
    assert len(outcome.records) == (1 if expected is NONE else 0)


def test_the_empty_group_id_is_a_group_like_any_other() -> None:
    request = a_simple_request()
    request.group_id = type(GROUP)("")

    assert errors(commit(None, request)) == [("orders", 0, NONE)]


def test_a_refusal_stands_on_every_partition_that_reached_the_group() -> None:
    request = a_request(
        a_topic(a_partition(0), a_partition(2)),
        a_topic(a_partition(0), name="audit"),
        generation_id=GenerationId(GENERATION - 1),
    )

    assert errors(commit(given_group(STABLE), request)) == [
        ("orders", 0, ErrorCode.ILLEGAL_GENERATION),
        ("orders", 2, ErrorCode.ILLEGAL_GENERATION),
        ("audit", 0, ErrorCode.ILLEGAL_GENERATION),
    ]


# ---------------------------------------------------------------- what exists


def test_an_unknown_topic_and_an_unknown_partition_are_refused_and_the_rest_is_kept() -> None:
    request = a_request(
        a_topic(a_partition(0), a_partition(3), a_partition(1), a_partition(-1)),
        a_topic(a_partition(7), name="nowhere"),
        a_topic(a_partition(0), name="audit"),
    )

    outcome = commit(given_group(STABLE), request)

    # What does not exist comes first, and what does is appended to its topic.
    assert errors(outcome) == [
        ("orders", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0, NONE),
        ("orders", 1, NONE),
        ("nowhere", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("audit", 0, NONE),
    ]
    assert set(stored(outcome)) == {("orders", 0), ("orders", 1), ("audit", 0)}


@pytest.mark.parametrize("group", [None, given_group(GroupState.DEAD), given_group(STABLE)])
def test_the_group_is_not_asked_when_nothing_in_the_request_exists(
    group: ClassicGroup | None,
) -> None:
    request = a_request(a_topic(a_partition(), name="nowhere"), member_id=MemberId("m-gone"))

    outcome = commit(group, request)

    assert errors(outcome) == [("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert not outcome.events
    assert not outcome.records


def test_a_request_without_topics_is_answered_without_asking_the_group() -> None:
    request = a_request(member_id=MemberId("m-gone"))
    request.topics = ()

    outcome = commit(given_group(STABLE), request)

    assert the_answer(outcome) == OffsetCommitResponse(0, [])
    assert not outcome.events


def test_a_known_topic_without_partitions_is_left_out_of_the_answer() -> None:
    request = a_request(a_topic(), a_topic(a_partition(), name="audit"), a_topic(name="nowhere"))

    answer = the_answer(commit(given_group(STABLE), request))

    assert isinstance(answer, OffsetCommitResponse)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [
        ("nowhere", 0),
        ("audit", 1),
    ]


def test_since_v10_topics_are_named_by_id_and_answered_by_id() -> None:
    unknown = UUID(int=99)
    request = a_request(
        a_topic(a_partition(1), name="", topic_id=TOPICS.ids["audit"]),
        a_topic(a_partition(0), a_partition(5), name="", topic_id=unknown),
        a_topic(a_partition(2), name="", topic_id=TOPICS.ids["orders"]),
        a_topic(a_partition(2), name="", topic_id=ZERO_TOPIC_ID),
    )

    outcome = commit(given_group(STABLE), request, NEWEST)

    answer = the_answer(outcome)
    assert isinstance(answer, OffsetCommitResponse)
    by_id = [
        (t.topic_id, [(p.partition_index, p.error_code) for p in t.partitions])
        for t in answer.topics
    ]
    assert by_id == [
        (TOPICS.ids["audit"], [(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        (unknown, [(0, ErrorCode.UNKNOWN_TOPIC_ID), (5, ErrorCode.UNKNOWN_TOPIC_ID)]),
        (ZERO_TOPIC_ID, [(2, ErrorCode.UNKNOWN_TOPIC_ID)]),
        (TOPICS.ids["orders"], [(2, NONE)]),
    ]
    assert set(stored(outcome)) == {("orders", 2)}


@pytest.mark.parametrize("version", [8, 10])
def test_the_id_of_the_topic_is_kept_with_the_offset_in_every_version(version: int) -> None:
    topic = a_topic(
        a_partition(), topic_id=TOPICS.ids["orders"] if version == 10 else ZERO_TOPIC_ID
    )

    outcome = commit(given_group(STABLE), a_request(topic), version)

    assert stored(outcome)["orders", 0].topic_id == TOPICS.ids["orders"]


@pytest.mark.parametrize(
    "error_code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ],
)
def test_a_coordinator_without_the_group_still_names_what_does_not_exist(
    error_code: ErrorCode,
) -> None:
    request = a_request(
        a_topic(a_partition(0), a_partition(9)), a_topic(a_partition(), name="nowhere")
    )

    answer = refuse_offset_commit(request, BY_NAME, TOPICS, error_code)

    assert errors_of(answer) == [
        ("orders", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0, error_code),
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


# ---------------------------------------------------------------- what is kept


def test_everything_of_a_commit_is_kept_with_the_time_of_the_coordinator() -> None:
    request = a_request(a_topic(a_partition(2, 1 << 40, "a note")))

    outcome = commit(given_group(STABLE), request)

    expected = CommittedOffset(1 << 40, 3, "a note", NOW.wall_ms, -1, TOPICS.ids["orders"])
    assert stored(outcome) == {("orders", 2): expected}
    group = carry_out(given_group(STABLE), outcome)
    assert group.offsets == {ORDERS: {2: expected}}


def test_null_metadata_is_kept_as_no_metadata() -> None:
    outcome = commit(given_group(STABLE), a_request(a_topic(a_partition(0, 5, None))))

    assert stored(outcome)["orders", 0].metadata == ""


@pytest.mark.parametrize("offset", [-1, 0, 7, (1 << 63) - 1])
def test_an_offset_may_be_anything_and_may_go_back(offset: int) -> None:
    group = with_offsets(given_group(STABLE), ("orders", 0, committed(1_000)))

    outcome = commit(group, a_request(a_topic(a_partition(0, offset))))

    assert errors(outcome) == [("orders", 0, NONE)]
    assert carry_out(group, outcome).offsets[ORDERS][0].committed_offset == offset


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("x" * 4_096, NONE),
        ("x" * 4_097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        # Java counts UTF-16 units, neither bytes nor characters.
        ("é" * 4_096, NONE),
        ("\U0001f600" * 2_048, NONE),
        ("\U0001f600" * 2_049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\U0001f600" * 2_047 + "xxx", ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_too_much_metadata_is_refused_for_its_partition_alone(
    metadata: str, expected: ErrorCode
) -> None:
    request = a_request(a_topic(a_partition(0, 1, metadata), a_partition(1)))

    outcome = commit(given_group(STABLE), request)

    assert errors(outcome) == [("orders", 0, expected), ("orders", 1, NONE)]
    assert set(stored(outcome)) == {("orders", n) for n in ((0, 1) if expected is NONE else (1,))}


def test_when_all_metadata_is_too_large_nothing_is_written_but_the_group_lives() -> None:
    request = a_simple_request(a_topic(a_partition(0, 1, "x" * 5_000)))

    outcome = commit(None, request)

    assert errors(outcome) == [("orders", 0, ErrorCode.OFFSET_METADATA_TOO_LARGE)]
    assert not outcome.records
    assert list(outcome.events) == [GroupCreated(GROUP, NOW.wall_ms, simple=True)]


@pytest.mark.parametrize(
    ("retention_ms", "expire_at_ms"),
    [
        (-1, -1),
        (0, NOW.wall_ms),
        (60_000, NOW.wall_ms + 60_000),
        (-5, NOW.wall_ms - 5),
        ((1 << 63) - 1, NOW.wall_ms + (1 << 63) - 1 - (1 << 64)),  # Java's sum wraps around
    ],
)
def test_a_retention_that_the_client_names_is_kept_as_an_expiry(
    retention_ms: int, expire_at_ms: int
) -> None:
    outcome = commit(None, a_simple_request(retention_ms=retention_ms), 4)

    assert stored(outcome)["orders", 0].expire_at_ms == expire_at_ms
    ((_, value),) = outcome.records
    assert value is not None
    assert value[:2] == (b"\x00\x04" if retention_ms == -1 else b"\x00\x01")
    # In memory the topic's id is known all the same, until the next load.
    kept = carry_out(None, outcome).offsets[ORDERS][0]
    assert kept.topic_id == TOPICS.ids["orders"]


def test_values_are_written_in_version_3_for_readers_that_know_no_other() -> None:
    settings = GroupSettings(offsets_value_version=3)

    ((_, value),) = commit(None, a_simple_request(), settings=settings).records

    assert value is not None
    assert value[:2] == b"\x00\x03"
    read = read_offset_commit_value(value)
    assert (read.committed_offset, read.leader_epoch) == (41, 3)
    assert read.topic_id == ZERO_TOPIC_ID


def test_of_two_commits_for_one_partition_the_later_counts() -> None:
    request = a_request(a_topic(a_partition(0, 5)), a_topic(a_partition(0, 6), a_partition(0, 4)))

    outcome = commit(given_group(STABLE), request)

    assert errors(outcome) == [("orders", 0, NONE)] * 3
    assert carry_out(given_group(STABLE), outcome).offsets[ORDERS][0].committed_offset == 4
    assert read_offset_commit_value(outcome.records[-1][1] or b"").committed_offset == 4


def test_a_partition_number_of_four_digits_is_like_any_other() -> None:
    request = a_request(a_topic(*(a_partition(n, n) for n in (1_023, 1_024, 4_999))))

    outcome = commit(given_group(STABLE), request, topics=Topics({"orders": 5_000}))

    assert errors(outcome) == [("orders", n, NONE) for n in (1_023, 1_024, 4_999)]
    assert {at: c.committed_offset for at, c in stored(outcome).items()} == {
        ("orders", n): n for n in (1_023, 1_024, 4_999)
    }


def test_a_commit_that_cannot_fit_into_one_batch_is_refused_as_a_whole() -> None:
    note = "x" * 4_000
    request = a_simple_request(a_topic(*(a_partition(n, n, note) for n in range(300))))
    topics = Topics({"orders": 300})

    outcome = commit(None, request, topics=topics)

    assert {error for _, _, error in errors(outcome)} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert not outcome.records
    assert not outcome.events
    # With a little less it fits.
    request.topics = [a_topic(*(a_partition(n, n, note) for n in range(250)))]
    assert len(commit(None, request, topics=topics).records) == 250


# ---------------------------------------------------------------- who is heard from


@pytest.mark.parametrize("state", [STABLE, PREPARING])
def test_a_commit_extends_the_session_of_the_member(state: GroupState) -> None:
    outcome = commit(given_group(state), a_request())

    moved = [event for event in outcome.events if isinstance(event, SessionExtended)]
    assert moved == [SessionExtended(GROUP, MEMBER, NOW.mono_ms + SESSION_TIMEOUT_MS)]
    group = carry_out(given_group(state), outcome)
    assert group.members[MEMBER].session_deadline_ms == NOW.mono_ms + SESSION_TIMEOUT_MS


@pytest.mark.parametrize(
    ("state", "generation_id"),
    [(COMPLETING, GENERATION), (STABLE, GENERATION - 1), (PREPARING, GENERATION + 1)],
)
def test_a_refused_commit_extends_no_session(state: GroupState, generation_id: int) -> None:
    outcome = commit(given_group(state), a_request(generation_id=GenerationId(generation_id)))

    assert not outcome.events


def test_a_commit_without_any_acceptable_partition_still_extends_the_session() -> None:
    request = a_request(a_topic(a_partition(0, 1, "x" * 5_000)))

    outcome = commit(given_group(STABLE), request)

    assert [type(event) for event in outcome.events] == [SessionExtended]


def test_a_member_whose_session_has_lapsed_is_taken_back() -> None:
    group = given_group(STABLE)
    group.members[MEMBER].lapsed_at_ms = NOW.mono_ms - 70
    group.open_lapsed()[MEMBER] = None

    outcome = commit(group, a_request())

    forgiven, kept = outcome.events
    assert isinstance(forgiven, LapseForgiven)
    assert forgiven.late_by_ms == 70
    assert isinstance(kept, OffsetsCommitted)
    after = carry_out(group, outcome)
    assert after.members[MEMBER].lapsed_at_ms is None
    assert after.members[MEMBER].session_deadline_ms == NOW.mono_ms + SESSION_TIMEOUT_MS


def test_a_fenced_member_is_reported() -> None:
    outcome = commit(given_group(STABLE), a_request(instance_id=INSTANCE))

    (fenced,) = outcome.events
    assert isinstance(fenced, MemberFenced)
    assert (fenced.member_id, fenced.current_member_id) == (MEMBER, STATIC_MEMBER)


# ---------------------------------------------------------------- what is told


def test_the_event_says_who_committed_what() -> None:
    request = a_request(a_topic(a_partition(0, 5)), a_topic(a_partition(0, 6), name="audit"))

    outcome = commit(given_group(STABLE), request)

    (event,) = (event for event in outcome.events if isinstance(event, OffsetsCommitted))
    assert (event.member_id, event.generation_id) == (MEMBER, GENERATION)
    assert (event.client_id, event.client_host) == ("a-client", "/10.0.0.1")
    assert [(t, {n: c.committed_offset for n, c in kept.items()}) for t, kept in event.offsets] == [
        (ORDERS, {0: 5}),
        (AUDIT, {0: 6}),
    ]
    assert event.replaced == ()


def test_a_commit_from_outside_the_group_says_what_it_replaced() -> None:
    group = with_offsets(
        given_group(EMPTY), ("orders", 0, committed(100)), ("orders", 1, committed(200))
    )
    request = a_simple_request(
        a_topic(a_partition(0, 5), a_partition(2, 6)), a_topic(a_partition(), name="audit")
    )

    outcome = commit(group, request)

    (event,) = (event for event in outcome.events if isinstance(event, OffsetsCommitted))
    assert event.replaced == [(ORDERS, {0: committed(100)})]
    after = carry_out(group, outcome)
    assert {n: c.committed_offset for n, c in after.offsets[ORDERS].items()} == {0: 5, 1: 200, 2: 6}


def test_groups_share_the_name_of_a_topic_in_memory() -> None:
    names = []
    for _ in range(2):
        fresh = TopicName(b"orders".decode())
        outcome = commit(given_group(STABLE), a_request(a_topic(a_partition(), name=fresh)))
        names += carry_out(given_group(STABLE), outcome).offsets
    assert names[0] is names[1]
