"""Disk space: a full disk gives one line that names the place."""

import errno
import os
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.disk_full import DiskFull, disk_full_errors

pytestmark = pytest.mark.xdist_group("spark")


def fail(spark: SparkSession, words: str) -> None:
    """A fault that comes out of a task, as Spark tells it."""
    spark.sql(f"SELECT raise_error('{words}')").collect()


def test_a_full_disk_is_a_refusal_that_names_the_places(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled = tmp_path / "spilled"
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(spilled))
    out = tmp_path / "not" / "there yet"

    with (
        pytest.raises(DiskFull, match=r"spark\.local\.dir=DIR") as raised,
        disk_full_errors(spark, str(out)),
    ):
        fail(spark, "java.io.IOException: No space left on device")

    assert f"{spilled} has " in str(raised.value)
    assert f"{out} has " in str(raised.value)


def test_so_is_one_that_a_file_beside_the_tables_met(spark: SparkSession) -> None:
    with pytest.raises(DiskFull), disk_full_errors(spark, "s3a://bucket/results"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_any_other_fault_is_raised_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="of another kind"), disk_full_errors(spark, "out"):
        fail(spark, "of another kind")
