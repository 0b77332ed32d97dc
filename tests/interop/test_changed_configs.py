"""Changed configs: real admin clients change configs, which survive kill -9."""

import socket
import subprocess
from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka.admin import ConfigResource as KafkaPythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient

from storage.open import GROUP_CONFIGS_FILE
from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic

SESSION_TIMEOUT = "consumer.session.timeout.ms"
WITHIN_S = 60


def alter(
    daemon: Daemon, kind: ResourceType, name: str, operation: AlterConfigOpType, **configs: str
) -> None:
    """Config names have _ for dots."""
    edits = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=operation)
        for key, value in configs.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=edits)
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(WITHIN_S)


def described(daemon: Daemon, kind: ResourceType, name: str) -> Mapping[str, str]:
    resource = ConfigResource(kind, name)
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    entries = admin.describe_configs([resource])[resource].result(WITHIN_S)
    return {key: entry.value for key, entry in entries.items()}


def test_librdkafka_gives_a_group_configs_that_survive_a_kill(daemon: Daemon) -> None:
    alter(
        daemon, ResourceType.GROUP, "g", AlterConfigOpType.SET, consumer_session_timeout_ms="50000"
    )
    with pytest.raises(KafkaException) as refused:
        alter(
            daemon, ResourceType.GROUP, "g", AlterConfigOpType.SET, consumer_session_timeout_ms="1"
        )
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG

    daemon.kill()
    daemon.start()

    assert described(daemon, ResourceType.GROUP, "g")[SESSION_TIMEOUT] == "50000"
    alter(daemon, ResourceType.GROUP, "g", AlterConfigOpType.DELETE, consumer_session_timeout_ms="")
    assert described(daemon, ResourceType.GROUP, "g")[SESSION_TIMEOUT] == "45000"


def test_librdkafka_changes_the_configs_of_a_topic(daemon: Daemon) -> None:
    create_topic(daemon.bootstrap, "t", 2)
    alter(daemon, ResourceType.TOPIC, "t", AlterConfigOpType.SET, max_message_bytes="2000")
    alter(daemon, ResourceType.TOPIC, "t", AlterConfigOpType.APPEND, cleanup_policy="compact")

    daemon.kill()
    daemon.start()

    configs = described(daemon, ResourceType.TOPIC, "t")
    assert configs["max.message.bytes"] == "2000"
    assert configs["cleanup.policy"] == "delete,compact"
    assert configs["retention.ms"] == "-1"  # set when the topic was created


def test_kafka_python_lists_what_has_configs(daemon: Daemon) -> None:
    admin = KafkaAdminClient(bootstrap_servers=daemon.bootstrap)
    try:
        group = KafkaPythonResource(ConfigResourceType.GROUP, "g", {SESSION_TIMEOUT: "50000"})
        assert admin.alter_configs([group]) == {"group": {"g": "OK"}}
        assert admin.list_config_resources()["group"] == ["g"]
    finally:
        admin.close()


def test_a_damaged_file_of_group_configs_ends_the_start_in_one_line(daemon: Daemon) -> None:
    alter(
        daemon, ResourceType.GROUP, "g", AlterConfigOpType.SET, consumer_session_timeout_ms="50000"
    )
    assert daemon.stop() == 0
    path = daemon.data_dir / GROUP_CONFIGS_FILE
    damaged = path.read_bytes().replace(b"50000", b"51000")
    path.write_bytes(damaged)

    ended = subprocess.run(
        daemon.command(), capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    line = ended.stderr.splitlines()[-1]

    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert GROUP_CONFIGS_FILE in line
    assert "crc32 does not fit" in line
    assert "--repair" in line

    daemon.arguments = ["--repair"]
    daemon.start()
    assert described(daemon, ResourceType.GROUP, "g")[SESSION_TIMEOUT] == "45000"
    assert path.with_name(f"{GROUP_CONFIGS_FILE}.damaged").read_bytes() == damaged


def test_librdkafka_changes_the_brokers_configs_which_survive_a_kill(daemon: Daemon) -> None:
    alter(daemon, ResourceType.BROKER, "1", AlterConfigOpType.SET, max_connections_per_ip="3")
    crowd = [socket.create_connection((daemon.host, daemon.port), WITHIN_S) for _ in range(4)]
    try:
        assert crowd[-1].recv(1) == b""  # closed: too many from this address
    finally:
        for connection in crowd:
            connection.close()

    daemon.kill()
    daemon.start()

    assert described(daemon, ResourceType.BROKER, "1")["max.connections.per.ip"] == "3"
    with pytest.raises(KafkaException) as refused:
        alter(daemon, ResourceType.BROKER, "1", AlterConfigOpType.SET, num_partitions="3")
    assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
