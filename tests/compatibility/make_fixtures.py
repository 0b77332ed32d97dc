"""Fixtures of 284470a: runs that commit's daemon and pipeline, and keeps what they wrote.

    .venv/bin/python -m tests.compatibility.make_fixtures [CHECKOUT]

CHECKOUT is a checkout of 284470a (`git worktree add --detach CHECKOUT 284470a`); without it one
is made and removed. It needs Git and a Java, takes some minutes, and writes written_by_284470a:

    stopped.tar.xz   a data directory after a clean stop: snapshots, rolled and cleaned segments
    killed.tar.xz    the same directory after another start, more writes and kill -9
    lake.tar.xz      `lake/`: what `rollcall pipeline run ingest` landed of `stopped`;
                     `results/`: what `run all` made of that
    *.json           what 284470a itself answers about each

What the clients do is in clients.py. Member ids, topic ids and times are different in each run, so
all files are made together. There is no reason to make them again: they are what users of that
commit have.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.compatibility.answers import (
    last_batch,
    loaded_records,
    missing,
    offline_answers,
    online_answers,
    produced_again,
)
from tests.compatibility.clients import IDEMPOTENT_TOPIC, FirstDay, SecondDay
from tests.compatibility.lake import as_of_answers, table_answers
from tests.compatibility.versions import (
    COMMIT,
    FIXTURES,
    HERE,
    SMALL_JOURNAL,
    Version,
    VersionDaemon,
    cut_to,
    pack,
    unpack,
)

WRITING = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.segment.bytes": "24576",
    "log.index.interval.bytes": "1024",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.segment.delete.delay.ms": "100",
    "rollcall.offsets.history.ms": "0",
    **SMALL_JOURNAL,
    "rollcall.checkpoint.bytes": "65536",
    "rollcall.checkpoint.idle.ms": "300",
    "rollcall.snapshot.bytes": "4096",
    "rollcall.lag.interval.ms": "200",
    "rollcall.lag.keepalive.ms": "1500",
    "rollcall.producer.snapshot.interval.ms": "500",
    "rollcall.log.format": "json",
    "rollcall.log.level": "debug",
}
# The second time nothing is synced but the journal, and no snapshot has what came since the start.
WRITING_TO_THE_JOURNAL = {
    **WRITING,
    "offsets.topic.segment.bytes": "104857600",
    "log.cleaner.enable": "false",
    "rollcall.checkpoint.bytes": "400000",
    "rollcall.checkpoint.idle.ms": "600000",
    "rollcall.snapshot.bytes": "1073741824",
    "rollcall.producer.snapshot.interval.ms": "600000",
}
JOURNALED = ("__consumer_offsets-*", "__group_history-*")
LATER_MS = 60_000  # between a fixture's last write and the time at which it is opened
TIMEOUT_S = 60
NOTHING: Mapping[str, int] = {}
SPARK = ("--master", "local[1]", "--set", "spark.sql.shuffle.partitions=1")


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        time.sleep(0.1)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def main() -> None:
    FIXTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, checkout(Path(scratch)) as source:
        written = Version(source)
        folder = Path(scratch) / "node"
        folder.mkdir()
        stopped_ms = write_and_stop(written, folder)
        pack("stopped", folder / "data")
        keep_answers(written, "stopped", stopped_ms)
        synced, killed_ms = write_and_kill(written, folder)
        pack("killed", folder / "data")
        keep_answers(written, "killed", killed_ms, synced)
        keep_lake(written, Path(scratch), stopped_ms)
    for path in sorted(FIXTURES.iterdir()):
        print(f"{path.name}: {path.stat().st_size} bytes")


@contextlib.contextmanager
def checkout(scratch: Path) -> Iterator[Path]:
    if len(sys.argv) > 1:
        given = Path(sys.argv[1]).resolve()
        head = subprocess.check_output(["git", "-C", given, "rev-parse", "HEAD"], text=True)
        assert head.startswith(COMMIT), f"{given} is at {head}"
        yield given
        return
    made = scratch / "checkout"
    git = ["git", "-C", str(HERE), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(made), COMMIT], check=True)
    try:
        yield made
    finally:
        subprocess.run([*git, "remove", "--force", str(made)], check=True)


def write_and_stop(written: Version, folder: Path) -> int:
    daemon = written.daemon(folder, now_ms(), WRITING)
    data = daemon.data_dir
    try:
        daemon.start()
        clients = FirstDay(daemon.bootstrap)
        clients.write()
        until(lambda: len({path.parent for path in data.glob("*/*.groups")}) == 2, "snapshots")
        until(lambda: "Cleaned" in daemon.log() or cleaned(data), "a cleaned log")
        until((data / "rollcall-producers.snapshot").exists, "known producers")
        time.sleep(2 * 1.5)  # each group's window of lag is written whole
        assert daemon.stop() == 0
    finally:
        daemon.close()
    clients.close()
    return now_ms()


def cleaned(data: Path) -> bool:
    checkpoint = data / "cleaner-offset-checkpoint"
    return checkpoint.exists() and "__consumer_offsets" in checkpoint.read_text()


def write_and_kill(written: Version, folder: Path) -> tuple[dict[str, int], int]:
    """Also the sizes that the files of journaled logs had when the daemon was ready."""
    daemon = written.daemon(folder, now_ms(), WRITING_TO_THE_JOURNAL)
    try:
        daemon.start()
        synced = {
            str(path.relative_to(daemon.data_dir)): path.stat().st_size
            for pattern in JOURNALED
            for path in sorted(daemon.data_dir.glob(f"{pattern}/*.log"))
        }
        clients = SecondDay(daemon.bootstrap)
        clients.write()
        time.sleep(1.5)
        daemon.kill()
    finally:
        daemon.close()
    clients.close()
    return synced, now_ms()


def keep_answers(
    written: Version, name: str, until_ms: int, synced: Mapping[str, int] = NOTHING
) -> None:
    """What the version that wrote it says when it opens it; twice, for it must not vary."""
    at_ms = until_ms + LATER_MS
    content: dict[str, object] = {"until_ms": until_ms, "at_ms": at_ms, "synced": dict(synced)}
    online = asked(written, name, until_ms, at_ms)
    assert asked(written, name, until_ms, at_ms) == online, "the answers depend on something"
    if synced:
        cut = asked(written, name, until_ms, at_ms, synced)
        unlike = set(missing(without_load(online), without_load(cut)))
        assert not unlike, unlike
    content |= online
    with tempfile.TemporaryDirectory() as scratch:
        content |= offline_answers(written, unpack(name, Path(scratch)), at_ms)
    with_none = load_without_snapshots(written, name, at_ms)
    assert with_none != content["loaded_records"], "its snapshots make no difference"
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    (FIXTURES / f"{name}.json").write_text(text + "\n")


def without_load(answers: dict[str, object]) -> dict[str, object]:
    """How much a load reads may depend on where the log was cut."""
    return {name: value for name, value in answers.items() if name != "loaded_records"}


def asked(
    written: Version, name: str, until_ms: int, at_ms: int, synced: Mapping[str, int] = NOTHING
) -> dict[str, object]:
    with opened(written, name, at_ms, synced) as daemon:
        batch = last_batch(daemon.data_dir / f"{IDEMPOTENT_TOPIC}-0")
        answers = online_answers(daemon, until_ms)
        answers["produced_again"] = produced_again(daemon, IDEMPOTENT_TOPIC, batch)
        return answers


@contextlib.contextmanager
def opened(
    written: Version, name: str, at_ms: int, synced: Mapping[str, int]
) -> Iterator[VersionDaemon]:
    with tempfile.TemporaryDirectory() as scratch:
        daemon = written.daemon(Path(scratch), at_ms)
        cut_to(unpack(name, daemon.data_dir), synced)
        try:
            yield daemon.start()
        finally:
            daemon.close()


def load_without_snapshots(written: Version, name: str, at_ms: int) -> object:
    with tempfile.TemporaryDirectory() as scratch:
        daemon = written.daemon(Path(scratch), at_ms)
        unpack(name, daemon.data_dir)
        for path in daemon.data_dir.glob("*/*.groups"):
            path.unlink()
        try:
            return loaded_records(daemon.start())
        finally:
            daemon.close()


def keep_lake(written: Version, scratch: Path, until_ms: int) -> None:
    at_ms = until_ms + LATER_MS
    data = unpack("stopped", scratch / "landed")
    out = scratch / "pipeline"
    lake, results = out / "lake", out / "results"
    for job, source, to in (("ingest", data, lake), ("all", lake, results)):
        words = ("pipeline", "run", job, "--from", source, "--to", to)
        done = written.run(at_ms, *words, "--until", str(at_ms), *SPARK)
        assert done.returncode == 0, done.stdout + done.stderr
    pack("lake", out)
    as_of = written.run(
        at_ms, "pipeline", "as-of", "--from", lake, "--at", str(until_ms), "--json", *SPARK
    )
    assert as_of.returncode == 0, as_of.stderr
    content = {
        "until_ms": until_ms,
        "at_ms": at_ms,
        "as_of": as_of_answers(as_of.stdout),
        "tables": table_answers(lake, results),
    }
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    (FIXTURES / "lake.json").write_text(text + "\n")
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
