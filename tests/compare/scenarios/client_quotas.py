"""Client quotas: how they are read and changed, and changes of topics beyond one."""

from collections.abc import Mapping, Sequence

from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    QuotaFilterComponent,
)
from protocol.names import TopicName
from tests.compare.client import Client
from tests.compare.script import Script, scenario

TIMEOUT_MS = 10_000
EXACT, DEFAULT, SPECIFIED = range(3)
Entity = Sequence[tuple[str, str | None]]


def alteration(entity: Entity, quotas: Mapping[str, float | None]) -> QuotaAlteration:
    """None removes a quota."""
    return QuotaAlteration(
        [QuotaEntity(*part) for part in entity],
        [QuotaOperation(key, bound or 0.0, remove=bound is None) for key, bound in quotas.items()],
    )


def alter(client: Client, entity: Entity, quotas: Mapping[str, float | None]) -> None:
    client.ask(AlterClientQuotasRequest([alteration(entity, quotas)]), 1)


def in_effect(script: Script) -> None:
    """Kafka answers a change before it holds for its brokers."""
    script.pause_ms(500)


def describe(
    client: Client, *components: tuple[str, int, str | None], is_strict: bool = False
) -> None:
    asked = [QuotaFilterComponent(*component) for component in components]
    client.ask(DescribeClientQuotasRequest(asked, strict=is_strict), 1)


@scenario(profile="client quotas")
def quotas_are_set_changed_and_removed(script: Script) -> None:
    a = script.client("a")
    amy = [("user", f"{script.name}.amy")]
    alter(a, amy, {"producer_byte_rate": 1_000.0})
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))
    alter(a, amy, {"producer_byte_rate": 2_000.0, "request_percentage": 12.5})
    alter(a, amy, {"producer_byte_rate": None})
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))
    alter(a, amy, {"request_percentage": None, "consumer_byte_rate": None})
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))


@scenario(profile="client quotas")
def quotas_of_both_kinds_and_of_defaults_are_found_by_filters(script: Script) -> None:
    a = script.client("a")
    amy, app = f"{script.name}.amy", f"{script.name}.app"
    much = {"consumer_byte_rate": 1e12}
    alter(a, [("user", amy), ("client-id", app)], much)
    alter(a, [("user", amy), ("client-id", None)], much)
    alter(a, [("user", None), ("client-id", app)], much)
    in_effect(script)
    for is_strict in (False, True):
        describe(a, ("user", EXACT, amy), ("client-id", EXACT, app), is_strict=is_strict)
        describe(a, ("user", EXACT, amy), ("client-id", DEFAULT, None), is_strict=is_strict)
        describe(a, ("user", DEFAULT, None), ("client-id", EXACT, app), is_strict=is_strict)
        describe(a, ("user", EXACT, "nobody"), ("client-id", SPECIFIED, None), is_strict=is_strict)
        describe(a, ("user", EXACT, app), is_strict=is_strict)
    describe(a, ("client-id", EXACT, amy))
    describe(a, ("user", EXACT, amy), is_strict=True)


@scenario(profile="client quotas")
def quotas_of_addresses(script: Script) -> None:
    a = script.client("a")
    alter(a, [("ip", "10.11.12.13")], {"connection_creation_rate": 5.0})
    alter(a, [("ip", "10.11.12.13")], {"connection_creation_rate": 5.5})
    alter(a, [("ip", "10.11.12.13")], {"connection_creation_rate": 2147483648.0})
    in_effect(script)
    describe(a, ("ip", EXACT, "10.11.12.13"))
    describe(a, ("ip", EXACT, "10.11.12.14"))
    describe(a, ("ip", DEFAULT, None))


@scenario(profile="client quotas")
def values_that_are_refused(script: Script) -> None:
    a = script.client("a")
    amy = [("user", f"{script.name}.amy")]
    for key, bound in (
        ("producer_byte_rate", 0.0),
        ("producer_byte_rate", -1.0),
        ("producer_byte_rate", 1.5),
        ("producer_byte_rate", 1.0000001),
        ("consumer_byte_rate", 1e19),
        ("consumer_byte_rate", float("inf")),
        ("request_percentage", 0.5),
        ("request_percentage", 1e300),
        ("controller_mutation_rate", 0.25),
        ("controller_mutation_rate", -0.25),
        ("connection_creation_rate", 1.0),
        ("bogus", 1.0),
    ):
        alter(a, amy, {key: bound})
    alter(a, amy, {"producer_byte_rate": 1.0, "bogus": 1.0})
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))


