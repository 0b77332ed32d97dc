"""Broker config changes: what is changed and kept, of loggers and client metrics too.

The answers are compared with a real Kafka's in tests/compare (broker_configs); here is what a
comparison does not see: durability, the disk's errors, and what counts from when on.
"""

import pytest

from protocol.names import OFFSETS_TOPIC, ErrorCode, GroupId
from storage.api import NewerFormat
from tests.topics.handlers.test_alter_configs import (
    BROKER,
    DELETE,
    DONE,
    LOGGER,
    METRICS,
    SET,
    TOPIC,
    alter,
    alter_all,
    listed,
    replace_all,
    value,
)
from tests.topics.plane import Plane
from topics import broker_config_store, client_metrics
from topics.broker_config_store import BrokerConfigsDamaged
from topics.events import BrokerConfigIgnored, BrokerConfigsChanged, BrokerConfigsLost, SaveFailed

RETENTION = "log.retention.ms"


def retention_ms(plane: Plane, topic: str = "t") -> int:
    return plane.log(topic).settings.retention_ms


def test_a_change_is_in_effect_when_it_is_answered_and_after_a_kill(plane: Plane) -> None:
    plane.given("t")
    plane.given("own", retention_ms="5")
    assert alter(plane, BROKER, "", (RETENTION, SET, "1000")) == DONE
    assert (retention_ms(plane), retention_ms(plane, "own")) == (1_000, 5)
    assert alter(plane, BROKER, "1", (RETENTION, SET, "2000")) == DONE
    assert retention_ms(plane) == 2_000

    plane.restart()
    assert retention_ms(plane) == 2_000
    assert value(plane, TOPIC, "t", "retention.ms") == "2000"
    assert plane.events_of(BrokerConfigIgnored) == []

    assert alter(plane, BROKER, "1", (RETENTION, DELETE, None)) == DONE
    assert retention_ms(plane) == 1_000
    assert alter(plane, BROKER, "", (RETENTION, DELETE, None)) == DONE
    assert retention_ms(plane) == 7 * 86_400_000


def test_a_new_topic_has_the_dynamic_configs(plane: Plane) -> None:
    alter(plane, BROKER, "", ("message.max.bytes", SET, "100"))
    plane.given("t")
    assert plane.produce("t", plane.batch(b"x" * 200)).error_code is ErrorCode.MESSAGE_TOO_LARGE
    alter(plane, BROKER, "", ("message.max.bytes", DELETE, None))
    assert plane.produce("t", plane.batch(b"x" * 200)).error_code is ErrorCode.NONE


def test_the_offsets_logs_are_left_to_the_coordinator(plane: Plane) -> None:
    before = plane.data.registry.by_name(OFFSETS_TOPIC)
    assert before is not None
    alter(plane, BROKER, "", ("log.cleaner.delete.retention.ms", SET, "7"))
    assert before.effective.log.delete_retention_ms == 7


def test_groups_have_the_brokers_assignment_interval(plane: Plane) -> None:
    alter(plane, BROKER, "1", ("group.consumer.assignment.interval.ms", SET, "77"))
    assert plane.group_configs.assignment_interval_ms(GroupId("g")) == 77
    plane.restart()
    assert plane.group_configs.assignment_interval_ms(GroupId("g")) == 77


def test_what_changes_nothing_is_not_saved(plane: Plane) -> None:
    alter(plane, BROKER, "1", (RETENTION, SET, "1000"))
    saves = plane.broker_configs_file.saves
    assert alter(plane, BROKER, "1", (RETENTION, SET, "1000")) == DONE
    assert alter(plane, BROKER, "", (RETENTION, DELETE, None)) == DONE
    change = (BROKER, "", [(RETENTION, SET, "7")])
    assert alter_all(plane, change, validate_only=True) == [DONE]
    assert plane.broker_configs_file.saves == saves
    assert plane.events_of(BrokerConfigsChanged) == [
        BrokerConfigsChanged({RETENTION: "1000"}, per_broker=True, unused=())
    ]


def test_a_change_that_cannot_be_stored_is_not_made(plane: Plane) -> None:
    plane.given("t")
    for resource_type, name, key in ((BROKER, "", RETENTION), (METRICS, "m", "interval.ms")):
        plane.broker_configs_file.fail_next = OSError(28, "No space left on device")
        error_code, _ = alter(plane, resource_type, name, (key, SET, "1000"))
        assert error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert retention_ms(plane) == 7 * 86_400_000
    assert listed(plane, METRICS) == []
    assert len(plane.events_of(SaveFailed)) == 2


def test_alter_configs_resets_what_it_does_not_name(plane: Plane) -> None:
    alter(plane, BROKER, "", (RETENTION, SET, "1000"), ("log.roll.ms", SET, "7"))
    assert replace_all(plane, BROKER, "", log_roll_ms="8") == DONE
    assert plane.broker_configs.properties.cluster == {"log.roll.ms": "8"}


def test_security_and_listeners_cannot_be_changed(plane: Plane) -> None:
    for name, text in (
        ("listeners", "PLAINTEXT://127.0.0.1:1"),
        ("sasl.jaas.config", "x"),
        ("config.providers", "file"),
        ("principal.builder.class", "x"),
    ):
        error_code, text_of_error = alter(plane, BROKER, "1", (name, SET, text))
        assert error_code is ErrorCode.INVALID_REQUEST, name
        assert name in (text_of_error or "")


