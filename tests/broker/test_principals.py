"""Principals over a socket: the history names the user that a listener has authenticated."""

import json
from typing import Any
from urllib.request import urlopen

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from config.jaas import PLAIN_MODULE
from tests.broker.daemon import TEST_SETTINGS
from tests.conftest import StartDaemon

USERS = f'{PLAIN_MODULE} required user_alice="hunter2" user_bob="hunter3";'


def test_members_and_tools_are_named_with_their_users(start_daemon: StartDaemon) -> None:
    settings = {
        **TEST_SETTINGS,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "rollcall.log.format": "json",
    }
    daemon = start_daemon(settings, listen=None)

    def client(user: str, password: str) -> dict[str, str]:
        return {
            "bootstrap.servers": daemon.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        }

    alice, bob = client("alice", "hunter2"), client("bob", "hunter3")
    producer = Producer(alice)
    producer.produce("orders", b"first")
    assert producer.flush(60) == 0
    consumer = Consumer({**alice, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    (message,) = consumer.consume(1, 60)
    assert message.value() == b"first"
    consumer.close()
    reset = ConsumerGroupTopicPartitions("g", [TopicPartition("orders", 0, 0)])
    admin = AdminClient(bob)
    for done in admin.alter_consumer_group_offsets([reset]).values():
        done.result(20)

    def events(what: str = "") -> list[dict[str, Any]]:
        with urlopen(f"http://{daemon.admin}/api/history?group=g{what}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["events"]
        return found

    history = events()
    (joined,) = [event for event in history if event["type"] == "member_joined"]
    assert joined["who"]["principal"] == "User:alice"
    (left,) = [event for event in history if event["type"] == "members_removed"]
    assert left["members"][0]["who"]["principal"] == "User:alice"
    (moved,) = events("&offsets=true")
    assert moved["asker"]["principal"] == "User:bob"
    assert '"principal": "User:alice"' in daemon.log()
