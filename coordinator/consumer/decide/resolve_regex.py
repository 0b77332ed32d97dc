"""Resolve regex: match the regular expressions of a group with the topics that exist now.

Follows the heartbeat that found it due, whose answer does not depend on it. If an expression
matches other topics than before, the group epoch rises; the next heartbeat goes on from there.
Kafka's counterpart: `TopicRegexResolver`, `GroupMetadataManager.handleRegularExpressionsResult`.
"""

from coordinator.consumer import events
from coordinator.consumer.commands import ResolveRegularExpressions
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.subscriptions import subscriptions_of, topics_subscribed_to
from coordinator.consumer.events import EpochCause
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.records import turn_records
from coordinator.consumer.resolved import ResolvedRegularExpression
from coordinator.outcome import Outcome
from protocol.names import TopicName
from seams.now import Now

_UNRESOLVED = ResolvedRegularExpression()


def decide_resolve_regular_expressions(
    group: ConsumerGroupView | None,
    command: ResolveRegularExpressions,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    if group is None or not group.subscribed_regexes:
        return Outcome()
    version = context.topics.view.topics_version
    matched = context.topics.matching(group.subscribed_regexes)
    visible = context.authorizer.describable_topics(
        command.token, frozenset[TopicName]().union(*matched.values()), logs_refusals=False
    )
    found = {pattern: topics & visible for pattern, topics in matched.items()}
    happened: list[events.ConsumerEvent] = [
        events.RegularExpressionResolved(group.group_id, now.wall_ms, pattern, topics, version)
        for pattern, topics in found.items()
    ]
    changed = [
        pattern
        for pattern, topics in found.items()
        if topics != group.regexes.get(pattern, _UNRESOLVED).topics
    ]
    resolved = {pattern: ResolvedRegularExpression(topics) for pattern, topics in found.items()}
    topics = topics_subscribed_to(subscriptions_of(group), resolved)
    metadata_hash = context.topics.metadata_hash(topics)
    causes: tuple[EpochCause, ...] = ()
    if changed:
        causes = (EpochCause.REGULAR_EXPRESSION_CHANGED,)
    elif metadata_hash != group.metadata_hash:
        causes = (EpochCause.TOPICS_CHANGED,)
    if causes:
        happened.append(
            events.GroupEpochBumped(
                group.group_id, now.wall_ms, group.epoch + 1, metadata_hash, causes
            )
        )
    return Outcome(events=happened, records=turn_records(happened))
