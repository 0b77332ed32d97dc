"""IncrementalAlterConfigs, AlterConfigs and ListConfigResources: what is changed, and kept.

The answers are compared with a real Kafka's in tests/compare (group_configs); here is what a
comparison does not see: durability, the disk's errors, and what counts from when on.
"""

from collections.abc import Sequence

import pytest

from protocol.config_def import ConfigException
from protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from protocol.names import LAG_TOPIC, OFFSETS_TOPIC, ErrorCode, GroupId
from storage.api import Corrupt, NewerFormat
from tests.topics.plane import Plane
from topics import group_config_store
from topics.config_resources import ConfigOperation, ConfigResourceType
from topics.events import (
    GroupConfigCapped,
    GroupConfigsChanged,
    GroupConfigsLost,
    SaveFailed,
    TopicConfigsChanged,
)
from topics.group_config_store import GroupConfigsDamaged
from topics.group_configs import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT
from topics.settings import InternalTopic, TopicSettings

SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
APPEND, SUBTRACT = ConfigOperation.APPEND, ConfigOperation.SUBTRACT
TOPIC, BROKER, GROUP = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.GROUP,
)
LOGGER, METRICS = ConfigResourceType.BROKER_LOGGER, ConfigResourceType.CLIENT_METRICS

Edits = Sequence[tuple[str, int, str | None]]


def alter(
    plane: Plane, resource_type: int, name: str, *edits: tuple[str, int, str | None]
) -> tuple[ErrorCode, str | None]:
    (answer,) = alter_all(plane, (resource_type, name, edits))
    return answer


def alter_all(
    plane: Plane, *resources: tuple[int, str, Edits], validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    request = IncrementalAlterConfigsRequest(
        [
            IncrementalAlterConfigsResource(
                resource_type, name, [IncrementalAlterableConfig(*edit) for edit in edits]
            )
            for resource_type, name, edits in resources
        ],
        validate_only,
    )
    answer = plane.ask(request, 1, IncrementalAlterConfigsResponse)
    assert [(r.resource_type, r.resource_name) for r in answer.responses] == [
        (resource_type, name) for resource_type, name, _ in resources
    ]
    return [(r.error_code, r.error_message) for r in answer.responses]


def replace_all(
    plane: Plane, resource_type: int, name: str, **configs: str
) -> tuple[ErrorCode, str | None]:
    """AlterConfigs; config names have _ for dots."""
    named = [AlterableConfig(key.replace("_", "."), value) for key, value in configs.items()]
    request = AlterConfigsRequest([AlterConfigsResource(resource_type, name, named)])
    (answer,) = plane.ask(request, 2, AlterConfigsResponse).responses
    return answer.error_code, answer.error_message


def value(plane: Plane, resource_type: int, name: str, key: str) -> str | None:
    resource = DescribeConfigsResource(resource_type, name, [key])
    request = DescribeConfigsRequest([resource], include_synonyms=True)
    (result,) = plane.ask(request, 4, DescribeConfigsResponse).results
    (entry,) = result.configs
    return entry.value


def listed(plane: Plane, *types: int) -> list[tuple[int, str]]:
    answer = plane.ask(ListConfigResourcesRequest(types), 1, ListConfigResourcesResponse)
    return [(r.resource_type, r.resource_name) for r in answer.config_resources]


DONE = (ErrorCode.NONE, None)


# Groups


def test_a_group_that_does_not_exist_yet_may_have_configs(plane: Plane) -> None:
    assert alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, " 50000 ")) == DONE

    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 50_000
    assert plane.group_configs.heartbeat_interval_ms(GroupId("g")) == 5_000
    assert plane.group_configs.session_timeout_ms(GroupId("other")) == 45_000
    assert value(plane, GROUP, "g", SESSION_TIMEOUT) == "50000"
    assert listed(plane, GROUP) == [(GROUP, "g")]
    assert plane.events_of(GroupConfigsChanged) == [
        GroupConfigsChanged("g", {SESSION_TIMEOUT: " 50000 "})
    ]


