"""OffsetFetch: what a group committed, in the shape of each version; nothing is no error."""

from uuid import UUID

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.offsets.offset_fetch import (
    fetch_offsets_of_group,
    offset_fetch_response,
    refuse_offset_fetch,
    wanted_groups,
)
from protocol.codec import decode_response, encode_response
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
)
from protocol.names import (
    ZERO_TOPIC_ID,
    ApiKey,
    ErrorCode,
    GroupId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from tests.coordinator.offset_givens import (
    AUDIT,
    GROUP,
    ORDERS,
    TOPICS,
    committed,
    given_group,
    with_offsets,
)

ALL_VERSIONS = OffsetFetchRequest.VERSIONS
NEWEST = 10
NONE = ErrorCode.NONE
ORDERS_ID, AUDIT_ID = TOPICS.ids["orders"], TOPICS.ids["audit"]
EARLIER_ID = UUID(int=77)

Row = tuple[str, int, int, ErrorCode]


def a_group() -> ClassicGroup:
    return with_offsets(
        given_group(GroupState.EMPTY),
        ("orders", 0, committed(10, topic_id=ORDERS_ID)),
        ("orders", 2, committed(30)),
        ("audit", 0, committed(5, topic_id=EARLIER_ID)),
    )


def wanted(
    *topics: tuple[str, list[int]], topic_id: TopicId = ZERO_TOPIC_ID
) -> OffsetFetchRequestGroup:
    asked = [
        OffsetFetchRequestTopics(TopicName(name), topic_id, partitions)
        for name, partitions in topics
    ]
    return OffsetFetchRequestGroup(GROUP, topics=asked)


def rows(answer: OffsetFetchResponseGroup) -> list[Row]:
    assert answer.error_code is NONE
    return [
        (topic.name, p.partition_index, p.committed_offset, p.error_code)
        for topic in answer.topics
        for p in topic.partitions
    ]


# ---------------------------------------------------------------- one group's answer


def test_what_was_committed_is_answered_and_the_rest_is_minus_one() -> None:
    answer = fetch_offsets_of_group(
        a_group(), wanted(("orders", [0, 1, 2]), ("nowhere", [4])), 9, TOPICS
    )

    assert rows(answer) == [
        ("orders", 0, 10, NONE),
        ("orders", 1, -1, NONE),
        ("orders", 2, 30, NONE),
        ("nowhere", 4, -1, NONE),
    ]
    first, second = answer.topics[0].partitions[:2]
    assert (first.committed_leader_epoch, first.metadata) == (3, "note")
    assert (second.committed_leader_epoch, second.metadata) == (-1, "")


@pytest.mark.parametrize(
    "group", [None, with_offsets(given_group(GroupState.DEAD), ("orders", 0, committed(1)))]
)
def test_a_group_that_is_not_there_has_no_offsets_and_that_is_no_error(
    group: ClassicGroup | None,
) -> None:
    assert rows(fetch_offsets_of_group(group, wanted(("orders", [0, 1])), 9, TOPICS)) == [
        ("orders", 0, -1, NONE),
        ("orders", 1, -1, NONE),
    ]
    everything = OffsetFetchRequestGroup(GROUP, topics=None)
    assert rows(fetch_offsets_of_group(group, everything, 9, TOPICS)) == []


@pytest.mark.parametrize("state", [s for s in GroupState if s is not GroupState.DEAD])
def test_offsets_are_answered_in_every_state_of_the_group(state: GroupState) -> None:
    group = with_offsets(given_group(state), ("orders", 0, committed(10)))

    assert rows(fetch_offsets_of_group(group, wanted(("orders", [0])), 7, TOPICS)) == [
        ("orders", 0, 10, NONE)
    ]


def test_all_topics_are_those_with_a_commit() -> None:
    everything = OffsetFetchRequestGroup(GROUP, topics=None)

    assert rows(fetch_offsets_of_group(a_group(), everything, 9, TOPICS)) == [
        ("orders", 0, 10, NONE),
        ("orders", 2, 30, NONE),
        ("audit", 0, 5, NONE),
    ]


def test_no_topics_are_not_all_topics() -> None:
    assert rows(fetch_offsets_of_group(a_group(), wanted(), 9, TOPICS)) == []


def test_since_v10_a_topic_whose_id_is_unknown_stands_at_the_end_with_an_error() -> None:
    unknown = OffsetFetchRequestTopics(TopicName(""), EARLIER_ID, [0, 1])
    known = OffsetFetchRequestTopics(TopicName(""), ORDERS_ID, [0, 1])
    request = OffsetFetchRequestGroup(GROUP, topics=[unknown, known])

    answer = fetch_offsets_of_group(a_group(), request, NEWEST, TOPICS)

    assert [(topic.topic_id, rows_of.committed_offset, rows_of.error_code)
            for topic in answer.topics for rows_of in topic.partitions] == [
        (ORDERS_ID, 10, NONE),
        (ORDERS_ID, -1, NONE),
        (EARLIER_ID, -1, ErrorCode.UNKNOWN_TOPIC_ID),
        (EARLIER_ID, -1, ErrorCode.UNKNOWN_TOPIC_ID),
    ]  # fmt: skip


def test_since_v10_an_offset_of_an_earlier_topic_of_that_name_is_no_offset() -> None:
    audit = OffsetFetchRequestTopics(TopicName(""), AUDIT_ID, [0])
    orders = OffsetFetchRequestTopics(TopicName(""), ORDERS_ID, [2])  # was kept without an id
    request = OffsetFetchRequestGroup(GROUP, topics=[audit, orders])

    assert rows(fetch_offsets_of_group(a_group(), request, NEWEST, TOPICS)) == [
        ("audit", 0, -1, NONE),
        ("orders", 2, 30, NONE),
    ]
    # By name nobody can tell.
    assert rows(fetch_offsets_of_group(a_group(), wanted(("audit", [0])), 9, TOPICS)) == [
        ("audit", 0, 5, NONE)
    ]


def test_since_v10_all_topics_are_named_by_id_and_those_without_one_are_left_out() -> None:
    group = with_offsets(a_group(), ("gone", 0, committed(1)))
    everything = OffsetFetchRequestGroup(GROUP, topics=None)

    answer = fetch_offsets_of_group(group, everything, NEWEST, TOPICS)

    assert [(topic.name, topic.topic_id) for topic in answer.topics] == [
        (ORDERS, ORDERS_ID),
        (AUDIT, AUDIT_ID),
    ]
    by_name = fetch_offsets_of_group(group, everything, 9, TOPICS)
    assert [topic.topic_id for topic in by_name.topics] == [ZERO_TOPIC_ID] * 3


def test_a_partition_with_an_open_transactional_commit_is_unstable() -> None:
    unstable = {ORDERS: {2}, TopicName("nowhere"): {0}}
    request = wanted(("orders", [0, 2]), ("nowhere", [0]))

    answer = fetch_offsets_of_group(a_group(), request, 9, TOPICS, unstable)

    assert rows(answer) == [
        ("orders", 0, 10, NONE),
        ("orders", 2, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT),
        ("nowhere", 0, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ]
    everything = OffsetFetchRequestGroup(GROUP, topics=None)
    assert ("orders", 2, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT) in rows(
        fetch_offsets_of_group(a_group(), everything, 9, TOPICS, unstable)
    )


def test_a_member_id_and_an_epoch_are_ignored_in_a_classic_group() -> None:
    request = wanted(("orders", [0]))
    request.member_id, request.member_epoch = MemberId("m-gone"), 9

    assert rows(fetch_offsets_of_group(a_group(), request, 9, TOPICS)) == [("orders", 0, 10, NONE)]


# ---------------------------------------------------------------- the shapes of the versions


def over_the_wire(answer: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    frame = encode_response(ApiKey.OFFSET_FETCH, version, 1, answer)
    _, read = decode_response(ApiKey.OFFSET_FETCH, version, frame, 4, len(frame))
    assert isinstance(read, OffsetFetchResponse)
    return read


@pytest.mark.parametrize("version", [v for v in ALL_VERSIONS if v < 8])
def test_up_to_v7_one_group_is_asked_and_answered(version: int) -> None:
    request = OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(ORDERS, (0, 1))])

    (asked,) = wanted_groups(request, version)
    assert asked == wanted(("orders", (0, 1)))
    answer = over_the_wire(
        offset_fetch_response([fetch_offsets_of_group(a_group(), asked, version, TOPICS)], version),
        version,
    )

    assert not answer.groups
    (topic,) = answer.topics
    assert topic.name == ORDERS
    assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(0, 10), (1, -1)]
    assert topic.partitions[0].metadata == "note"
    assert topic.partitions[0].committed_leader_epoch == (3 if version >= 5 else -1)


