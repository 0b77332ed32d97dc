"""Fixtures: one small Spark for all tests of the pipeline, started by the first that needs it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.java import NoJava, find_java
from pipeline.session import start_session
from tests.pipeline.kafka_connector import connector_jars
from tests.pipeline.quick import QUICK


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A job takes seconds, but a starved machine may take minutes over the start of a Java."""
    for item in items:
        if "tests/pipeline" in item.path.as_posix() and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    session = start_session(
        "local[2]",
        settings={**QUICK, "spark.jars": connector_jars()[0]},
    )
    yield session
    session.stop()
