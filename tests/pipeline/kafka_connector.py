"""Spark's Kafka connector for tests: the jars that kafka_connector.lock names, from Maven Central.

They come as Kafka's tools do (tests/interop/kafka_tools.py): without an installed Java tool, each
checked against its SHA-256. Spark takes them by `spark.jars`, so that it asks for nothing itself.
"""

from functools import cache
from pathlib import Path

import pytest

from tests.interop.kafka_tools import NoKafkaTools, bring_jars

LOCK = Path(__file__).with_name("kafka_connector.lock")


@cache
def connector_jars() -> tuple[str, str]:
    """(the value of `spark.jars`, why it is empty)"""
    try:
        return ",".join(map(str, bring_jars(LOCK))), ""
    except NoKafkaTools as missing:
        return "", str(missing)


def require_connector() -> None:
    """A skipped test that says why, where the jars cannot be had."""
    jars, reason = connector_jars()
    if not jars:
        pytest.skip(f"Spark's Kafka connector cannot be had here: {reason}")