@pytest.mark.parametrize("version", [2, 7])
def test_null_topics_are_all_topics(version: int) -> None:
    (asked,) = wanted_groups(OffsetFetchRequest(GROUP, None), version)

    assert asked.topics is None


@pytest.mark.parametrize("version", [v for v in ALL_VERSIONS if v >= 8])
def test_since_v8_many_groups_are_asked_and_answered_in_their_order(version: int) -> None:
    names = [GroupId("b"), GroupId("a"), GroupId("c")]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(name, topics=None) for name in names]
    )

    asked = wanted_groups(request, version)
    answers = [
        fetch_offsets_of_group(a_group(), asked[0], version, TOPICS),
        refuse_offset_fetch(asked[1], version, ErrorCode.NOT_COORDINATOR),
        fetch_offsets_of_group(None, asked[2], version, TOPICS),
    ]
    answer = over_the_wire(offset_fetch_response(answers, version), version)

    assert not answer.topics
    assert [(g.group_id, g.error_code, len(g.topics)) for g in answer.groups] == [
        ("b", NONE, 2),
        ("a", ErrorCode.NOT_COORDINATOR, 0),
        ("c", NONE, 0),
    ]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_error_of_the_group_stands_where_the_version_has_a_place_for_it(version: int) -> None:
    error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    refused = refuse_offset_fetch(wanted(("orders", [0, 2])), version, error_code)
    answer = over_the_wire(offset_fetch_response([refused], version), version)

    if version < 8:
        assert answer.error_code is (error_code if version > 1 else NONE)
        (topic,) = answer.topics
        # In every place that there is: some clients look into one of them only.
        assert [
            (p.partition_index, p.committed_offset, p.error_code) for p in topic.partitions
        ] == [
            (0, -1, error_code),
            (2, -1, error_code),
        ]
    else:
        (group,) = answer.groups
        assert (group.group_id, group.error_code, group.topics) == (GROUP, error_code, ())


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_answer_has_what_was_committed_when_it_was_decided(version: int) -> None:
    """An answer may wait for the disk, and later commits must not show in it."""
    group = a_group()
    group.offsets[ORDERS][2] = committed(30)

    found = fetch_offsets_of_group(group, wanted(("orders", [2, 7])), 9, TOPICS)
    group.offsets[ORDERS] = {2: committed(31), 7: committed(70)}

    answer = over_the_wire(offset_fetch_response((found,), version), version)
    (topic,) = answer.groups[0].topics if version >= 8 else answer.topics
    rows = [(p.partition_index, p.committed_offset, p.metadata) for p in topic.partitions]
    assert rows == [(2, 30, "note"), (7, -1, "")]


