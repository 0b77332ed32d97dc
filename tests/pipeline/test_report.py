"""Report: a directory's tables as a page for people, plain files, and offsets to reset to.

One small data directory goes through the commands, as a person would type them, within this process
and on the Spark of the tests.
"""

import csv
import json
import re
import shutil
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from cli.commands import cli
from pipeline.jobs import JOBS, JobInput
from pipeline.read.sources import PipelineSource
from pipeline.result_tables import RESULTS
from tests.pipeline.small_world import MINUTE, NASTY, START_MS, small_world

pytestmark = pytest.mark.xdist_group("spark")

UNTIL = START_MS + 3 * 60 * MINUTE


def rollcall(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, and with the `results` of all jobs over it."""
    assert spark is not None  # the commands use the session that runs
    home = tmp_path_factory.mktemp("world")
    small_world(home / "data")
    words = ["pipeline", "run", "all", "--from", home / "data", "--to", home / "results"]
    ran = rollcall(*words, "--until", str(UNTIL))
    assert ran.exit_code == 0, ran.output
    assert {line.partition(":")[0] for line in ran.stdout.splitlines()} == set(RESULTS)
    return home


@pytest.fixture(scope="module")
def reported(world: Path) -> Path:
    ran = rollcall(
        "pipeline", "report", "--from", world / "results", "--to", world / "report.html",
        "--until", str(UNTIL), "--csv", world / "csv", "--json", world / "json",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    return world


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "data", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_has_charts_and_figures_of_every_kind(reported: Path) -> None:
    html = (reported / "report.html").read_text()
    page = _Page()
    page.feed(html)

    said = "\n".join(page.text)
    assert html.count("<figure") >= 6
    for fact in (
        "1 group needs you", "761 commits of 2 groups and 4 partitions, ",
        " is ERR: nothing is committed any more on orders-0 and 1 more partition; had ",
        "Stalled partitions: 2", "Commit storms: 1", "Hot partitions: 2",
        "shaky /10.0.0.2: left 3 times within ten minutes (session_expired).",
        "400 commits in a minute; usual at this hour: 3, give or take 0.",
        "the committed offset went from 1,299 to 20, 1,279 back.",
        "reset-<i>tool</i>", "session expired", "never", "resets backwards",
    ):  # fmt: skip
        assert fact in said, fact


def test_charts_and_sentences_lead_to_the_sections_of_their_groups(reported: Path) -> None:
    html = (reported / "report.html").read_text()
    page = _Page()
    page.feed(html)

    anchors = set(re.findall(r'<section id="([^"]+)"', html))
    assert {link.removeprefix("#") for link in page.links} <= anchors
    assert {"g-1", "g-2", "anomalies", "sources"} <= anchors
    assert page.links.count("#g-1") > 3


def test_the_page_says_what_each_job_saw(reported: Path, tmp_path: Path) -> None:
    html = (reported / "report.html").read_text()
    sources = html[html.index('id="sources"') :]
    for said in ("lag_trend", "__group_lag, __group_history, __consumer_offsets", "rows"):
        assert said in sources, said


def test_a_job_whose_topics_are_missing_says_so(world: Path) -> None:
    """As of a real Kafka's log: no history, no samples."""
    home = world / "kafkas"
    shutil.copytree(world / "data" / "__consumer_offsets-7", home / "d" / "__consumer_offsets-7")
    words = ["--from", home / "d", "--to", home / "r", "--until", str(UNTIL)]
    ran = rollcall("pipeline", "run", "all", *words, "--report", home / "p.html")

    assert ran.exit_code == 0, ran.output
    lines = [line for line in ran.stdout.splitlines() if "not run" in line]
    assert {line.partition(":")[0] for line in lines} == {"lag_trend", "group_health"}
    assert all("has no __group_lag" in line for line in lines)
    html = (home / "p.html").read_text()
    assert html.count("has no __group_lag") >= 2
    assert "has no __group_history" in html


def test_names_are_text_and_never_markup(reported: Path) -> None:
    html = (reported / "report.html").read_text()
    page = _Page()
    page.feed(html)

    assert NASTY in page.text  # in a heading, a table and a chart
    assert not {"b>search", "i", "script", "img", "link", "iframe", "object"} & page.tags
    assert "<b>search" not in html


def test_the_page_asks_nothing_of_a_network(reported: Path) -> None:
    html = (reported / "report.html").read_text()
    page = _Page()
    page.feed(html)

    outside = re.sub(r'xmlns(:xlink)?="[^"]*"', "", html)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", outside)
    assert all(link.startswith("#") for link in page.links)
    assert len(html) < 500_000


def test_a_page_says_what_it_leaves_out(world: Path) -> None:
    words = ["--from", world / "results", "--to", world / "one.html", "--top", "1"]
    rollcall("pipeline", "report", *words, "--until", str(UNTIL))

    assert "Shown: 1 of 2 groups, the worst first." in (world / "one.html").read_text()


def test_a_page_of_a_span_has_the_spans_rows_alone(world: Path) -> None:
    words = ["--from", world / "results", "--to", world / "late.html", "--csv", world / "late"]
    since = START_MS + 89 * MINUTE
    rollcall("pipeline", "report", *words, "--since", str(since), "--until", str(UNTIL))

    with (world / "late" / "commit_rate.csv").open() as file:
        minutes = {int(row["minute_ms"]) for row in csv.DictReader(file)}
    assert minutes == {since, since + MINUTE, since + 2 * MINUTE}


def test_each_table_is_a_file_of_csv_and_one_of_json(reported: Path) -> None:
    for name, table in RESULTS.items():
        with (reported / "csv" / f"{name}.csv").open() as file:
            cells = list(csv.reader(file))
        lines = (reported / "json" / f"{name}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]

        assert cells[0] == table.schema.names
        assert len(cells) - 1 == len(rows) > 0
        for shown, row in zip(cells[1:], rows, strict=True):
            assert shown == ["" if value is None else str(value) for value in row.values()]


def test_a_rerun_gives_the_same_rows(reported: Path) -> None:
    before = {path.name: path.read_text() for path in (reported / "csv").iterdir()}

    for job in ("audit", "offsets_as_of"):
        words = ["--from", reported / "data", "--to", reported / "results", "--until", str(UNTIL)]
        assert rollcall("pipeline", "run", job, *words).exit_code == 0
    words = ["--from", reported / "results", "--to", reported / "again.html"]
    rollcall("pipeline", "report", *words, "--until", str(UNTIL), "--csv", reported / "again")

    assert {path.name: path.read_text() for path in (reported / "again").iterdir()} == before
    assert (reported / "again.html").read_text() == (reported / "report.html").read_text()


def test_tables_are_as_they_are_declared(spark: SparkSession, world: Path) -> None:
    job_input = JobInput(PipelineSource(spark, str(world / "data")), START_MS, UNTIL)

    made = {name: table for job in JOBS.values() for name, table in job.run(job_input).items()}

    assert set(made) == set(RESULTS)
    for name, table in made.items():
        declared = from_arrow_schema(RESULTS[name].schema)
        assert [(column.name, column.dataType) for column in table.schema] == [
            (column.name, column.dataType) for column in declared
        ], name
        # Spark reads a frame that goes on to the end again for each row: the square of the rows.
        plan = table._jdf.queryExecution().analyzed().toString().lower()
        frames = re.findall(r"windowframe\(\w+, (.*?), unboundedfollowing", plan)
        assert set(frames) <= {"unboundedpreceding$()"}, name


# Offsets as of an instant.


def test_offsets_of_an_instant_can_be_imported(world: Path) -> None:
    at = START_MS + 45 * MINUTE + 2_000
    words = ["--from", world / "data", "--at", datetime.fromtimestamp(at / 1000, UTC).isoformat()]
    asked = rollcall("pipeline", "as-of", *words, "--csv", world / "then.csv")
    assert asked.exit_code == 0, asked.output

    there = world / "imported"
    brought = rollcall("offsets", "import", "--from", world / "then.csv", "--data-dir", there)
    assert brought.exit_code == 0, brought.output
    exported = rollcall("offsets", "export", "--data-dir", there, "--csv", world / "back.csv")
    assert exported.exit_code == 0, exported.output

    with (world / "back.csv").open() as file:
        assert sorted(csv.reader(file)) == [
            [NASTY, "pages", "0", "4500"],
            ["billing", "orders", "0", "450"],
            ["billing", "orders", "1", "300"],
            ["billing", "orders", "2", "450"],
        ]


def test_offsets_of_one_group_for_kafkas_tool_and_programs(world: Path) -> None:
    words = ["--from", world / "data", "--at", str(UNTIL), "--group", "billing"]

    shown = rollcall("pipeline", "as-of", *words, "--csv", world / "b.csv", "--json").stdout

    (group,) = json.loads(shown)["groups"]
    assert [(offset["partition"], offset["offset"]) for offset in group["offsets"]] == [
        (0, 20),
        (1, 300),
    ]
    assert (world / "b.csv").read_text() == "orders,0,20\norders,1,300\n"


def test_offsets_of_all_groups_for_people(world: Path) -> None:
    words = ["--from", world / "data", "--at", str(START_MS + 1)]

    shown = rollcall("pipeline", "as-of", *words).stdout.splitlines()

    assert [line.split()[:4] for line in shown] == [
        ["GROUP", "TOPIC", "PARTITION", "OFFSET"],
        ["billing", "orders", "0", "0"],
        ["billing", "orders", "1", "0"],
    ]


# What is refused.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "audit", "--from", "{}/nowhere", "--to", "{}/x"], "nowhere"),
        (
            ["run", "lag_trend", "--from", "{}/data/__consumer_offsets-7", "--to", "{}/x"],
            "does not have it",
        ),
        (["run", "all", "--from", "{}/nowhere", "--to", "{}/x"], "no such folder"),
        (
            ["run", "all", "--from", "{}/old", "--to", "{}/x"],
            "has format version 9; this program reads versions 1 and 2",
        ),
        (["report", "--from", "{}/nowhere", "--to", "{}/x.html"], "no such folder"),
        (["as-of", "--from", "{}/data", "--at", "1970-01-02"], "no group had a known offset then"),
    ],
)
def test_a_place_with_nothing_to_read_is_named(world: Path, words: list[str], says: str) -> None:
    (world / "old").mkdir(exist_ok=True)
    (world / "old" / "manifest.json").write_text('{"version": 9, "runs": [], "read": {}}')

    ran = rollcall("pipeline", *(word.format(world) for word in words))

    assert ran.exit_code == 2, ran.output
    *_, line = ran.stderr.splitlines()
    assert says in line