def test_rollcalls_own_keys_are_static(plane: Plane) -> None:
    assert alter(plane, BROKER, "1", ("rollcall.flush", SET, "os")) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: [rollcall.flush]",
    )


def test_what_has_no_use_is_stored_and_named(plane: Plane) -> None:
    alter(plane, BROKER, "1", ("num.io.threads", SET, "9"), ("a.plug.in", SET, "secret"))
    (changed,) = plane.events_of(BrokerConfigsChanged)
    assert changed.unused == ("num.io.threads", "a.plug.in")
    plane.restart()
    assert plane.broker_configs.properties.broker == {
        "num.io.threads": "9",
        "a.plug.in": "secret",
    }


def test_the_number_and_the_length_of_configs_are_limited(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.handlers.alter_broker_configs.BROKER_CONFIGS_MAX", 2)
    assert alter(plane, BROKER, "", ("a", SET, "1"), ("b", SET, "1")) == DONE
    assert alter(plane, BROKER, "", ("c", SET, "1"))[0] is ErrorCode.INVALID_CONFIG
    assert alter(plane, BROKER, "1", ("c", SET, "x" * 32_768))[0] is ErrorCode.INVALID_CONFIG


def test_min_insync_replicas_counts_as_one_at_most(plane: Plane) -> None:
    """As in Kafka: a partition cannot ask for more replicas than it has."""
    plane.given("t")
    alter(plane, BROKER, "", ("min.insync.replicas", SET, "2"))
    assert plane.produce("t", acks=-1).error_code is ErrorCode.NONE


# The file

DAMAGES = {
    "no JSON": b"x",
    "no document": b"[]",
    "no level": b'{"format": 1, "cluster": {}, "client_metrics": {}}',
    "a number": b'{"format": 1, "cluster": {"a": 1}, "broker": {}, "client_metrics": {}}',
    "no subscriptions": b'{"format": 1, "cluster": {}, "broker": {}, "client_metrics": []}',
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_prevents_the_start_and_is_kept_by_a_repair(
    plane: Plane, damage: str
) -> None:
    plane.broker_configs_file.content = DAMAGES[damage]
    with pytest.raises(BrokerConfigsDamaged):
        plane.restart()
    plane.repair = True
    plane.restart()
    assert plane.broker_configs.was_repaired
    assert plane.broker_configs_file.kept == [DAMAGES[damage]]
    assert len(plane.events_of(BrokerConfigsLost)) == 1
    plane.repair = False
    plane.restart()
    assert not plane.broker_configs.properties.dynamic


def test_a_file_of_a_newer_version_is_left_alone(plane: Plane) -> None:
    plane.broker_configs_file.content = b'{"format": 2}'
    plane.repair = True
    with pytest.raises(NewerFormat):
        plane.restart()


def test_values_that_became_invalid_are_ignored_and_reported(plane: Plane) -> None:
    """The file may come from another version, and the static configuration may have changed."""
    plane.broker_configs_file.content = (
        b'{"format": 1, "cluster": {"log.roll.ms": "soon", "log.retention.bytes": "5"},'
        b' "broker": {"group.consumer.assignment.interval.ms": "99999"}, "client_metrics": {}}'
    )
    plane.restart()
    assert plane.broker_configs.properties.dynamic == {"log.retention.bytes": "5"}
    assert [event.name for event in plane.events_of(BrokerConfigIgnored)] == [
        "log.roll.ms",
        "group.consumer.assignment.interval.ms",
    ]


# Loggers and client metrics


def test_levels_of_loggers_are_changed_or_only_validated(plane: Plane) -> None:
    change = (LOGGER, "1", [("a.part", SET, "DEBUG")])
    assert alter_all(plane, change, validate_only=True) == [DONE]
    assert value(plane, LOGGER, "1", "a.part") == "INFO"
    assert alter_all(plane, change) == [DONE]
    assert value(plane, LOGGER, "1", "a.part") == "DEBUG"
    assert alter(plane, LOGGER, "1", ("a.part", DELETE, None)) == DONE
    assert value(plane, LOGGER, "1", "a.part") == "INFO"


def test_a_logger_that_is_refused_changes_none(plane: Plane) -> None:
    edits = (("a.part", SET, "DEBUG"), ("root", SET, "LOUD"))
    assert alter(plane, LOGGER, "1", *edits)[0] is ErrorCode.INVALID_CONFIG
    assert value(plane, LOGGER, "1", "a.part") == "INFO"


def test_subscriptions_survive_a_kill(plane: Plane) -> None:
    assert alter(plane, METRICS, "m", ("interval.ms", SET, "1000")) == DONE
    plane.restart()
    assert value(plane, METRICS, "m", "interval.ms") == "1000"
    assert listed(plane, METRICS) == [(METRICS, "m")]
    assert replace_all(plane, METRICS, "m") == DONE
    assert listed(plane, METRICS) == []


def test_the_number_of_subscriptions_is_limited(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_config_store, "CLIENT_METRICS_SUBSCRIPTIONS_MAX", 1)
    assert client_metrics.CLIENT_METRICS_SUBSCRIPTIONS_MAX > 1
    assert alter(plane, METRICS, "m", ("interval.ms", SET, "1000")) == DONE
    assert alter(plane, METRICS, "m", ("interval.ms", SET, "1001")) == DONE
    assert alter(plane, METRICS, "n", ("interval.ms", SET, "1000"))[0] is ErrorCode.INVALID_CONFIG