@scenario(profile="client quotas")
def what_is_only_validated(script: Script) -> None:
    a = script.client("a")
    amy = [("user", f"{script.name}.amy")]
    for key in ("producer_byte_rate", "bogus"):
        request = AlterClientQuotasRequest([alteration(amy, {key: 1.0})], validate_only=True)
        a.ask(request, 1)
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))


@scenario(profile="client quotas")
def an_entity_or_a_key_that_is_named_twice(script: Script) -> None:
    a = script.client("a")
    amy = [("user", f"{script.name}.amy")]
    first = alteration(amy, {"producer_byte_rate": 1.0})
    second = alteration(amy, {"consumer_byte_rate": 2.0})
    a.ask(AlterClientQuotasRequest([first, second]), 1)
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))
    twice = QuotaAlteration(
        first.entity, [QuotaOperation("request_percentage", bound) for bound in (1.0, 2.0)]
    )
    a.ask(AlterClientQuotasRequest([twice]), 1)
    in_effect(script)
    describe(a, ("user", EXACT, amy[0][1]))


def create(client: Client, version: int, *names: str, validate_only: bool = False) -> None:
    topics = [CreatableTopic(TopicName(name), 6, 1) for name in names]
    client.ask(CreateTopicsRequest(topics, TIMEOUT_MS, validate_only), version)


def limited(script: Script, name: str) -> Client:
    """A connection of a client id whose burst is 11 partitions.

    One that was throttled is muted: what comes next goes through another one.
    """
    return script.client(name, f"{script.name}.app")


@scenario(profile="client quotas")
def topics_are_created_up_to_the_quota_and_one_request_beyond(script: Script) -> None:
    admin = script.client("admin")
    alter(admin, [("client-id", f"{script.name}.app")], {"controller_mutation_rate": 1.0})
    in_effect(script)
    a, b, c, d = (limited(script, name) for name in "abcd")
    names = [f"{script.name}.{n}" for n in range(6)]
    create(a, 7, names[0], names[1])
    create(a, 7, names[2])
    create(b, 7, names[2], names[0], "*")
    create(c, 5, names[3])
    create(d, 7, names[4], validate_only=True)


@scenario(profile="client quotas")
def what_is_only_validated_uses_the_quota_up(script: Script) -> None:
    admin = script.client("admin")
    alter(admin, [("client-id", f"{script.name}.app")], {"controller_mutation_rate": 0.1})
    in_effect(script)
    a, b = limited(script, "a"), limited(script, "b")
    create(a, 7, f"{script.name}.x", validate_only=True)
    create(b, 7, f"{script.name}.y")


@scenario(profile="client quotas")
def topics_are_deleted_and_grown_up_to_the_quota(script: Script) -> None:
    admin = script.client("admin")
    names = [script.topic(f"t{n}", 6) for n in range(5)]
    alter(admin, [("client-id", f"{script.name}.app")], {"controller_mutation_rate": 0.5})
    in_effect(script)
    a, b, c, d = (limited(script, name) for name in "abcd")
    a.ask(DeleteTopicsRequest(topic_names=names[:1], timeout_ms=TIMEOUT_MS), 5)
    b.ask(DeleteTopicsRequest(topic_names=names[1:2], timeout_ms=TIMEOUT_MS), 5)
    c.ask(CreatePartitionsRequest([CreatePartitionsTopic(names[2], 7, None)], TIMEOUT_MS), 3)
    d.ask(DeleteTopicsRequest(topic_names=names[3:4], timeout_ms=TIMEOUT_MS), 4)
    e = limited(script, "e")
    e.ask(CreatePartitionsRequest([CreatePartitionsTopic(names[4], 7, None)], TIMEOUT_MS), 2)
