"""Does a job run as spark-submit runs it? Once, with the spark-submit that pyspark brings."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

from pipeline.java import NoJava, find_java, home_for_spark
from tests.pipeline.small_world import MINUTE, START_MS, small_world

pytestmark = pytest.mark.xdist_group("spark")

ROOT = Path(__file__).parents[2]
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def test_a_job_runs_in_the_session_of_spark_submit(tmp_path: Path) -> None:
    try:
        java = find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    small_world(tmp_path / "data")
    settings = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.app.name=submitted")
    command = [SUBMIT, "--master", "local[1]", "--driver-memory", "512m"]
    for setting in (*settings, "spark.sql.shuffle.partitions=1"):
        command += ["--conf", setting]
    job = ["offsets_as_of", "--from", tmp_path / "data", "--to", tmp_path / "out"]
    until = str(START_MS + 45 * MINUTE)

    done = subprocess.run(
        [*command, ROOT / "pipeline" / "submit.py", *job, "--until-ms", until],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_HOME": str(home_for_spark(java)),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert "offsets_as_of: 4 rows" in done.stdout
    rows = ds.dataset(tmp_path / "out" / "offsets_as_of", partitioning="hive").to_table()
    found = {(row["group"], row["partition"]): row["committed_offset"] for row in rows.to_pylist()}
    assert found["billing", 1] == 300
    assert found["billing", 2] == 440
