"""IncrementalAlterConfigs, AlterConfigs, ListConfigResources: configs of groups and topics."""

import itertools
from collections.abc import Sequence
from typing import Final

from protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.compare.client import Client
from tests.compare.script import Script, scenario

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)

VALUES: Final = {
    SESSION: ("45000", "60000", "44999", "60001", " 50000 ", "x", "", "0", "-1", "2147483648"),
    HEARTBEAT: ("4999", "5000", "15000", "15001"),
    ASSIGNMENT: ("-1", "0", "15000", "15001"),
    "share.session.timeout.ms": ("44999", "60000", "60001"),
    "share.heartbeat.interval.ms": ("4999", "15000", "15001"),
    "share.record.lock.duration.ms": ("999", "1000", "15000", "60001"),
    "share.delivery.count.limit": ("1", "2", "10", "11"),
    "share.partition.max.record.locks": ("99", "100", "4000", "4001"),
    "share.auto.offset.reset": (
        "earliest", " latest ", "LATEST", "none", "by_duration:PT1H", "by_duration:PT0S",
        "by_duration:-PT1H", "by_duration:x", "by_duration:", "by_duration:P1DT2H3M4.5S",
        "by_duration:pt1s", "by_duration:P", "by_duration:PT",
    ),
    "share.isolation.level": ("read_committed", "READ_COMMITTED", "x"),
    "share.renew.acknowledge.enable": ("FALSE", "x"),
    "share.assignment.interval.ms": ("0", "15001"),
    "streams.session.timeout.ms": ("44999", "60000", "60001"),
    "streams.heartbeat.interval.ms": ("4999", "15000", "15001"),
    "streams.num.standby.replicas": ("-1", "2", "3"),
    "streams.initial.rebalance.delay.ms": ("-1", "0", "999999999"),
    "streams.assignment.interval.ms": ("0", "15001"),
}  # fmt: skip

Edit = tuple[str, int, str | None]
Resource = tuple[int, str, Sequence[Edit]]


def alter(
    client: Client, *resources: Resource, validate_only: bool = False, version: int = 1
) -> None:
    asked = [
        IncrementalAlterConfigsResource(
            resource_type, name, [IncrementalAlterableConfig(*edit) for edit in edits]
        )
        for resource_type, name, edits in resources
    ]
    client.ask(IncrementalAlterConfigsRequest(asked, validate_only), version)


def replace_all(
    client: Client,
    resource_type: int,
    name: str,
    *configs: tuple[str, str | None],
    validate_only: bool = False,
    version: int = 2,
) -> None:
    named = [AlterableConfig(key, value) for key, value in configs]
    asked = [AlterConfigsResource(resource_type, name, named)]
    client.ask(AlterConfigsRequest(asked, validate_only), version)


def describe(script: Script, client: Client, resource_type: int, name: str, *keys: str) -> None:
    script.await_metadata()
    asked = (DescribeConfigsResource(resource_type, name, keys or None),)
    client.ask(DescribeConfigsRequest(asked, include_synonyms=True), 4)


@scenario()
def a_group_is_given_configs_in_every_version(script: Script) -> None:
    a = script.client("a")
    describe(script, a, GROUP, script.group)
    for version in (0, 1):
        alter(a, (GROUP, script.group, [(SESSION, SET, f"5000{version}")]), version=version)
        describe(script, a, GROUP, script.group, SESSION, HEARTBEAT)
    for version in (0, 1, 2):
        replace_all(a, GROUP, script.group, (HEARTBEAT, f"600{version}"), version=version)
        describe(script, a, GROUP, script.group, SESSION, HEARTBEAT)
    describe(script, a, GROUP, script.group)


@scenario()
def the_values_of_group_configs_are_checked(script: Script) -> None:
    a = script.client("a")
    for key, values in VALUES.items():
        for value in values:
            alter(a, (GROUP, script.group, [(key, SET, value)]))
    describe(script, a, GROUP, script.group)


@scenario()
def of_several_wrong_group_configs_one_is_named(script: Script) -> None:
    a = script.client("a")
    wrong = {
        SESSION: "1",
        HEARTBEAT: "1",
        ASSIGNMENT: "99999",
        "share.session.timeout.ms": "1",
        "share.record.lock.duration.ms": "1000",
        "streams.num.standby.replicas": "9",
    }
    names = list(wrong)
    for first, second in itertools.pairwise(names):
        edits: list[Edit] = [(name, SET, wrong[name]) for name in (second, first)]
        alter(a, (GROUP, script.group, edits))
    alter(a, (GROUP, script.group, [(SESSION, SET, "1"), ("no.such", SET, "1")]))
    alter(a, (GROUP, script.group, [(HEARTBEAT, SET, "1"), (SESSION, SET, "x")]))
    alter(a, (GROUP, script.group, [(HEARTBEAT, SET, None), (ASSIGNMENT, SET, None)]))
    describe(script, a, GROUP, script.group, *names)


