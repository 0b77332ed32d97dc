"""Regular expressions of consumers (KIP-848, RE2): which topics they match, and when."""

from tests.compare.script import Script, scenario


@scenario("consumers")
def a_consumer_subscribes_by_a_regular_expression(script: Script) -> None:
    orders = script.subscribed_topic("orders", partitions=2)
    script.subscribed_topic("offers")
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\.o.*s")
    script.until_group_epoch(2)
    a.describe_consumers()
    a.consumer_beat()
    a.consumer_beat(owned={orders: [0, 1]})
    a.describe_consumers()


@scenario("consumers")
def a_regular_expression_matches_whole_names(script: Script) -> None:
    script.subscribed_topic("t")
    script.subscribed_topic("tt")
    a = script.client("a")
    for regex in (r"\.t", r"\.t|.*tt", r"\.t+", r"\.tt$"):
        group = f"{script.group}.{regex}"
        a.consumer_join(group_id=group, regex=script.group + regex)
        script.until_group_epoch(2, group)
        a.consumer_beat(group_id=group)
        a.describe_consumers(group)


@scenario("consumers")
def a_regular_expression_is_replaced(script: Script) -> None:
    script.subscribed_topic("t")
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\.t")
    script.until_group_epoch(2)
    a.consumer_beat()
    a.consumer_beat(regex=rf"{script.group}\.u")
    a.consumer_beat(owned={})
    script.until_group_epoch(3)
    a.describe_consumers()
    a.consumer_beat(owned={})
    a.consumer_beat(owned={u: [0]})
    a.describe_consumers()


@scenario("consumers")
def a_second_regular_expression_waits_for_its_turn(script: Script) -> None:
    script.subscribed_topic("t")
    script.subscribed_topic("u")
    a, b = script.clients("a", "b")
    a.consumer_join(regex=rf"{script.group}\.t")
    script.until_group_epoch(2)
    a.consumer_beat()
    b.consumer_join(regex=rf"{script.group}\.u")
    b.consumer_beat()
    script.pause_ms(11_000)
    b.consumer_beat()
    script.until_group_epoch(3)
    b.consumer_beat()
    b.describe_consumers()


@scenario("consumers")
def a_regular_expression_that_cannot_be_read_is_refused(script: Script) -> None:
    topic = script.subscribed_topic()
    a, b = script.clients("a", "b")
    wrong = ("[", "(", "*", "a**", "(?<x", r"\1", "(?=x)", "(?!x)", "a{2000}", "a{2,1}", "[z-a]")
    for regex in (
        *wrong,
        r"\p{Nothing}",
        "(?i",
        ")",
        "\\",
        r"\8",
        "[[:nothing:]]",
        "(?P<n>a)(?P<n>b)",
    ):
        a.consumer_join(regex=regex)
    b.consumer_join(topic)
    b.consumer_beat(regex="[")
    b.consumer_beat(regex="(", topics=())
    b.describe_consumers()
    b.consumer_leave()


@scenario("consumers")
def a_regular_expression_of_re2_is_taken(script: Script) -> None:
    a = script.client("a")
    for number, regex in enumerate(
        (r"\d+", r"\p{Greek}", "(?i)abc", "a{1000}", r"\Qa.b\E", "(?P<n>a)", "^a$", r"\bx", "")
    ):
        a.consumer_join(regex=regex, group_id=f"{script.group}.{number}")


@scenario("consumers")
def names_and_a_regular_expression_together(script: Script) -> None:
    t = script.subscribed_topic("t")
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(t, regex=rf"{script.group}\.u")
    script.until_group_epoch(3)
    a.consumer_beat()
    a.consumer_beat(topics=(), owned={t: [0], u: [0]})
    a.consumer_beat(owned={u: [0]})
    a.consumer_beat(topics=(t, u))
    a.describe_consumers()


@scenario("consumers")
def an_empty_regular_expression_ends_it(script: Script) -> None:
    t = script.subscribed_topic("t")
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(t, regex=rf"{script.group}\.u")
    script.until_group_epoch(3)
    a.consumer_beat(regex="")
    a.consumer_beat(owned={t: [0]})
    a.consumer_beat(regex="")
    a.describe_consumers()
    a.consumer_beat(regex=rf"{script.group}\.u")
    script.until_group_epoch(5)
    a.consumer_beat(owned={t: [0]})
    a.consumer_beat(owned={t: [0], u: [0]})


@scenario("consumers")
def a_regular_expression_that_matches_nothing(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.consumer_join(regex="there is no such topic")
    a.consumer_beat()
    a.describe_consumers()
    b.consumer_join(regex="there is no such topic")
    b.consumer_beat()
    a.consumer_beat(regex="nor such a topic")
    a.consumer_beat()
    b.consumer_leave()
    a.consumer_leave()
    a.describe_consumers()


@scenario("consumers")
def two_consumers_share_a_regular_expression(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    regex = rf"{script.group}\..*"
    a, b = script.clients("a", "b")
    a.consumer_join(regex=regex)
    script.until_group_epoch(2)
    a.consumer_beat()
    b.consumer_join(regex=regex)
    a.consumer_beat(owned={topic: [0]})
    b.consumer_beat()
    a.describe_consumers()
    a.consumer_beat(regex="", topics=(topic,))
    b.consumer_leave()
    a.consumer_beat()


@scenario("consumers")
def a_topic_that_matches_is_deleted(script: Script) -> None:
    t = script.subscribed_topic("t")
    u = script.subscribed_topic("u")
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\..")
    script.until_group_epoch(2)
    a.consumer_beat()
    script.delete_topic(u)
    a.consumer_beat()
    a.consumer_beat(owned={t: [0]})
    a.describe_consumers()


@scenario("consumers")
def a_topic_that_matches_comes_later(script: Script) -> None:
    t = script.subscribed_topic("t")
    a = script.client("a")
    a.consumer_join(regex=rf"{script.group}\..")
    script.until_group_epoch(2)
    a.consumer_beat()
    script.subscribed_topic("u")
    a.consumer_beat(owned={t: [0]})
    script.pause_ms(11_000)
    a.consumer_beat(owned={t: [0]})
    script.until_group_epoch(3)
    a.consumer_beat(owned={t: [0]})
    a.describe_consumers()


@scenario("consumers")
def a_static_consumer_returns_with_a_regular_expression(script: Script) -> None:
    topic = script.subscribed_topic(partitions=2)
    a, new = script.clients("a", "new")
    a.consumer_join(topic, instance_id="ia")
    a.consumer_leave(-2, instance_id="ia")
    new.consumer_join(regex=rf"{script.group}\..*", instance_id="ia")
    new.describe_consumers()


@scenario("consumers")
def a_regular_expression_that_is_not_resolved_leaves_no_epoch_before(script: Script) -> None:
    """A member without topics takes a step, although it owns nothing."""
    a = script.client("a")
    a.consumer_join("none")
    a.consumer_join("neither")
    a.consumer_beat(topics=(), regex="nothing")
    a.consumer_beat(3, owned={})
    a.consumer_beat(regex="nothing else")
    a.consumer_beat(3, owned={})
