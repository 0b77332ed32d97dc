"""How is Spark started for our jobs? A session on this machine, or whichever spark-submit gives.

A session that somebody else made (spark-submit, a notebook, Spark Connect) is taken as it is; only
where there is none one is started, with the Python of this process for its workers and loopback
addresses for itself. What a user sets (`settings`, spark-defaults.conf) has the last word.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from pipeline.java import find_java, home_for_spark
from pipeline.source import RollcallLog

APP_NAME: Final = "rollcall-pipeline"

_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",  # days and hours in tables are UTC's
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def start_session(
    master: str | None = None,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running session, or a new one, with our data source registered. Raises NoJava.

    `master` as spark-submit takes it, local[*] if there is none; `remote` a Spark Connect address.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        builder = SparkSession.builder.appName(APP_NAME)
        given = dict(_ALWAYS)
        if remote is not None:
            builder = builder.remote(remote)
        else:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
            if master is not None or not _submitted():
                master = master or "local[*]"
                builder = builder.master(master)
            if (master or "").startswith("local"):
                given |= _LOCAL
                os.environ["JAVA_HOME"] = str(home_for_spark(find_java()))
        for name, value in {**given, **(settings or {})}.items():
            builder = builder.config(name, value)
        running = builder.getOrCreate()
    running.dataSource.register(RollcallLog)
    return running


def _submitted() -> bool:
    """Whether spark-submit started this process and says where to run."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