def test_configs_survive_a_restart_and_a_kill(plane: Plane) -> None:
    alter(plane, GROUP, "g", (ASSIGNMENT_INTERVAL, SET, "7"))
    plane.restart()
    assert plane.group_configs.assignment_interval_ms(GroupId("g")) == 7
    assert plane.events_of(GroupConfigCapped) == []


def test_a_group_without_configs_is_forgotten(plane: Plane) -> None:
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000"))
    assert alter(plane, GROUP, "g", (SESSION_TIMEOUT, DELETE, None)) == DONE
    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 45_000
    assert listed(plane, GROUP) == []


def test_alter_configs_resets_what_it_does_not_name(plane: Plane) -> None:
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000"), (HEARTBEAT_INTERVAL, SET, "6000"))
    assert replace_all(plane, GROUP, "g", consumer_session_timeout_ms="55000") == DONE
    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 55_000
    assert plane.group_configs.heartbeat_interval_ms(GroupId("g")) == 5_000


def test_what_changes_nothing_is_not_saved(plane: Plane) -> None:
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000"))
    saves = plane.group_configs_file.saves
    assert alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000")) == DONE
    assert alter(plane, GROUP, "other", (SESSION_TIMEOUT, DELETE, None)) == DONE
    assert alter(plane, GROUP, "other") == DONE
    assert alter_all(
        plane, (GROUP, "h", [(SESSION_TIMEOUT, SET, "50000")]), validate_only=True
    ) == [DONE]
    assert plane.group_configs_file.saves == saves
    assert listed(plane, GROUP) == [(GROUP, "g")]


def test_a_full_disk_changes_nothing(plane: Plane) -> None:
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000"))
    plane.group_configs_file.fail_next = OSError(28, "No space left on device")

    error_code, message = alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "55000"))

    assert error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert message == "The disk refused: No space left on device"
    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 50_000
    assert value(plane, GROUP, "g", SESSION_TIMEOUT) == "50000"
    assert [event.what for event in plane.events_of(SaveFailed)] == ["configs of groups"]
    plane.restart()
    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 50_000


def test_each_resource_of_a_request_stands_for_itself(plane: Plane) -> None:
    sound: Edits = [(SESSION_TIMEOUT, SET, "50000")]
    answers = alter_all(
        plane,
        (GROUP, "a", sound),
        (GROUP, "b", [(SESSION_TIMEOUT, SET, "1")]),
        (GROUP, "c", sound),
        (GROUP, "c", sound),
        (99, "d", sound),
        (GROUP, "", sound),
    )
    assert [error_code for error_code, _ in answers] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert listed(plane, GROUP) == [(GROUP, "a")]


def test_a_value_outside_of_the_limits_of_a_start_counts_as_the_limit(plane: Plane) -> None:
    """As GroupConfig.evaluate of 4.3.1; the value itself stays and is shown."""
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "60000"))

    plane.restart(
        TopicSettings(broker_properties={"group.consumer.max.session.timeout.ms": "50000"})
    )

    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 50_000
    assert plane.events_of(GroupConfigCapped) == [
        GroupConfigCapped("g", SESSION_TIMEOUT, 60_000, 50_000)
    ]
    assert value(plane, GROUP, "g", SESSION_TIMEOUT) == "60000"
    # The configs of a group are checked as a whole: the old value must go first.
    assert alter(plane, GROUP, "g", (HEARTBEAT_INTERVAL, SET, "6000")) == (
        ErrorCode.INVALID_CONFIG,
        f"{SESSION_TIMEOUT} must be less than or equal to group.consumer.max.session.timeout.ms",
    )
    assert (
        alter(plane, GROUP, "g", (HEARTBEAT_INTERVAL, SET, "6000"), (SESSION_TIMEOUT, DELETE, None))
        == DONE
    )


def test_groups_without_their_own_value_have_the_brokers(plane: Plane) -> None:
    plane.restart(TopicSettings(broker_properties={"group.consumer.session.timeout.ms": "47000"}))
    alter(plane, GROUP, "g", (HEARTBEAT_INTERVAL, SET, "6000"))
    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 47_000
    assert plane.group_configs.session_timeout_ms(GroupId("h")) == 47_000


