"""Bump epoch: does the group epoch rise with a heartbeat, and why?

It rises when a subscription changes, and when the subscribed topics are not as they were, which
their hash tells. A higher group epoch calls for a new target assignment. Kafka's counterpart:
`GroupMetadataManager.updateSubscriptionMetadata`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.consumer import events
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.subscriptions import Subscriptions, topics_subscribed_to
from coordinator.consumer.events import EpochCause
from coordinator.consumer.group_view import ConsumerGroupView
from protocol.names import MemberId
from seams.now import Now


class GroupEpoch(NamedTuple):
    """The group epoch after a step, and what the step changed."""

    epoch: int
    happened: tuple[events.ConsumerEvent, ...] = ()


def bump_epoch(
    group: ConsumerGroupView,
    subscriptions: Subscriptions,
    causes: Sequence[EpochCause],
    trigger_ids: tuple[MemberId, ...],
    now: Now,
    context: ConsumerContext,
) -> GroupEpoch:
    """With a cause it rises in any case; without one if topics changed since the last look."""
    if not causes and not group.is_refresh_due:
        return GroupEpoch(group.epoch)
    topics = topics_subscribed_to(subscriptions, group.regexes)
    metadata_hash = context.topics.metadata_hash(topics)
    changed = group.changed_topics & topics
    if metadata_hash != group.metadata_hash and (changed or not causes):
        causes = (*causes, EpochCause.TOPICS_CHANGED)
    if not causes:
        return GroupEpoch(group.epoch, (events.MetadataRefreshed(group.group_id),))
    epoch = group.epoch + 1
    bumped = events.GroupEpochBumped(
        group.group_id,
        now.wall_ms,
        epoch,
        metadata_hash,
        tuple(causes),
        trigger_ids,
        tuple(sorted(changed)),
    )
    return GroupEpoch(epoch, (bumped,))