@scenario("consumers of short sessions")
def the_brokers_values_limit_those_of_groups(script: Script) -> None:
    a = script.client("a")
    describe(script, a, GROUP, script.group, SESSION, HEARTBEAT, ASSIGNMENT)
    for session, heartbeat in (
        ("500", None),
        ("501", None),
        (None, "1500"),
        ("501", "500"),
        ("600", "600"),
        ("60000", "15000"),
    ):
        edits: list[Edit] = [
            (name, SET if value else DELETE, value)
            for name, value in ((SESSION, session), (HEARTBEAT, heartbeat))
        ]
        alter(a, (GROUP, script.group, edits))
    describe(script, a, GROUP, script.group, SESSION, HEARTBEAT, ASSIGNMENT)


@scenario()
def group_configs_are_deleted(script: Script) -> None:
    a = script.client("a")
    alter(a, (GROUP, script.group, [(SESSION, SET, "50000"), (HEARTBEAT, SET, "6000")]))
    script.await_metadata()
    a.ask(ListConfigResourcesRequest((GROUP,)), 1)
    alter(a, (GROUP, script.group, [(SESSION, DELETE, None)]))
    alter(a, (GROUP, script.group, [("no.such", DELETE, "")]))
    describe(script, a, GROUP, script.group, SESSION, HEARTBEAT)
    replace_all(a, GROUP, script.group)
    describe(script, a, GROUP, script.group, SESSION, HEARTBEAT)
    a.ask(ListConfigResourcesRequest((GROUP,)), 1)


@scenario()
def group_configs_are_only_validated(script: Script) -> None:
    a = script.client("a")
    alter(a, (GROUP, script.group, [(SESSION, SET, "50000")]), validate_only=True)
    alter(a, (GROUP, script.group, [(SESSION, SET, "1")]), validate_only=True)
    replace_all(a, GROUP, script.group, (SESSION, "50000"), validate_only=True)
    describe(script, a, GROUP, script.group, SESSION)


@scenario()
def a_deleted_group_keeps_its_configs(script: Script) -> None:
    a = script.client("a")
    a.commit_simply(script.topic(), {0: 1})
    alter(a, (GROUP, script.group, [(ASSIGNMENT, SET, "7")]))
    a.delete_groups()
    describe(script, a, GROUP, script.group, ASSIGNMENT)


