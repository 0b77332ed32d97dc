"""As-of CSV: offsets of an instant are accepted by Kafka's own tool and by ours.

Names that CSV must quote are among them. The tools are those of the tests with real clients; where
they cannot be had, our own import is still tested.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from cli.commands import cli
from seams.java_hash import partition_of
from tests.broker.daemon import Daemon
from tests.interop.kafka_tools import CONSUMER_GROUPS, require_kafka_tools
from tests.pipeline.logs import NOON_MS, commit, write_log

pytestmark = pytest.mark.xdist_group("spark")

LONG_TOPIC = "a-topic-with-a-rather-long-name"
GROUPS = ("billing", 'odd, "very"', "# no comment", "a group with a rather long name")
TOPICS = ("orders", LONG_TOPIC)
THEN = {(group, topic, n): 3 + n for group in GROUPS for topic in TOPICS for n in (0, 1)}
AT_MS = NOON_MS + 2
"""Each batch of a log is a millisecond after the one before it: see `write_log`."""

LINES = [
    '"# no comment","a-topic-with-a-rather-long-name",0,3',
    '"# no comment","a-topic-with-a-rather-long-name",1,4',
    '"# no comment",orders,0,3',
    '"# no comment",orders,1,4',
    '"a group with a rather long name","a-topic-with-a-rather-long-name",0,3',
    '"a group with a rather long name","a-topic-with-a-rather-long-name",1,4',
    '"a group with a rather long name",orders,0,3',
    '"a group with a rather long name",orders,1,4',
    'billing,"a-topic-with-a-rather-long-name",0,3',
    'billing,"a-topic-with-a-rather-long-name",1,4',
    "billing,orders,0,3",
    "billing,orders,1,4",
    '"odd, ""very""","a-topic-with-a-rather-long-name",0,3',
    '"odd, ""very""","a-topic-with-a-rather-long-name",1,4',
    '"odd, ""very""",orders,0,3',
    '"odd, ""very""",orders,1,4',
]
"""As kafka-consumer-groups writes them: Jackson quotes what is long, and what begins with #."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Offsets that moved on after the instant."""
    where = tmp_path_factory.mktemp("as-of")
    logs = {partition_of(group, 50) for group in GROUPS}
    for log in logs:
        places = [place for place in THEN if partition_of(place[0], 50) == log]
        then = [commit(*place, THEN[place]) for place in places]
        later = [commit(*place, 9) for place in places]
        write_log(where, log, [then, then, then, later])
    return where


@pytest.fixture
def daemon(start_daemon) -> Daemon:
    """With topics that are long enough for all of these offsets."""
    daemon = start_daemon({})
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    for created in admin.create_topics([NewTopic(topic, 2) for topic in TOPICS]).values():
        created.result(60)
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for n in range(2 * 2 * 10):
        producer.produce(TOPICS[n // 2 % 2], b"x", partition=n % 2)
    assert producer.flush(60) == 0
    return daemon


def rollcall(*words: str | Path) -> str:
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.stdout


def as_of(lake: Path, file: Path, *words: str) -> Path:
    rollcall("pipeline", "as-of", "--from", lake, "--at", str(AT_MS), "--csv", file, *words)
    return file


def held(daemon: Daemon, *words: str) -> list[str]:
    """What the daemon has, as our export writes it."""
    csv = rollcall("offsets", "export", "--csv", "-", "--bootstrap", daemon.bootstrap, *words)
    return csv.splitlines()


def test_our_import_takes_it(
    spark: SparkSession, lake: Path, daemon: Daemon, tmp_path: Path
) -> None:
    assert spark is not None  # the commands use the session that runs
    into = ("--bootstrap", daemon.bootstrap)

    every = as_of(lake, tmp_path / "all.csv")
    rollcall("offsets", "import", "--from", every, *into)
    assert every.read_text().splitlines() == LINES
    assert held(daemon) == LINES

    csv = as_of(lake, tmp_path / "one.csv", "--group", "billing")
    rollcall("offsets", "import", "--from", csv, "--for-group", "billing", "--overwrite", *into)
    assert csv.read_text().splitlines() == [line[8:] for line in LINES if line[:8] == "billing,"]
    assert held(daemon) == LINES


def test_kafkas_own_tool_takes_it(
    spark: SparkSession, lake: Path, daemon: Daemon, tmp_path: Path
) -> None:
    assert spark is not None
    tools = require_kafka_tools()

    def reset(file: Path, *groups: str) -> None:
        named = [word for group in groups for word in ("--group", group)]
        done = tools.run(
            *(CONSUMER_GROUPS, "--bootstrap-server", daemon.bootstrap, "--reset-offsets"),
            *(*named, "--from-file", file, "--execute"),
        )
        assert done.exit_code == 0, done.out + done.err

    reset(as_of(lake, tmp_path / "all.csv"), *GROUPS)
    assert held(daemon) == LINES

    rollcall(
        *("offsets", "import", "--from", moved(tmp_path / "moved.csv"), "--overwrite"),
        *("--bootstrap", daemon.bootstrap),
    )
    reset(as_of(lake, tmp_path / "one.csv", "--group", "billing"), "billing")
    assert held(daemon, "--group", "billing") == [line for line in LINES if line[:8] == "billing,"]


def moved(file: Path) -> Path:
    """Where the group went on to."""
    file.write_text("billing,orders,0,8\nbilling,orders,1,8\n")
    return file
