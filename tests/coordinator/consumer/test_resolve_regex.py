"""Resolution of regular expressions: only topics that the member may see are matched."""

from msgspec.structs import replace

from coordinator.consumer import events
from coordinator.consumer.commands import ResolveRegularExpressions
from coordinator.consumer.context import consumer_context
from coordinator.consumer.decide.resolve_regex import decide_resolve_regular_expressions
from protocol.names import GroupId, MemberId, TopicName
from seams.reply_token import ReplyToken
from tests.consumer_client import ConsumerClient
from tests.rights import Rights
from tests.world import World

GROUP = GroupId("g")
ORDERS, SECRET = TopicName("orders"), TopicName("secret")


def test_a_topic_that_the_client_may_not_see_is_not_matched() -> None:
    world = World()
    world.given_topics(orders=2, secret=1, users=1)
    for member_id, pattern in (("a", "orders|secret"), ("b", "s.*")):
        ConsumerClient(world, member_id, regex=pattern).join()
    authorizer = Rights(allows_all=True)
    authorizer.lacks(("DESCRIBE", f"topic {SECRET}"))
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
    asked = {("DESCRIBE", f"topic {name}") for name in (ORDERS, SECRET)}
    assert sorted(authorizer.asked) == sorted(asked)  # those that match, once
    assert authorizer.logged == []  # what an expression leaves out is no refusal
