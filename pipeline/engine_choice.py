"""Engine choice: does an order run on Spark, or is its input small enough for the local engine?

Spark is for what the local engine cannot read, for what was asked of it, and for what is large.
Starting Spark alone takes more CPU than the local engine needs for a day of a small cluster.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from pipeline.read.source_check import CheckedSource, SourceKind
from seams.operator_error import WrongInput

LOCAL_MAX_BYTES: Final = {SourceKind.SEGMENTS: 256 << 20, SourceKind.LAKE: 64 << 20}
"""Input up to which `auto` takes the local engine: bytes of segments, or of Parquet."""


class Engine(StrEnum):
    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class Choice(NamedTuple):
    """`why` is for people."""

    engine: Engine
    why: str

    def line(self) -> str:
        return f"engine: {self.engine} ({self.why})"


def choose_engine(
    wanted: Engine,
    source: CheckedSource,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    needs_kafka: bool = False,
) -> Choice:
    """Raises WrongInput."""
    given = _asks_for_spark(master, remote, settings or {})
    only_spark = _needs_spark(source, needs_kafka=needs_kafka)
    if wanted is Engine.LOCAL:
        if given is not None:
            raise WrongInput(f"--engine local and {given} contradict each other")
        if only_spark is not None:
            raise WrongInput(f"--engine local cannot do this: {only_spark}")
        return Choice(Engine.LOCAL, "as asked")
    if wanted is Engine.SPARK:
        return Choice(Engine.SPARK, "as asked")
    if (why := given or only_spark) is not None:
        return Choice(Engine.SPARK, why)
    if SparkSession.getActiveSession() is not None:
        return Choice(Engine.SPARK, "a Spark session is running")
    most = LOCAL_MAX_BYTES[source.kind]
    size = source.size or 0
    said = f"{_mebibytes(size)} of {source.kind}, the local engine's limit is {_mebibytes(most)}"
    return Choice(Engine.LOCAL if size <= most else Engine.SPARK, said)


def _asks_for_spark(
    master: str | None, remote: str | None, settings: Mapping[str, str]
) -> str | None:
    if master is not None:
        return "--master"
    if remote is not None:
        return "--remote"
    if settings:
        return "--set"
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return "spark-submit"
    return None


def _needs_spark(source: CheckedSource, *, needs_kafka: bool) -> str | None:
    if source.kind in LOCAL_MAX_BYTES:
        return "--acknowledge talks to a broker through Spark" if needs_kafka else None
    return f"the source is {source.kind}"


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB" if size < 10 << 20 else f"{size >> 20} MiB"