def test_so_many_groups_may_have_configs(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_config_store, "GROUPS_WITH_CONFIGS_MAX", 2)
    sound = (SESSION_TIMEOUT, SET, "50000")
    assert [alter(plane, GROUP, name, sound) for name in ("a", "b")] == [DONE, DONE]
    assert alter(plane, GROUP, "c", sound) == (
        ErrorCode.INVALID_CONFIG,
        "2 groups have configs: no others can be given any.",
    )
    assert alter(plane, GROUP, "a", (SESSION_TIMEOUT, SET, "55000")) == DONE
    assert alter(plane, GROUP, "c", (SESSION_TIMEOUT, DELETE, None)) == DONE


# The file


DAMAGES = {
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "another's": b"hello\n",
    "a list": b"[]",
    "no groups": b'{"format": 1}',
    "groups are no object": b'{"format": 1, "groups": 7}',
    "a group without configs": b'{"format": 1, "groups": {"g": {}}}',
    "a number": b'{"format": 1, "groups": {"g": {"consumer.session.timeout.ms": 5}}}',
    "no number": b'{"format": 1, "groups": {"g": {"consumer.session.timeout.ms": "x"}}}',
    "unknown format": b'{"format": 0, "groups": {}}',
    "wrong checksum": b'{"format": 1, "groups": {}, "crc32": 1}',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_a_repair_keeps_a_copy(plane: Plane, damage: str) -> None:
    plane.group_configs_file.content = DAMAGES[damage]
    with pytest.raises(GroupConfigsDamaged) as refused:
        plane.restart()
    assert isinstance(refused.value, Corrupt)
    assert "--repair" in refused.value.remedy

    plane.repair = True
    plane.restart()

    assert plane.group_configs_file.kept == [DAMAGES[damage]]
    assert len(plane.events_of(GroupConfigsLost)) == 1
    assert plane.group_configs.was_repaired
    plane.repair = False
    plane.restart()
    assert listed(plane, GROUP) == []


def test_a_changed_digit_is_noticed(plane: Plane) -> None:
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000"))
    assert plane.group_configs_file.content is not None
    plane.group_configs_file.content = plane.group_configs_file.content.replace(b"50000", b"51000")
    with pytest.raises(GroupConfigsDamaged, match="crc32 does not fit"):
        plane.restart()


def test_a_newer_file_is_refused_even_by_a_repair(plane: Plane) -> None:
    plane.group_configs_file.content = b'{"format": 2, "groups": {}}'
    plane.repair = True
    with pytest.raises(NewerFormat):
        plane.restart()


def test_a_name_of_a_later_version_is_kept(plane: Plane) -> None:
    """Until the group is changed: then it must be removed, as in Kafka."""
    plane.group_configs_file.content = b'{"format": 1, "groups": {"g": {"later.key": "1"}}}'
    plane.restart()
    assert plane.group_configs.session_timeout_ms(GroupId("g")) == 45_000
    assert alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000")) == (
        ErrorCode.INVALID_CONFIG,
        "Unknown group config name: later.key",
    )
    assert alter(plane, GROUP, "g", ("later.key", DELETE, None)) == DONE


@pytest.mark.parametrize(
    "text",
    ["PT0S", "P1D", "-PT-1S", "pt1h", "P1DT2H3M4.5S", "PT1H-30M", "PT1.S", "+P1D"],
)
def test_durations_are_read_as_java_reads_them(plane: Plane, text: str) -> None:
    key, written = "share.auto.offset.reset", f"by_duration:{text}"
    assert alter(plane, GROUP, "g", (key, SET, written)) == DONE


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "PT.5S", "1D", "-PT1S", "PT-1S", f"P{'9' * 19}D", "PT1H2"]
)
def test_other_durations_are_refused(plane: Plane, text: str) -> None:
    key, written = "share.auto.offset.reset", f"by_duration:{text}"
    assert alter(plane, GROUP, "g", (key, SET, written))[0] is ErrorCode.INVALID_CONFIG


# Topics


