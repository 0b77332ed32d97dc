"""Resolution of regular expressions: only topics that the member may see are matched."""

from collections.abc import Iterable

from msgspec.structs import replace

from coordinator.consumer import events
from coordinator.consumer.commands import ResolveRegularExpressions
from coordinator.consumer.context import consumer_context
from coordinator.consumer.decide.resolve_regex import decide_resolve_regular_expressions
from protocol.names import GroupId, MemberId, TopicName
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from tests.consumer_client import ConsumerClient
from tests.world import World

GROUP = GroupId("g")
ORDERS, SECRET = TopicName("orders"), TopicName("secret")


class Hides(Authorizer):
    """An authorizer: no client may see `secret`."""

    def __init__(self) -> None:
        self.asked: list[set[TopicName]] = []

    def may_read_group(self, _token: ReplyToken, _group_id: GroupId, /) -> bool:
        return True

    def describable_topics(
        self, _token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        self.asked.append(set(topics))
        return frozenset(topics) - {SECRET}


def test_a_topic_that_the_client_may_not_see_is_not_matched() -> None:
    world = World()
    world.given_topics(orders=2, secret=1, users=1)
    for member_id, pattern in (("a", "orders|secret"), ("b", "s.*")):
        ConsumerClient(world, member_id, regex=pattern).join()
    authorizer = Hides()
    allowed = consumer_context(
        world.settings, world.topics, world.assignors, lambda: MemberId("new")
    )
    context = replace(allowed, authorizer=authorizer)
    command = ResolveRegularExpressions(GROUP, ReplyToken(1, "a-client", "/10.0.0.1"))

    outcome = decide_resolve_regular_expressions(
        world.consumer_group(), command, world.now, context
    )

    resolved = [e for e in outcome.events if isinstance(e, events.RegularExpressionResolved)]
    assert {event.pattern: event.topics for event in resolved} == {
        "orders|secret": {ORDERS},
        "s.*": frozenset(),
    }
    assert authorizer.asked == [{ORDERS, SECRET}]  # those that match, once
