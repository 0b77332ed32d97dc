"""Full disk: a one-line message that names the folder, instead of Spark's stack trace.

While a job runs, data that does not fit into memory is in `spark.local.dir` (default: /tmp), and
results are in their own folder.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.read.files import is_local, local_path
from seams.operator_error import OperationFailed

LOCAL_DIR: Final = "spark.local.dir"
_SPARKS_OWN: Final = "/tmp"
_FULL: Final = "No space left on device"


class DiskFull(OperationFailed):
    """A disk is full; the message names it, and what to do, for people."""


@contextmanager
def disk_full_errors(spark: SparkSession, out: str) -> Iterator[None]:
    """Around what writes to `out`. Raises DiskFull instead of Spark's own fault."""
    spilled = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get(LOCAL_DIR, _SPARKS_OWN) or ""
    places = [place for place in (*spilled.split(","), out) if place and is_local(place)]
    try:
        yield
    except (PySparkException, Py4JError, OSError) as fault:
        if _FULL not in str(fault):
            raise
        free = ", ".join(f"{place} has {_free_mib(place)} MiB free" for place in places)
        raise DiskFull(
            f"a disk is full; now {free}. A job spills data that does not fit into memory to "
            f"{LOCAL_DIR}: name a larger disk with --set {LOCAL_DIR}=DIR"
        ) from fault


@contextmanager
def local_disk_full_errors(spilled: str, out: str) -> Iterator[None]:
    """The same around what the local engine does."""
    from duckdb import Error

    places = [place for place in (spilled, out) if place and is_local(place)]
    try:
        yield
    except (Error, OSError) as fault:
        if _FULL not in str(fault):
            raise
        free = ", ".join(f"{place} has {_free_mib(place)} MiB free" for place in places)
        raise DiskFull(
            f"a disk is full; now {free}. What does not fit into memory goes to {spilled}: name a "
            "larger disk with TMPDIR"
        ) from fault


def _free_mib(place: str) -> int:
    there = local_path(place).absolute()
    found = next(folder for folder in (there, *there.parents, Path("/")) if folder.exists())
    return shutil.disk_usage(found).free >> 20