@scenario()
def strange_changes_of_configs_are_refused(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    for kind, name, key in ((GROUP, script.group, SESSION), (TOPIC, topic, "retention.ms")):
        for edit in (
            ("no.such", SET, "1"),
            ("", SET, "1"),
            ("no.such", APPEND, "1"),
            (key, APPEND, "50000"),
            (key, SUBTRACT, "50000"),
            (key, SET, None),
            (key, APPEND, None),
            (key, 4, "50000"),
            (key, -1, "50000"),
        ):
            alter(a, (kind, name, [edit]))
        alter(a, (kind, name, [(key, SET, "50000"), (key, SET, "50001")]))
        alter(a, (kind, name, [(key, SET, "50000"), (key, DELETE, None)]))
        alter(a, (kind, name, []))
        alter(a, (kind, "", [(key, SET, "50000")]))
        alter(a, (kind, "", []))
        replace_all(a, kind, "", (key, "50000"))
        replace_all(a, kind, name, (key, None))
        replace_all(a, kind, name, ("no.such", "1"))
        replace_all(a, kind, name, (key, "50000"), (key, "50001"))
        describe(script, a, kind, name, key)
    for kind in (0, 1, 3, 64, 99, -1):
        alter(a, (kind, "a", [("b", SET, "c")]))
        replace_all(a, kind, "a", ("b", "c"))
    alter(a)


@scenario()
def each_resource_of_a_change_stands_for_itself(script: Script) -> None:
    a = script.client("a")
    sound: Sequence[Edit] = [(SESSION, SET, "50000")]
    g = script.group
    alter(
        a,
        (GROUP, f"{g}.1", sound),
        (GROUP, f"{g}.2", [(SESSION, SET, "1")]),
        (GROUP, f"{g}.3", sound),
        (GROUP, f"{g}.3", sound),
        (99, f"{g}.4", sound),
        (TOPIC, f"{g}.5", [("retention.ms", SET, "1")]),
    )
    script.await_metadata()
    a.ask(ListConfigResourcesRequest((GROUP,)), 1)


@scenario()
def a_topics_configs_are_changed(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    for edits in (
        [("retention.ms", SET, "1000"), ("max.message.bytes", SET, "77")],
        [("retention.ms", SET, "-2")],
        [("retention.ms", DELETE, None)],
        [("segment.bytes", SET, "100")],
        [("min.compaction.lag.ms", SET, "77"), ("max.compaction.lag.ms", SET, "7")],
        [("max.compaction.lag.ms", SET, "50")],
        [("min.compaction.lag.ms", SET, "77")],
        [("remote.storage.enable", SET, "true")],
        [("preallocate", SET, "x")],
        [("internal.segment.bytes", SET, "100")],
    ):
        alter(a, (TOPIC, topic, edits))
    describe(script, a, TOPIC, topic, "retention.ms", "max.message.bytes", "max.compaction.lag.ms")
    alter(a, (TOPIC, topic, [("retention.ms", SET, "5")]), validate_only=True)
    replace_all(a, TOPIC, topic, ("retention.bytes", "5"), validate_only=True)
    describe(script, a, TOPIC, topic, "retention.ms", "retention.bytes", "max.message.bytes")
    replace_all(a, TOPIC, topic, ("retention.bytes", "5"))
    describe(script, a, TOPIC, topic, "retention.ms", "retention.bytes", "max.message.bytes")
    for name in (f"{script.group}.other", "a b", "."):
        alter(a, (TOPIC, name, [("retention.ms", SET, "5")]))
        replace_all(a, TOPIC, name, ("retention.ms", "5"))


@scenario()
def lists_of_a_topics_configs_grow_and_shrink(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    policy, throttled = "cleanup.policy", "leader.replication.throttled.replicas"
    for edit in (
        (policy, APPEND, "compact"),
        (policy, APPEND, "compact,delete"),
        (policy, SUBTRACT, "delete,other"),
        (policy, SUBTRACT, "compact"),
        (policy, APPEND, " compact "),
        (policy, APPEND, "other"),
        (policy, APPEND, ""),
        (policy, DELETE, None),
        (policy, SUBTRACT, "delete"),
        (throttled, APPEND, "0:1"),
        (throttled, APPEND, "0:1,1:1"),
        (throttled, SUBTRACT, "0:1"),
    ):
        alter(a, (TOPIC, topic, [edit]))
        describe(script, a, TOPIC, topic, edit[0])


@scenario()
def other_nodes_cannot_be_given_configs(script: Script) -> None:
    a = script.client("a")
    edit = ("group.max.size", SET, "2")
    for kind, name in ((BROKER, "2"), (BROKER, "x"), (BROKER_LOGGER, "2"), (BROKER_LOGGER, "x")):
        alter(a, (kind, name, [edit]))
    for name in ("1", ""):
        alter(a, (BROKER, name, [edit]))
        alter(a, (BROKER, name, [("group.max.size", DELETE, None)]))
    alter(a, (BROKER_LOGGER, "1", [("no.such.logger", SET, "INFO")]))
    alter(a, (BROKER_LOGGER, "1", [("root", APPEND, "INFO")]))
    replace_all(a, BROKER_LOGGER, "1", ("root", "INFO"))
    alter(a, (CLIENT_METRICS, "", [("interval.ms", SET, "1000")]))


@scenario()
def resources_with_configs_are_listed(script: Script) -> None:
    a = script.client("a")
    script.topic()
    alter(a, (GROUP, script.group, [(SESSION, SET, "50000")]))
    script.await_metadata()
    a.ask(ListConfigResourcesRequest(), 0)
    for kinds in ((), (GROUP,), (TOPIC,), (BROKER,), (BROKER_LOGGER,), (TOPIC, GROUP), (99,), (0,)):
        a.ask(ListConfigResourcesRequest(kinds), 1)


@scenario("consumers")
def members_are_given_the_heartbeat_interval_of_their_group(script: Script) -> None:
    topic = script.subscribed_topic()
    a = script.client("a")
    alter(a, (GROUP, script.group, [(HEARTBEAT, SET, "7000")]))
    script.await_metadata()
    a.consumer_join(topic)
    alter(a, (GROUP, script.group, [(HEARTBEAT, SET, "15000")]))
    script.await_metadata()
    a.consumer_beat()
    alter(a, (GROUP, script.group, [(HEARTBEAT, DELETE, None)]))
    script.await_metadata()
    a.consumer_beat()


@scenario()
def keys_of_consumer_groups_are_described(script: Script) -> None:
    describe(
        script,
        script.client("a"),
        BROKER,
        "1",
        "group.consumer.regex.refresh.interval.ms",
        "group.consumer.assignors",
        "group.consumer.migration.policy",
        "group.consumer.session.timeout.ms",
        "group.coordinator.rebalance.protocols",
    )
