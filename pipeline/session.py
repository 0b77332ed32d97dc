"""Spark session: started on this machine, or the one of spark-submit.

An existing session (of spark-submit, a notebook, Spark Connect) is used unchanged. Otherwise one is
started, with the Python of this process for its workers and loopback addresses for itself. The
user's settings (`settings`, spark-defaults.conf) take precedence.

The Kafka connector is not part of pyspark: if a job needs it and no jars are configured, Spark is
told to download the one that matches its version. On closed networks its jars go into `spark.jars`.
"""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import current_thread, main_thread
from typing import Final
from urllib.parse import urlsplit

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pipeline.java import find_java, home_for_spark
from pipeline.read.data_source import RollcallLog
from pipeline.spark_log import stderr_to_log
from rollcall.program import program_path
from seams.operator_error import WrongInput

APP_NAME: Final = "rollcall-pipeline"

WHOLE_CONNECTOR: Final = "4.0.0"
"""The version of Spark 4 whose connector is in Maven Central with all that it needs."""

_PACKAGES: Final = "spark.jars.packages"
_WORKER: Final = "spark.executorEnv."
_CONNECT_PORT: Final = 15_002
_CONNECT_TIMEOUT_S: Final = 10

_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Small enough for a task's sort to fit into memory; of little input Spark makes fewer of them.
    "spark.sql.shuffle.partitions": "64",
    # The getters of Arrow's Java vectors check bounds and nulls of each value. Spark checks nulls
    # itself, and asks for the rows of a batch only: up to a quarter of a row's time is saved.
    "spark.driver.defaultJavaOptions": (
        "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
    ),
}
_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",  # days and hours in tables are UTC's
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


class NoServer(WrongInput):
    """No Spark Connect there; the message is for people."""


class NoConnector(WrongInput):
    """Spark did not start with the Kafka connector that it was to bring; the message is for
    people."""


def check_java(remote: str | None) -> None:
    """Before Spark starts, which takes seconds: raises NoJava if it cannot on this machine."""
    if remote is None and not _submitted() and SparkSession.getActiveSession() is None:
        find_java()


def start_session(
    master: str | None = None,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    kafka: bool = False,
) -> SparkSession:
    """The running session, or a new one, with our data source registered. Raises NoJava, NoServer.

    `master` as spark-submit takes it, local[*] if there is none; `remote` a Spark Connect address;
    with `kafka` the connector is brought too.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        builder = SparkSession.builder.appName(APP_NAME)
        given = dict(_ALWAYS)
        if remote is not None:
            _check_server(remote)
            builder = builder.remote(remote)
        else:
            given |= {f"{_WORKER}{name}": value for name, value in _worker_environment().items()}
            if not _submitted():
                master = master or "local[*]"
                os.environ["JAVA_HOME"] = str(home_for_spark(find_java()))
            if master is not None:
                builder = builder.master(master)
                if master.startswith("local"):
                    given |= _LOCAL
                    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
                    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
            if kafka and not names_jars(settings or {}):
                given[_PACKAGES] = connector_coordinates()
        for name, value in {**given, **(settings or {})}.items():
            builder = builder.config(name, value)
        is_ours = remote is None and not _submitted()
        with _own_interrupt(), _own_stderr(is_ours=is_ours), _handed_on(is_ours=is_ours):
            try:
                running = builder.getOrCreate()
            except Exception as fault:
                if given.get(_PACKAGES) is None or not _is_unresolved(fault):
                    raise
                raise NoConnector(connector_text()) from None
    running.dataSource.register(RollcallLog)
    return running


@contextmanager
def _handed_on(*, is_ours: bool) -> Iterator[None]:
    """A JVM that is started here hands its environment to its workers; ours stays as it was."""
    handed_on = _worker_environment() if is_ours else {}
    before = {name: os.environ.get(name) for name in handed_on}
    os.environ.update(handed_on)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _worker_environment() -> dict[str, str]:
    """Lets Spark's Python workers find our modules, by whose names they unpickle functions.

    They run as `python -m`: without PYTHONSAFEPATH modules in the working directory come first.
    """
    program = program_path()
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    path = [program, *(other for other in others if other != program)]
    return {"PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """PySpark replaces the handler of SIGINT; this keeps the one that was set before."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if before is not signal.default_int_handler and current_thread() is main_thread():
        signal.signal(signal.SIGINT, before)


def _own_stderr(*, is_ours: bool) -> AbstractContextManager[None]:
    """A JVM that is started here prints to the log."""
    return stderr_to_log() if is_ours else nullcontext()


def _check_server(remote: str) -> None:
    """Spark Connect's own client would try for ten minutes, and say nothing. Raises NoServer."""
    url = urlsplit(remote)
    if url.scheme != "sc" or not url.hostname:
        raise NoServer(f"{remote!r} is not a Spark Connect address such as sc://spark:15002")
    try:
        socket.create_connection(
            (url.hostname, url.port or _CONNECT_PORT), _CONNECT_TIMEOUT_S
        ).close()
    except OSError as fault:
        raise NoServer(f"{remote}: {fault.strerror or fault}") from None


def _is_unresolved(fault: Exception) -> bool:
    """Java ended before it told its port: it has looked for the packages and not found them."""
    return isinstance(fault, PySparkRuntimeError) and "JAVA_GATEWAY_EXITED" in str(fault)


def connector_text() -> str:
    """What to do if the connector cannot be had."""
    return (
        f"Spark could not load its Kafka connector, {connector_coordinates()}: "
        f"pip install 'pyspark=={WHOLE_CONNECTOR}', whose connector is in Maven Central, or name "
        "its jars with --set spark.jars=... (`rollcall pipeline doctor` checks it)"
    )


def pyspark_version() -> str:
    return str(pyspark.__version__)


def connector_coordinates() -> str:
    """Of the Kafka connector for the Spark that is installed here."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


def names_jars(settings: Mapping[str, str]) -> bool:
    """Whether jars are configured: here, in spark-defaults.conf, or beside Spark's own."""
    if not {_PACKAGES, "spark.jars"}.isdisjoint(settings):
        return True
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    if any(home.glob("jars/spark-sql-kafka-*.jar")):
        return True
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    lines = defaults.read_text().splitlines() if defaults.is_file() else []
    return any(line.split("=")[0].split()[:1] in ([_PACKAGES], ["spark.jars"]) for line in lines)


def _submitted() -> bool:
    """Whether spark-submit started this process and says where to run."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
