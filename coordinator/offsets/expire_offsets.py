"""Has this group left its offsets unused for too long, or has their topic gone? (KIP-211)

Two clean-ups of one group each: the sweep of expiry.py asks `decide_expire_offsets` about every
group now and then, and the deletion of a topic asks `decide_topic_deleted`. Route: ticker ->
Shard.tick -> here -> records -> log. Nobody waits for an answer.

When an offset's time begins to count depends on who uses the group: for a simple consumer with each
commit; for a group of members with the moment when the last one left, for all offsets together; and
while consumers are there, with the commit, but only for topics that they no longer subscribe to.
Kafka's counterpart: `OffsetMetadataManager.cleanupExpiredOffsets` and `onTopicsDeleted`,
`ClassicGroup.offsetExpirationCondition`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from coordinator.classic.subscriptions import CONSUMER, is_subscribed
from coordinator.delete_groups import group_tombstones
from coordinator.group import CommittedOffset, GroupView
from coordinator.offsets.deleted_topics import DeletedTopic
from coordinator.offsets.events import DeletionCause, GroupDeleted, OffsetsDeleted, OffsetsOfTopics
from coordinator.outcome import Outcome
from coordinator.records import add_offset_tombstones
from coordinator.settings import GroupSettings
from protocol.names import ZERO_TOPIC_ID, GroupState, TopicName
from seams.now import Now
from storage.api import RecordPair

MINUTE_MS: Final = 60_000

Expired = tuple[TopicName, int, CommittedOffset]


def decide_expire_offsets(
    group: GroupView, now: Now, settings: GroupSettings, limit: int
) -> Outcome:
    """Forget at most `limit` expired offsets, and the group with its last one.

    As many records as `limit`: there may be more, ask again.
    """
    expired = list(islice(_expired(group, now.wall_ms, settings), limit))
    left = sum(map(len, group.offsets.values())) - len(expired)
    offsets = _by_topic(expired)
    if not left and group.state is GroupState.EMPTY:
        gone = GroupDeleted(group.group_id, now.wall_ms, DeletionCause.EXPIRED, offsets)
        return Outcome(events=[gone], records=group_tombstones(group))
    return _forget(group, now, DeletionCause.EXPIRED, offsets)


def decide_topic_deleted(group: GroupView, topic: DeletedTopic, now: Now) -> Outcome:
    """Forget what was committed for this topic, unless it may be for a namesake of it."""
    ids = {topic.topic_id, ZERO_TOPIC_ID} if topic.before_now else {topic.topic_id}
    committed = group.offsets.get(topic.name, {})
    gone = {index: commit for index, commit in committed.items() if commit.topic_id in ids}
    offsets = [(topic.name, gone)] if gone else []
    asker = (topic.client_id, topic.client_host)
    return _forget(group, now, DeletionCause.TOPIC_DELETED, offsets, asker)


def _expired(group: GroupView, now_wall_ms: int, settings: GroupSettings) -> Iterator[Expired]:
    if not _expires(group):
        return
    retention_ms = settings.offsets_retention_minutes * MINUTE_MS
    emptied_at_ms = -1
    if group.protocol_type is not None and group.state is GroupState.EMPTY:
        emptied_at_ms = group.state_since_ms  # -1 in a record from before Kafka 2.1
    for topic, partitions in group.offsets.items():
        if is_subscribed(group, topic):
            continue
        for index, commit in partitions.items():
            if commit.expire_at_ms != -1:
                over = now_wall_ms >= commit.expire_at_ms
            else:
                base_ms = commit.committed_at_ms if emptied_at_ms == -1 else emptied_at_ms
                over = now_wall_ms - base_ms >= retention_ms
            if over:
                yield topic, index, commit


def _expires(group: GroupView) -> bool:
    """Is this a group whose offsets may expire at all, as it is now?"""
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return group.state is not GroupState.DEAD
    return (
        group.state is GroupState.STABLE
        and group.protocol_type == CONSUMER
        and group.subscribed_topics is not None
    )


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
    asker: tuple[str, str] = ("", ""),
) -> Outcome:
    if not offsets:
        return Outcome()
    records: list[RecordPair] = []
    for topic, gone in offsets:
        add_offset_tombstones(records, group.group_id, topic, gone)
    return Outcome(
        events=[OffsetsDeleted(group.group_id, now.wall_ms, cause, offsets, *asker)],
        records=records,
    )
