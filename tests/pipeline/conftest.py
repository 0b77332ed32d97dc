"""One small Spark for all tests of the pipeline, started by the first that asks for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.java import NoJava, find_java
from pipeline.session import start_session
from tests.pipeline.kafka_connector import connector_jars
from tests.pipeline.quick import QUICK


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
