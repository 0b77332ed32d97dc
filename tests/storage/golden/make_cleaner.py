"""Golden cleaning: records what a real Kafka's cleaner does: tests/storage/golden/cleaner/.

    .venv/bin/python -m tests.storage.golden.make_cleaner --driver DRIVER [--port 21180]

DRIVER is `start DIR PORT [k=v ...]`, `stop DIR`, `topics ...`. The log is made here (`inputs`) and
put into a topic's folder of a stopped broker, as if the broker had been killed: so it reads all of
it again and knows the producers and the aborted transactions. Then its cleaner runs. `before/` has
the sealed segments as they were, `after/` as the broker has left them.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from storage.batch.compression import GZIP, LZ4, SNAPPY, ZSTD
from storage.batch.record_batch import DELETE_HORIZON_FLAG, encode_batch, read_header
from storage.batch.rewrite import assemble, recompressed, restamped
from tests.storage.cleaner.rig import ABORT, COMMIT, Partition, records_of

FOLDER = Path(__file__).with_name("cleaner")
RETENTION_MS = 86_400_000
FUTURE_MS = 4_000_000_000_000


def inputs(now_ms: int) -> Partition:
    """A log with something of everything; the last segment is the active one.

    Its time is the recording's: producers must not have expired.
    """
    log = Partition()
    log.now_ms = now_ms
    log.write(a=1, b=1, c=1)
    log.write(at=now_ms + 1, a=2)
    log.write(at=now_ms + 2, gone=1, kept=1)
    log.write(at=now_ms + 3, gone=None)
    _with_horizon(log, now_ms - 1, past=None, alive=1)
    _with_horizon(log, FUTURE_MS, future=None, superseded=1)
    log.produce(7, epoch=1, sequence=0, p=1)
    log.produce(7, epoch=1, sequence=1, p=2, q=1)
    log.produce(8, sequence=5, q=2)
    log.roll()
    log.in_transaction(9, t=1, u=1)
    log.write(t=0)
    log.mark(9, COMMIT)
    log.in_transaction(10, t=2, v=1)
    log.mark(10, ABORT)
    log.mark(11, COMMIT)  # of records that are gone
    log.in_transaction(9, u=2)
    log.mark(9, COMMIT)
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        plain = encode_batch(
            records_of({f"z{codec}": "x" * 50, f"y{codec}": "y" * 50}), log.end, now_ms + 9
        )
        log.append(recompressed(plain, read_header(plain), codec, None))
    log.write(z1=1, z2=2)
    log.roll()
    plain = encode_batch(records_of({"l": 1, "m": None, "n": 1}), log.end, now_ms)
    stamp = now_ms + 99
    log.append(restamped(plain, read_header(plain), max_timestamp=stamp, log_append_time=True))
    _without_key(log)
    log.write(superseded=2, p=3, q=3, z3=None)
    log.write(at=now_ms + 50, n=2, c=2)
    log.write(at=now_ms + 51, last=None)
    log.write(at=now_ms + 52, last=1)
    log.write(at=now_ms + 53, c=3)
    log.roll()
    log.write(active=1)
    return log


def _with_horizon(log: Partition, horizon_ms: int, **values: object) -> None:
    plain = encode_batch(records_of(values), log.end, horizon_ms)
    header = read_header(plain)
    attributes = header.attributes | DELETE_HORIZON_FLAG
    changed = header._replace(attributes=attributes, max_timestamp=log.now_ms)
    log.append(assemble(changed, plain[61:]))


def _without_key(log: Partition) -> None:
    plain = encode_batch(records_of({"k": 1}), log.end, log.now_ms)
    body = b"\x0e\x00\x00\x00\x01\x02v\x00"
    log.append(assemble(read_header(plain)._replace(batch_length=49 + len(body)), body))


def files_of(log: Partition) -> dict[str, bytes]:
    return {Path(segment.path).name: segment.pread(0, segment.size) for segment in log.log.segments}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--port", type=int, default=21_180)
    options = parser.parse_args()
    driver = options.driver
    made = files_of(inputs(int(time.time() * 1_000) - 3_600_000))
    with tempfile.TemporaryDirectory() as home:
        after = _cleaned(driver, options.port, Path(home), made)
    active = max(made)
    for name, files in (("before", made), ("after", after)):
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file, content in files.items():
            if name == "before" or file < active:
                (folder / file).write_bytes(content)


def _cleaned(driver: str, port: int, home: Path, made: dict[str, bytes]) -> dict[str, bytes]:
    start = [driver, "start", str(home), str(port)]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    command = [driver, "topics", "--bootstrap-server", f"127.0.0.1:{port}", "--create"]
    command += ["--topic", "bench", "--partitions", "1"]
    for config in (
        "cleanup.policy=compact",
        "min.cleanable.dirty.ratio=0",
        f"delete.retention.ms={RETENTION_MS}",
        "file.delete.delay.ms=1",
    ):
        command += ["--config", config]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([driver, "stop", str(home)], check=True)
    data = home / "data"
    folder = data / "bench-0"
    for file in folder.glob("0*"):
        file.unlink()
    for name, content in made.items():
        (folder / name).write_bytes(content)
    (data / ".kafka_cleanshutdown").unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    subprocess.run([*start, "log.cleaner.backoff.ms=200"], check=True, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not re.search(rb"cleaned log bench-0", (home / "server.log").read_bytes()):
            if time.monotonic() > deadline:
                sys.exit((home / "server.log").read_text()[-4_000:])
            time.sleep(0.2)
    finally:
        subprocess.run([driver, "stop", str(home)], check=True)
    return {file.name: file.read_bytes() for file in folder.glob("0*.log")}


if __name__ == "__main__":
    main()