@pytest.mark.parametrize("version", [v for v in ALL_VERSIONS if v >= 8])
def test_a_group_id_too_long_to_repeat_leaves_the_answers_of_other_groups(version: int) -> None:
    """Bytes that are no UTF-8 triple when they are read: the answer is written once more."""
    long_id = GroupId("\ufffd" * 20_000)
    asked = [wanted(("orders", [0, 1])), OffsetFetchRequestGroup(long_id)]
    found = [
        fetch_offsets_of_group(a_group(), asked[0], 9, TOPICS),
        fetch_offsets_of_group(None, asked[1], 9, TOPICS),
    ]

    answer = over_the_wire(offset_fetch_response(found, version), version)

    assert rows(answer.groups[0])[-2:] == [
        (answer.groups[0].topics[0].name, 0, 10, NONE),
        (answer.groups[0].topics[0].name, 1, -1, NONE),
    ]
    assert long_id.startswith(answer.groups[1].group_id)


def test_committed_partitions_equal_a_list_of_them() -> None:
    found = fetch_offsets_of_group(a_group(), wanted(("orders", [0, 1])), 9, TOPICS)

    (topic,) = found.topics
    expected = [
        OffsetFetchResponsePartitions(0, 10, 3, "note"),
        OffsetFetchResponsePartitions(1, -1, -1, ""),
    ]
    assert topic.partitions == expected
    assert [*topic.partitions] == expected
    assert topic.partitions[1] == expected[1]
    assert topic.partitions != expected[:1]
    assert len(topic.partitions) == 2
