"""Cluster client: reads offsets from a running cluster, and commits them to one.

For `--bootstrap`: ListGroups of every broker, OffsetFetch of each group from its coordinator, and
OffsetCommit without a member (generation -1), which a coordinator accepts for a group without
members. A request that fails while the broker loads or moves a partition is retried a few times.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from client.cluster import ATTEMPTS, RETRIABLE, Cluster
from client.errors import ClusterFault
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from protocol.names import ErrorCode, GroupId, TopicName
from transfer.contents import CLASSIC, SIMPLE, Contents, GroupContents

PARTITIONS_PER_COMMIT: Final = 2_000


class Refused(NamedTuple):
    """What a coordinator did not take or give."""

    group: str
    topic: str  # "" for the group as a whole
    partition: int
    error: str
    refuses: int = 1  # partitions


class ClusterClient(Cluster):
    """A cluster whose offsets are read or written."""

    # --- questions -----------------------------------------------------------------------------

    def group_ids(self) -> list[tuple[GroupId, str]]:
        """(group, kind) of every group of every broker."""
        found: dict[GroupId, str] = {}
        for connection in self.brokers():
            answer = connection.ask(ListGroupsRequest(), ListGroupsResponse)
            for _ in range(ATTEMPTS):
                if answer.error_code not in RETRIABLE:
                    break
                self.wait()
                answer = connection.ask(ListGroupsRequest(), ListGroupsResponse)
            if answer.error_code is not ErrorCode.NONE:
                raise ClusterFault(f"{connection.name}: {answer.error_code.name}")
            found |= {group.group_id: _kind_of(group) for group in answer.groups}
        return sorted(found.items())

    def fetch(self, group_id: GroupId, into: Contents) -> list[Refused]:
        """All that a group committed."""
        error, group, refused = self._fetch_once(group_id)
        for _ in range(ATTEMPTS):
            if error not in RETRIABLE:
                break
            self.wait()
            error, group, refused = self._fetch_once(group_id)
        if error is not ErrorCode.NONE:
            return [Refused(group_id, "", -1, error.name)]
        if group.offsets:
            into.groups[group_id] = group
        return refused

    def _fetch_once(self, group_id: GroupId) -> tuple[ErrorCode, GroupContents, list[Refused]]:
        group, refused = GroupContents(group_id), list[Refused]()
        error, connection = self.find_coordinator(group_id)
        if connection is None:
            return error, group, refused
        asked = OffsetFetchRequest()
        if connection.version_of(asked) >= 8:
            asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id, topics=None)])
            (answer,) = connection.ask(asked, OffsetFetchResponse).groups
            error = answer.error_code
            for topic in answer.topics:
                _add(group, refused, topic.name, topic.partitions)
        else:
            single = connection.ask(
                OffsetFetchRequest(group_id=group_id, topics=None), OffsetFetchResponse
            )
            error = single.error_code
            for old in single.topics:
                _add(group, refused, old.name, old.partitions)
        return error, group, refused

    # --- commits -------------------------------------------------------------------------------

    def commit(self, group: GroupContents) -> list[Refused]:
        """Commit what this group has, outside of any generation; what was not taken."""
        refused: list[Refused] = []
        places = sorted(group.offsets)
        for start in range(0, len(places), PARTITIONS_PER_COMMIT):
            part = places[start : start + PARTITIONS_PER_COMMIT]
            for attempt in range(ATTEMPTS):
                answers = self._commit_once(group, part)
                again = [answer for answer in answers if answer.error in _RETRIABLE_NAMES]
                refused += [answer for answer in answers if answer not in again]
                if not again or attempt == ATTEMPTS - 1:
                    refused += again
                    break
                part = [(a.topic, a.partition) for a in again if a.topic] or part
                self.wait()
        return refused

    def _commit_once(
        self, group: GroupContents, places: Sequence[tuple[str, int]]
    ) -> list[Refused]:
        error, connection = self.find_coordinator(group.group_id)
        if connection is None:
            return [Refused(group.group_id, "", -1, error.name, len(places))]
        by_topic: dict[TopicName, list[OffsetCommitRequestPartition]] = {}
        for topic, partition in places:
            commit, _ = group.offsets[topic, partition]
            by_topic.setdefault(TopicName(topic), []).append(
                OffsetCommitRequestPartition(
                    partition, commit.committed_offset, commit.leader_epoch, commit.metadata
                )
            )
        request = OffsetCommitRequest(
            group_id=group.group_id,
            topics=[OffsetCommitRequestTopic(name, partitions=by_topic[name]) for name in by_topic],
        )
        answer = connection.ask(request, OffsetCommitResponse)
        return [
            Refused(group.group_id, topic.name, verdict.partition_index, verdict.error_code.name)
            for topic in answer.topics
            for verdict in topic.partitions
            if verdict.error_code is not ErrorCode.NONE
        ]


def _kind_of(group: ListedGroup) -> str:
    """A classic group that no member ever joined is a simple one; old brokers tell no type."""
    kind = group.group_type.lower() or CLASSIC
    return SIMPLE if kind == CLASSIC and not group.protocol_type else kind


_RETRIABLE_NAMES: Final = frozenset(error.name for error in RETRIABLE)


def _add(
    group: GroupContents,
    refused: list[Refused],
    topic: str,
    partitions: Sequence[OffsetFetchResponsePartition | OffsetFetchResponsePartitions],
) -> None:
    for answer in partitions:
        if answer.error_code is not ErrorCode.NONE:
            error = answer.error_code.name
            refused.append(Refused(group.group_id, topic, answer.partition_index, error))
        elif answer.committed_offset >= 0:
            group.put_offset(
                (topic, answer.partition_index),
                answer.committed_offset,
                answer.committed_leader_epoch,
                answer.metadata or "",
            )
