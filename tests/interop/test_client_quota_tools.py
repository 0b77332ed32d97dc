"""Client quotas: kafka-configs sets, shows and removes them; a real client notices that it is
throttled."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer, ThrottleEvent

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.kafka_tools import CONFIGS, Finished, require_kafka_tools

Tool = Callable[..., Finished]
USER, CLIENT, IP = (("--entity-type", kind) for kind in ("users", "clients", "ips"))
EVERY_OTHER = "--entity-default"


@pytest.fixture
def configs(daemon: Daemon) -> Tool:
    tools = require_kafka_tools()

    def run(*arguments: str) -> Finished:
        done = tools.run(CONFIGS, "--bootstrap-server", daemon.bootstrap, *arguments)
        assert done.exit_code == 0, done.err
        return done

    return run


def test_kafka_configs_sets_shows_and_removes_quotas(daemon: Daemon, configs: Tool) -> None:
    amy = (*USER, "--entity-name", "amy")
    configs("--alter", *amy, "--add-config", "request_percentage=12.5,producer_byte_rate=1024")
    configs("--alter", *CLIENT, EVERY_OTHER, "--add-config", "consumer_byte_rate=99999999")
    both = (*amy, *CLIENT, EVERY_OTHER)
    configs("--alter", *both, "--add-config", "controller_mutation_rate=2.5")
    configs("--alter", *IP, EVERY_OTHER, "--add-config", "connection_creation_rate=1000")
    configs("--alter", *amy, "--delete-config", "request_percentage")
    daemon.kill()
    daemon.start()

    assert "'amy' are producer_byte_rate=1024.0" in configs("--describe", *amy).out
    shown = configs("--describe", *CLIENT).out
    assert "the default client-id are consumer_byte_rate=9.9999999E7" in shown
    assert "controller_mutation_rate=2.5" in configs("--describe", *USER, *CLIENT).out
    shown = configs("--describe", *IP).out
    assert "the default ip are connection_creation_rate=1000.0" in shown


def test_a_producer_beyond_its_quota_waits(daemon: Daemon, configs: Tool) -> None:
    configs(
        "--alter", *CLIENT, "--entity-name", "greedy", "--add-config", "producer_byte_rate=10000"
    )
    create_topic(daemon.bootstrap, "t", 1)
    throttles: list[ThrottleEvent] = []
    producer = Producer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "client.id": "greedy",
            "throttle_cb": throttles.append,
        }
    )
    for _ in range(4):
        producer.produce("t", b"x" * 30_000)
        assert producer.flush(60) == 0
    producer.poll(0)

    assert any(event.throttle_time > 0 for event in throttles)
