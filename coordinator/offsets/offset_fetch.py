"""OffsetFetch: which positions did this group commit?

Answers one group at a time; the facade asks the shards of all groups in a request and puts their
answers together. A group that does not exist, or a partition without a commit, has offset -1 and no
error; only a consumer group refuses a member in another epoch. Reads a GroupView, changes nothing;
the answer waits until what it shows is stored.

A request has one of two shapes (up to v7 one group, since v8 a list). Here both are seen as a list
of `OffsetFetchRequestGroup`; `offset_fetch_response` gives the answers the shape of their version.
Kafka's counterpart: `KafkaApis.handleOffsetFetchRequest`, `OffsetMetadataManager.fetchOffsets`,
`OffsetFetchResponse.groupError`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, cast

from coordinator.group import CommittedOffset
from coordinator.group_view import GroupView
from protocol.compiled_codec import function_in_c
from protocol.messages.offset_fetch import (
    CommittedPartitions,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, GroupState, TopicId, TopicName
from protocol.primitives import echoed
from seams.topics_view import TopicsView

GROUP_ERROR_SINCE: Final = 2
GROUPS_SINCE: Final = 8
_TOPIC_IDS_SINCE: Final = 10

GROUP_BYTES: Final = 30  # or a topic
PARTITION_BYTES: Final = 20
UNWEIGHED_PARTITIONS: Final = 1_000
"""Of a single group, as consumers ask for it: with the longest metadata they are 32 MB."""

_NOTHING_COMMITTED: Final[Mapping[int, CommittedOffset]] = {}
_NONE_HIDDEN: Final[AbstractSet[TopicName]] = frozenset()
_NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1

_COMMITS_IN_C: Final = function_in_c("commits_at")

Answers = Sequence[OffsetFetchResponsePartitions]

Unstable = Mapping[TopicName, Collection[int]]
"""Partitions with a transactional commit that is still open."""

NOTHING_UNSTABLE: Final[Unstable] = {}

Undescribable = Callable[[Iterable[TopicName]], AbstractSet[TopicName]]
"""Those of some topics that the client may not see."""


def wanted_groups(
    request: OffsetFetchRequest, api_version: int
) -> Sequence[OffsetFetchRequestGroup]:
    """What is asked, in the shape of v8 and later. Topics None: all that the group committed."""
    if api_version >= GROUPS_SINCE:
        return request.groups
    topics = request.topics
    wanted = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopics(topic.name, ZERO_TOPIC_ID, topic.partition_indexes)
            for topic in topics
        ]
    )
    return [OffsetFetchRequestGroup(request.group_id, topics=wanted)]


def offset_fetch_response(
    groups: Sequence[OffsetFetchResponseGroup], api_version: int
) -> OffsetFetchResponse:
    """The answers for all groups of one request, in the shape that its version has."""
    if api_version >= GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    partition.partition_index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.metadata,
                    partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def is_large(wanted: OffsetFetchRequestGroup, found: OffsetFetchResponseGroup) -> bool:
    """Is it so much that its size matters to an answer?"""
    partitions = 0
    if wanted.topics is None:
        for answered in found.topics:
            partitions += len(answered.partitions)
    else:  # in place of the answers, which are made when they are looked at
        for topic in wanted.topics:
            partitions += len(topic.partition_indexes)
    return partitions > UNWEIGHED_PARTITIONS


def fetched_bytes(found: OffsetFetchResponseGroup) -> int:
    """About what it takes in an answer."""
    return GROUP_BYTES + sum(
        GROUP_BYTES
        + sum(PARTITION_BYTES + len(partition.metadata or "") for partition in topic.partitions)
        for topic in found.topics
    )


def refuse_offset_fetch(
    wanted: OffsetFetchRequestGroup, api_version: int, error_code: ErrorCode
) -> OffsetFetchResponseGroup:
    """An error for a whole group. Version 1 has no place for it but each of the partitions.

    Kafka differs: from version 2 on it leaves the partitions out. aiokafka asks in version 3 and
    looks at nothing but the partitions; it would take the silence of a coordinator that is loading
    for "nothing was committed", begin at the start of the log and commit that. A client without
    rights is answered as by Kafka: it cannot commit either.
    """
    if api_version >= GROUPS_SINCE:
        return OffsetFetchResponseGroup(echoed(wanted.group_id), error_code=error_code)
    if error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED and api_version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(wanted.group_id, error_code=error_code)
    topics = [_without_offsets(topic, topic.name, error_code) for topic in wanted.topics or ()]
    place = error_code if api_version >= GROUP_ERROR_SINCE else ErrorCode.NONE
    return OffsetFetchResponseGroup(wanted.group_id, topics, place)


def fetch_offsets_of_group(
    group: GroupView | None,
    wanted: OffsetFetchRequestGroup,
    api_version: int,
    topics: TopicsView,
    unstable: Unstable = NOTHING_UNSTABLE,
    undescribable: Undescribable | None = None,
) -> OffsetFetchResponseGroup:
    """The answer for one group: the partitions that it asks for, or all that were committed.

    `unstable` is what a request with require_stable must not be told; else it is empty.
    `undescribable` None: the client may see all topics.
    """
    committed: Mapping[TopicName, Mapping[int, CommittedOffset]] = {}
    if group is not None and group.state is not GroupState.DEAD:
        if wanted.member_id is not None or wanted.member_epoch >= 0:
            error_code = group.validate_offset_fetch(wanted.member_id, wanted.member_epoch)
            if error_code is not ErrorCode.NONE:
                return refuse_offset_fetch(wanted, api_version, error_code)
        committed = group.offsets
    if wanted.topics is None:
        hidden = undescribable(committed) if undescribable is not None else _NONE_HIDDEN
        shown = {name: committed[name] for name in committed if name not in hidden}
        found = _all_topics(shown if hidden else committed, api_version, topics, unstable)
    elif api_version < _TOPIC_IDS_SINCE and undescribable is None and not unstable:
        found = [
            OffsetFetchResponseTopics(
                echoed(topic.name),
                topic.topic_id,
                _committed(committed.get(topic.name, _NOTHING_COMMITTED), topic.partition_indexes),
            )
            for topic in wanted.topics
        ]  # as consumers ask: nothing is hidden or refused
    else:
        found = _listed_topics(
            committed, wanted.topics, api_version, topics, unstable, undescribable
        )
    return OffsetFetchResponseGroup(wanted.group_id, found)


def _all_topics(
    committed: Mapping[TopicName, Mapping[int, CommittedOffset]],
    api_version: int,
    topics: TopicsView,
    unstable: Unstable,
) -> list[OffsetFetchResponseTopics]:
    found: list[OffsetFetchResponseTopics] = []
    for name, partitions in committed.items():
        topic_id = topics.topic_id(name) if api_version >= _TOPIC_IDS_SINCE else ZERO_TOPIC_ID
        if topic_id is None:
            continue  # It cannot be named: it was deleted, and its offsets soon will be.
        open_partitions = unstable.get(name, ())
        answers = [
            _answer(index, commit, is_open=index in open_partitions)
            for index, commit in partitions.items()
        ]
        found.append(OffsetFetchResponseTopics(name, topic_id, answers))
    return found


def _listed_topics(
    committed: Mapping[TopicName, Mapping[int, CommittedOffset]],
    wanted: Sequence[OffsetFetchRequestTopics],
    api_version: int,
    topics: TopicsView,
    unstable: Unstable,
    undescribable: Undescribable | None,
) -> list[OffsetFetchResponseTopics]:
    """Topic by topic as asked; those whose id nobody knows, or that are hidden, at the end."""
    found: list[OffsetFetchResponseTopics] = []
    refused: list[OffsetFetchResponseTopics] = []
    by_id = api_version >= _TOPIC_IDS_SINCE
    names = [topics.topic_name(topic.topic_id) if by_id else topic.name for topic in wanted]
    hidden = _NONE_HIDDEN
    if undescribable is not None:
        hidden = undescribable([name for name in names if name is not None])
    for topic, name in zip(wanted, names):  # noqa: B905 - without `strict`, mypyc makes no object
        if name is None:
            refused.append(_without_offsets(topic, topic.name, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        if name in hidden:
            refused.append(_without_offsets(topic, name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        answers = _of_listed(
            committed.get(name, _NOTHING_COMMITTED),
            topic.partition_indexes,
            topic.topic_id if by_id else ZERO_TOPIC_ID,
            unstable.get(name, ()),
        )
        found.append(OffsetFetchResponseTopics(echoed(name), topic.topic_id, answers))
    return found + refused if refused else found


def _of_listed(
    committed: Mapping[int, CommittedOffset],
    wanted: Sequence[int],
    topic_id: TopicId,
    open_partitions: Collection[int],
) -> Answers:
    """A zero `topic_id` is one that the request did not name: nothing is compared with it."""
    if topic_id is ZERO_TOPIC_ID and not open_partitions:
        return _committed(committed, wanted)
    return [
        _answer(
            index,
            _of_this_topic(committed.get(index), topic_id),
            is_open=index in open_partitions,
        )
        for index in wanted
    ]


def _committed(committed: Mapping[int, CommittedOffset], wanted: Sequence[int]) -> Answers:
    if _COMMITS_IN_C is not None and type(wanted) is tuple:
        return cast("Answers", CommittedPartitions(wanted, _COMMITS_IN_C(committed, wanted)))
    return cast("Answers", CommittedPartitions(wanted, [*map(committed.get, wanted)]))


def _of_this_topic(commit: CommittedOffset | None, topic_id: TopicId) -> CommittedOffset | None:
    """None if it was committed for an earlier topic of the same name; a zero id says nothing."""
    if commit is None or topic_id == ZERO_TOPIC_ID or commit.topic_id == ZERO_TOPIC_ID:
        return commit
    return commit if commit.topic_id == topic_id else None


def _answer(
    index: int, commit: CommittedOffset | None, *, is_open: bool
) -> OffsetFetchResponsePartitions:
    if is_open:
        return OffsetFetchResponsePartitions(
            index, _NO_OFFSET, NO_LEADER_EPOCH, "", ErrorCode.UNSTABLE_OFFSET_COMMIT
        )
    if commit is None:
        return OffsetFetchResponsePartitions(index, _NO_OFFSET, NO_LEADER_EPOCH, "")
    return OffsetFetchResponsePartitions(
        index, commit.committed_offset, commit.leader_epoch, commit.metadata
    )


def _without_offsets(
    topic: OffsetFetchRequestTopics, name: TopicName, error_code: ErrorCode
) -> OffsetFetchResponseTopics:
    answers = [
        OffsetFetchResponsePartitions(index, _NO_OFFSET, NO_LEADER_EPOCH, "", error_code)
        for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(echoed(name), topic.topic_id, answers)
