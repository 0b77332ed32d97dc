"""Update regex: what a heartbeat changes of the regular expressions that a group subscribes to.

A new expression is checked here and resolved later, in a turn of its own, which bumps the group
epoch if it matches a topic. All expressions of a group are resolved together, so that they cause
one rebalance. Kafka's counterpart: `GroupMetadataManager.maybeUpdateRegularExpressions`.
"""

from typing import Final, NamedTuple

from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.refusal import Refusal
from coordinator.consumer.decide.subscriptions import Subscriptions
from coordinator.consumer.group_view import ConsumerGroupView
from protocol.names import ErrorCode
from seams.now import Now
from seams.regular_expressions import check_regex

REFRESH_MIN_INTERVAL_MS: Final = 10_000
"""A group's expressions are not resolved more often. Kafka's REGEX_BATCH_REFRESH_MIN_INTERVAL_MS"""


class RegexUpdate(NamedTuple):
    """`is_effective`: the topics of the member change with this heartbeat, not only later.

    `removed` is an expression that no other member subscribes to.
    """

    is_changed: bool = False
    is_effective: bool = False
    is_new: bool = False
    removed: str | None = None


NO_UPDATE: Final = RegexUpdate()


def update_regex(group: ConsumerGroupView, before: str, after: str) -> RegexUpdate | Refusal:
    """From the member's expression `before` to `after`; "" is none."""
    if before == after:
        return NO_UPDATE
    counts = group.subscribed_regexes
    removed = before if before and counts.get(before) == 1 else None
    if not after:
        return RegexUpdate(is_changed=True, is_effective=True, removed=removed)
    if after in counts:
        is_resolved = after in group.regexes
        return RegexUpdate(is_changed=True, is_effective=is_resolved, removed=removed)
    text = check_regex(after)
    if text is not None:
        return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    return RegexUpdate(is_changed=True, is_new=True, removed=removed)


def is_resolution_due(
    group: ConsumerGroupView,
    subscriptions: Subscriptions,
    update: RegexUpdate,
    now: Now,
    context: ConsumerContext,
) -> bool:
    """Whether all expressions are to be resolved: `subscriptions` are those after the heartbeat."""
    if not subscriptions.regexes:
        return False
    requested_at_ms = group.regexes_requested_at_ms
    if requested_at_ms is None or not group.regexes:
        return True  # Never, or not since the start: topics may have come in between.
    age_ms = now.mono_ms - requested_at_ms
    if age_ms <= REFRESH_MIN_INTERVAL_MS:
        return False
    return (
        update.is_new
        or len(subscriptions.regexes) != len(group.regexes)
        or _resolved_version(group) < context.topics.created_version
        or age_ms > context.settings.group_consumer_regex_refresh_interval_ms
    )


def _resolved_version(group: ConsumerGroupView) -> int:
    """All were resolved with the same topics."""
    return next(iter(group.regexes.values())).version
