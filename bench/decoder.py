"""Decoder of the pipeline's source: rows per second on one core, by kind of log, without Spark.

    .venv/bin/python -m bench.decoder [--megabytes 8] [--shapes 1,10,100,...] [--profile]

The logs resemble real ones: hundreds of groups and topics with names of different lengths, some
metadata, tombstones, group records, transactions with their markers, values of every version; in
batches of 1, 10, 100 and 1,000 records, of mixed sizes, and compressed with each codec. A loop in
plain Python over the daemon's own readers is measured beside it. CPU time of one process, the best
of several runs; the logs are measured alternately, so that other load affects all of them. The
compiled build reads usual commits in C; with ROLLCALL_PURE=1 numpy reads all.
"""

import argparse
import cProfile
import pstats
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from coordinator.group import CommittedOffset
from coordinator.records import (
    decode_record,
    offset_commit_key,
    offset_commit_value,
)
from pipeline.decode.compiled_commits import compiled_reader
from pipeline.read.data_source import read_piece
from pipeline.read.segments import pieces, segments
from pipeline.tables import COMMITS
from protocol.names import OFFSETS_TOPIC, GroupId, TopicName
from storage.api import Record
from storage.batch.record_batch import (
    encode_batch,
    iter_batches,
    read_header,
    read_records,
    with_offsets,
)
from storage.batch.rewrite import recompressed

NOW_MS = 1_780_000_000_000
DISTINCT = 8_000
"""Records that are generated; the log repeats their batches with further offsets."""

Sizes = Callable[[random.Random], int]
SHAPES: dict[str, tuple[Sizes, int]] = {
    "1": (lambda _: 1, 0),
    "10": (lambda _: 10, 0),
    "100": (lambda _: 100, 0),
    "1000": (lambda _: 1_000, 0),
    "mixed": (lambda rng: int(rng.paretovariate(0.8)) % 2_000 + 1, 0),
    "gzip": (lambda _: 100, 1),
    "snappy": (lambda _: 100, 2),
    "lz4": (lambda _: 100, 3),
    "zstd": (lambda _: 100, 4),
}
"""By name: how many records a batch has, and its codec."""


class World:
    """Groups, topics and what they commit."""

    def __init__(self, seed: int = 7) -> None:
        self.rng = random.Random(seed)
        self.groups = [f"{'app-' * self.rng.randint(1, 9)}{n}" for n in range(400)]
        self.topics = [f"{'t' * self.rng.randint(3, 40)}.{n}" for n in range(150)]
        self.offset = 0

    def record(self) -> Record:
        rng = self.rng
        self.offset += rng.randint(0, 50)
        group = rng.choice(self.groups)
        if rng.random() < 0.01:
            key = b"\0\2" + len(group).to_bytes(2) + group.encode()
            return Record(key, None)  # a group that was deleted
        topic = TopicName(rng.choice(self.topics))
        key = offset_commit_key(GroupId(group), topic, rng.randint(0, 99))
        if rng.random() < 0.01:
            return Record(key, None)
        metadata = f"host-{rng.randint(0, 99)}" if rng.random() < 0.02 else ""
        committed = CommittedOffset(self.offset, rng.randint(0, 30), metadata, NOW_MS)
        return Record(key, offset_commit_value(committed, 3 if rng.random() < 0.5 else 4))

    def batch(self, size: int, codec: int) -> bytes:
        records = [self.record() for _ in range(size)]
        batch = encode_batch(records, 0, NOW_MS)
        return batch if not codec else recompressed(batch, read_header(batch), codec, None)


def make_log(folder: Path, name: str, size: int) -> int:
    """Write a segment of about this size; return its number of records."""
    sizes, codec = SHAPES[name]
    world, made, distinct = World(), [], 0
    while distinct < max(DISTINCT, 1):
        count = sizes(world.rng)
        made.append((count, world.batch(count, codec)))
        distinct += count
    where = folder / name / f"{OFFSETS_TOPIC}-0"
    where.mkdir(parents=True)
    offset = written = 0
    with (where / f"{0:020}.log").open("wb") as file:
        while written < size:
            count, batch = world.rng.choice(made)
            written += file.write(with_offsets(batch, offset, 0))
            offset += count
    return offset


def reader_in_use() -> str:
    """For the first line of a result: which of the two readers it is of."""
    return "usual commits in C" if compiled_reader() is not None else "numpy alone"


def decode(folder: Path) -> float:
    """Rows a second of CPU time, through the source's own reading of a segment."""
    (segment, *_) = segments(str(folder), OFFSETS_TOPIC)
    cut = pieces(segment)[:2]
    begin = time.process_time()
    rows = sum(b.num_rows for piece in cut for b in read_piece(piece, COMMITS))
    return rows / (time.process_time() - begin)


def row_loop(folder: Path, limit: int = 4 << 20) -> float:
    """The same in plain Python, over the daemon's own readers."""
    (segment, *_) = segments(str(folder), OFFSETS_TOPIC)
    few = pieces(segment, limit)[0]
    content = Path(segment.path).read_bytes()[few.start : few.end]
    rows = 0
    begin = time.process_time()
    for at, _ in iter_batches(content):
        for fields in read_records(content, at):
            rows += decode_record(fields[2], fields[3]) is not None
    return rows / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    names = options.shapes.split(",")
    best: dict[str, float] = dict.fromkeys(names, 0.0)
    slow: dict[str, float] = dict.fromkeys(names, 0.0)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        records = {name: make_log(folder, name, options.megabytes << 20) for name in names}
        if options.profile:
            for name in names:
                decode(folder / name)
                with cProfile.Profile() as profile:
                    decode(folder / name)
                pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        for turn in range(options.rounds):
            for name in names:
                best[name] = max(best[name], decode(folder / name))
                if turn < 2:
                    slow[name] = max(slow[name], row_loop(folder / name))
        print(reader_in_use())
        for name in names:
            size = (options.megabytes << 20) / records[name]
            print(
                f"{name:>8}  {size:5.0f} B a record  {best[name] / 1e6:5.2f} M rows/s of CPU"
                f"  row loop {slow[name] / 1e6:5.2f}  ({best[name] / slow[name]:.1f} times)"
            )


if __name__ == "__main__":
    main()