def test_a_topics_configs_count_at_once_and_after_a_restart(plane: Plane) -> None:
    plane.given("t", 2)
    assert alter(
        plane, TOPIC, "t", ("retention.ms", SET, "1000"), ("max.message.bytes", SET, "10")
    ) == (DONE)

    for _ in range(2):
        topic = plane.data.registry.by_name(plane.data.registry.names()[-1])
        assert topic is not None
        assert topic.name == "t"
        assert topic.effective.max_message_bytes == 10
        assert [plane.log("t", index).settings.retention_ms for index in (0, 1)] == [1_000, 1_000]
        assert plane.produce("t").error_code is ErrorCode.MESSAGE_TOO_LARGE
        plane.restart()
    assert value(plane, TOPIC, "t", "retention.ms") == "1000"


def test_a_topics_change_is_an_event(plane: Plane) -> None:
    plane.given("t", retention_ms="5")
    alter(plane, TOPIC, "t", ("retention.bytes", SET, "7"), ("retention.ms", DELETE, ""))
    alter(plane, TOPIC, "t", ("retention.bytes", SET, "7"))
    assert plane.events_of(TopicConfigsChanged) == [
        TopicConfigsChanged(plane.data.registry.names()[-1], {"retention.bytes": "7"})
    ]


def test_a_full_disk_leaves_a_topic_as_it_was(plane: Plane) -> None:
    plane.given("t")
    plane.catalog.fail_next = OSError(28, "No space left on device")
    error_code, _ = alter(plane, TOPIC, "t", ("retention.ms", SET, "1000"))
    assert error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert value(plane, TOPIC, "t", "retention.ms") == "604800000"
    assert plane.log("t").settings.retention_ms == 604_800_000


def test_lists_grow_and_shrink(plane: Plane) -> None:
    plane.given("t")
    for operation, given, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete,other", "compact"),
        (SUBTRACT, "compact", ""),
        (APPEND, " compact ", "compact"),
        (DELETE, "", "delete"),
    ):
        assert alter(plane, TOPIC, "t", ("cleanup.policy", operation, given)) == DONE
        assert value(plane, TOPIC, "t", "cleanup.policy") == expected
        assert plane.log("t").settings.cleanup_compact is ("compact" in expected)


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, LAG_TOPIC])
def test_internal_topics_follow_the_brokers_keys(plane: Plane, name: str) -> None:
    plane.restart(TopicSettings(internal_topics={LAG_TOPIC: InternalTopic(1, {})}))
    error_code, message = alter(plane, TOPIC, name, ("retention.ms", SET, "1"))
    assert error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert message == f"Topic '{name}' is internal and cannot be given configs."


# The list


def test_resources_are_listed_by_type(plane: Plane) -> None:
    plane.given("t")
    alter(plane, GROUP, "g", (SESSION_TIMEOUT, SET, "50000"))
    assert listed(plane) == [
        (GROUP, "g"),
        (LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, OFFSETS_TOPIC),
        (TOPIC, "t"),
    ]
    assert listed(plane, TOPIC, METRICS) == [(TOPIC, OFFSETS_TOPIC), (TOPIC, "t")]
    first = plane.ask(ListConfigResourcesRequest(), 0, ListConfigResourcesResponse)
    assert (first.error_code, list(first.config_resources)) == (ErrorCode.NONE, [])
    unknown = plane.ask(ListConfigResourcesRequest((99, 2)), 1, ListConfigResourcesResponse)
    assert (unknown.error_code, list(unknown.config_resources)) == (
        ErrorCode.UNSUPPORTED_VERSION,
        [],
    )


def test_the_whole_of_a_groups_configs_is_checked(plane: Plane) -> None:
    """As GroupConfig.validate of 4.3.1, with limits that overlap."""
    plane.restart(
        TopicSettings(
            broker_properties={
                "group.consumer.min.session.timeout.ms": "1",
                "group.consumer.max.heartbeat.interval.ms": "60000",
            }
        )
    )
    rules = plane.group_configs.rules
    for configs in (
        {SESSION_TIMEOUT: "5000"},
        {HEARTBEAT_INTERVAL: "45000"},
        {HEARTBEAT_INTERVAL: "6000", SESSION_TIMEOUT: "6000"},
    ):
        with pytest.raises(ConfigException) as refused:
            rules.validate(configs)
        assert str(refused.value) == f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"
    rules.validate({SESSION_TIMEOUT: "5001"})
    rules.validate({HEARTBEAT_INTERVAL: "44999"})
