"""Offset expiration (KIP-211): delete offsets that are unused for too long, or whose topic is gone.

The sweep of expiry.py calls `decide_expire_offsets` for every group, and the deletion of a topic
calls `decide_topic_deleted`. Route: ticker -> Shard.tick -> here -> records -> log. There is no
request to answer. From when on an offset's retention counts is a rule of the group's type
(`GroupView.offset_expiration`).
Kafka's counterpart: `OffsetMetadataManager.cleanupExpiredOffsets` and `onTopicsDeleted`,
`Group.offsetExpirationCondition`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from coordinator.delete_groups import group_and_offset_tombstones
from coordinator.events import GroupDeleted
from coordinator.group import CommittedOffset
from coordinator.group_view import GroupView
from coordinator.offsets.deleted_topics import DeletedTopic
from coordinator.offsets.events import (
    DeletionCause,
    OffsetsDeleted,
    OffsetsOfTopics,
    PendingOffsetsDeleted,
)
from coordinator.offsets.pending_offsets import NOTHING_PENDING, PendingOfTopics
from coordinator.outcome import Outcome
from coordinator.records import add_offset_tombstones
from coordinator.settings import GroupSettings
from protocol.names import ZERO_TOPIC_ID, GroupState, TopicId, TopicName
from seams.now import Now
from storage.api import RecordPair

_MINUTE_MS: Final = 60_000

Expired = tuple[TopicName, int, CommittedOffset]


def decide_expire_offsets(
    group: GroupView,
    now: Now,
    settings: GroupSettings,
    limit: int,
    pending: PendingOfTopics = NOTHING_PENDING,
) -> Outcome:
    """Forget at most `limit` expired offsets, and the group with its last one.

    Not those with a pending offset beside them, and no group that has pending offsets.

    As many records as `limit`: there may be more, ask again.
    """
    found = _expired(group, now.wall_ms, settings)
    if pending:
        found = (each for each in found if each[1] not in pending.get(each[0], ()))
    expired = list(islice(found, limit))
    left = sum(map(len, group.offsets.values())) - len(expired)
    offsets = _by_topic(expired)
    if not left and not pending and group.state is GroupState.EMPTY:
        gone = GroupDeleted(group.group_id, now.wall_ms, DeletionCause.EXPIRED, offsets)
        return Outcome(events=[gone], records=group_and_offset_tombstones(group))
    return _forget(group, now, DeletionCause.EXPIRED, offsets)


def decide_topic_deleted(
    group: GroupView,
    topic: DeletedTopic,
    now: Now,
    pending: PendingOfTopics = NOTHING_PENDING,
) -> Outcome:
    """Forget what was committed for this topic, unless it may be for a namesake of it."""
    ids = ids_of(topic)
    committed = group.offsets.get(topic.name, {})
    gone = {index: commit for index, commit in committed.items() if commit.topic_id in ids}
    offsets = [(topic.name, gone)] if gone else []
    client = (topic.client_id, topic.client_host, topic.principal)
    outcome = _forget(group, now, DeletionCause.TOPIC_DELETED, offsets, client)
    alone = [
        index
        for index, producers in pending.get(topic.name, {}).items()
        if index not in gone and any(each.commit.topic_id in ids for each in producers.values())
    ]
    if not alone:
        return outcome
    records = list(outcome.records)
    add_offset_tombstones(records, group.group_id, topic.name, alone)
    cause, partitions = DeletionCause.TOPIC_DELETED, [(topic.name, alone)]
    dropped = PendingOffsetsDeleted(group.group_id, now.wall_ms, cause, partitions)
    return Outcome(events=[*outcome.events, dropped], records=records)


def ids_of(topic: DeletedTopic) -> frozenset[TopicId]:
    """Of the commits that go with the topic."""
    return frozenset((topic.topic_id, ZERO_TOPIC_ID) if topic.before_now else (topic.topic_id,))


def _expired(group: GroupView, now_wall_ms: int, settings: GroupSettings) -> Iterator[Expired]:
    expiration = group.offset_expiration()
    if expiration is None:
        return
    retention_ms = settings.offsets_retention_minutes * _MINUTE_MS
    since_ms = expiration.since_ms
    for topic, partitions in group.offsets.items():
        if group.is_subscribed_to(topic):
            continue
        for index, commit in partitions.items():
            if commit.expire_at_ms != -1:
                over = now_wall_ms >= commit.expire_at_ms
            else:
                base_ms = commit.committed_at_ms if since_ms == -1 else since_ms
                over = now_wall_ms - base_ms >= retention_ms
            if over:
                yield topic, index, commit


def _by_topic(expired: list[Expired]) -> OffsetsOfTopics:
    topics: dict[TopicName, dict[int, CommittedOffset]] = {}
    for topic, index, commit in expired:
        topics.setdefault(topic, {})[index] = commit
    return list(topics.items())


def _forget(
    group: GroupView,
    now: Now,
    cause: DeletionCause,
    offsets: OffsetsOfTopics,
    client: tuple[str, str, str | None] = ("", "", None),
) -> Outcome:
    if not offsets:
        return Outcome()
    records: list[RecordPair] = []
    for topic, gone in offsets:
        add_offset_tombstones(records, group.group_id, topic, gone)
    return Outcome(
        events=[OffsetsDeleted(group.group_id, now.wall_ms, cause, offsets, *client)],
        records=records,
    )
