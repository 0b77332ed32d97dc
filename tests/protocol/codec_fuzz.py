"""Codec fuzzer: hostile frames and odd answers for the compiled codec, beside its oracle.

    ROLLCALL_PURE=0 .venv/bin/python -m tests.protocol.codec_fuzz [--frames 10000000] [--seed 1]

Each frame begins as a sound request, and is then cut, lengthened, spliced, or has bytes replaced by
those that a decoder is afraid of. The compiled reader and the generated Python must return equal
requests, or raise the same exception with the same text. For each request so read, the two writers
get an answer, which may have a value that does not fit. Exit code 1 and the frame at a difference.
"""

# Before anything of the program is imported.
import tests.build  # noqa: F401  # isort: skip
import argparse
import os
import sys
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

from broker.net.error_codes import _compiled
from coordinator.group import CommittedOffset
from protocol.codec import _request_layouts, _response_layouts, encode_request
from protocol.compiled_codec import function_in_c, reader_in_c, writer_in_c
from protocol.headers import RequestHeader
from protocol.messages import REQUESTS, RESPONSES
from protocol.messages.offset_fetch import CommittedPartitions, OffsetFetchResponse
from protocol.names import ApiKey
from protocol.reader_source import compile_reader
from protocol.writer_source import compile_writer
from tests.protocol.samples import sample

AFRAID_OF: Final = (
    *(b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x80\x00", b"\x7f\xff\xff\xff"),
    *(b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x01"),
    *(b"\xed\xa0\x80", b"\xc3"),
)
SAMPLES: Final = 40  # sound frames of each API and version
ODD_VALUES: Final = (
    *(None, -1, 1 << 15, 1 << 31, 1 << 63, -(1 << 63) - 1, True, 1.5),
    *("", "x" * 32_768, "\ud800", b"", (), (None,)),
)


_HAS_ERRORS: Final = function_in_c("has_errors")


def has_errors(message: object) -> bool | None:
    """As the compiled codec says it; None: it leaves that to Python."""
    assert _HAS_ERRORS is not None
    found: bool | None = _HAS_ERRORS(message)
    return found


class Pair(NamedTuple):
    """The codec of one API in one version, twice, and sound frames."""

    api_key: ApiKey
    version: int
    read: Callable[..., Any]
    read_oracle: Callable[..., Any]
    write: Callable[..., Any]
    write_oracle: Callable[..., Any]
    errors: Callable[..., list[int]]
    frames: list[bytes]

    def has_errors(self, message: object) -> bool | None:
        """None: the message is too odd to say it."""
        try:
            return bool(self.errors(message))
        except (AttributeError, TypeError):
            return None


class Fuzzer:
    """Draws from one seed; `in_c` counts the frames that were not handed over to the oracle."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.frames = self.in_c = self.read = self.written_in_c = self.written = 0
        self.handed_over = self.searched = 0
        self.pairs = [
            self._pair(api_key, version)
            for api_key in compiled_apis()
            for version in REQUESTS[api_key].VERSIONS
        ]

    def _pair(self, api_key: ApiKey, version: int) -> Pair:
        read = compile_reader(_request_layouts(api_key, version), bounded=True)
        write = compile_writer(_response_layouts(api_key, version), framed=True)
        header = RequestHeader(api_key, version, 7, "fuzz")
        cls = REQUESTS[api_key]
        frames = [
            encode_request(header, sample(cls, version, self.random))[4:] for _ in range(SAMPLES)
        ]
        return Pair(
            api_key, version,
            reader_in_c(api_key, version, lambda: self._counted(read)), read,
            writer_in_c(api_key, version, lambda: self._counted(write)), write,
            _compiled(RESPONSES[api_key]), frames,
        )  # fmt: skip

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: object) -> object:
            self.handed_over += 1
            return function(*arguments)

        return counted

    def run(self, frames: int) -> None:
        """That many frames. Raises AssertionError at a difference."""
        for _ in range(frames):
            pair = self.random.choice(self.pairs)
            buf, start, end = self.hostile(pair)
            before = self.handed_over
            found = outcome(pair.read, buf, start, end)
            expected = outcome(pair.read_oracle, buf, start, end)
            if found != expected:
                where = f"{pair.api_key!r} v{pair.version}, {buf.hex()} [{start}:{end}]"
                raise AssertionError(f"{where}: {found}, not {expected}")
            self.frames += 1
            self.in_c += self.handed_over == before
            self.read += expected[0] == "read"
            if self.frames % 8 == 0:
                self._write(pair)

    def hostile(self, pair: Pair) -> tuple[bytes, int, int]:
        """A buffer with something before and after a frame that is perhaps not sound."""
        random = self.random
        frame = bytearray(random.choice(pair.frames))
        for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
            kind, at = (
                random.randrange(6),
                random.randrange(4, len(frame) + 1) if len(frame) > 4 else 4,
            )
            if kind == 0:
                del frame[at:]
            elif kind == 1:
                frame[at : at + 1] = bytes((random.randrange(256),))
            elif kind == 2:
                frame[at:at] = random.choice(AFRAID_OF)
            elif kind == 3:
                afraid = random.choice(AFRAID_OF)
                frame[at : at + len(afraid)] = afraid
            elif kind == 4:
                other = random.choice(pair.frames)
                frame[at:] = other[random.randrange(len(other)) :]
            else:
                del frame[at : at + random.randrange(1, 5)]
        before, after = (
            random.choice((b"", b"", b"xy")),
            random.choice((b"", b"\0" * 9, b"\xff" * 9)),
        )
        end = len(before) + len(frame)
        return before + bytes(frame) + after, len(before), end

    def _write(self, pair: Pair) -> None:
        random = self.random
        message: Any = sample(RESPONSES[pair.api_key], pair.version, random)
        if pair.api_key is ApiKey.OFFSET_FETCH and random.random() < 0.7:
            self._use_stand_ins(message)
        spoilt = message
        while random.random() < 0.5:  # a part of it, at some depth
            name = random.choice(spoilt.__struct_fields__)
            inner = getattr(spoilt, name)
            if isinstance(inner, tuple) and inner and hasattr(inner[0], "__struct_fields__"):
                spoilt = inner[0]
                continue
            setattr(spoilt, name, random.choice(ODD_VALUES))
            break
        before = self.handed_over
        found, expected = outcome(pair.write, 7, message), outcome(pair.write_oracle, 7, message)
        assert found == expected, (
            f"{pair.api_key!r} v{pair.version}, {message}: {found}, not {expected}"
        )
        self.written += 1
        self.written_in_c += self.handed_over == before
        searched = has_errors(message)
        # It ends at the first code that it finds, whatever is odd behind that.
        allowed = {None: (None, True, False), True: (None, True), False: (False,)}[searched]
        assert pair.has_errors(message) in allowed, f"{message}: {searched}"
        self.searched += searched is not None

    def _use_stand_ins(self, message: OffsetFetchResponse) -> None:
        """What the coordinator answers with in place of lists of partitions; some are odd."""
        random = self.random
        for topic in (topic for group in message.groups for topic in group.topics):
            commits = [
                random.choice((None, CommittedOffset(p.committed_offset, 3, p.metadata or "")))
                for p in topic.partitions
            ]
            indexes = tuple(partition.partition_index for partition in topic.partitions)
            if indexes and random.random() < 0.3:
                place, odd = random.randrange(len(indexes)), random.choice(ODD_VALUES)
                offset, metadata = random.choice(((odd, ""), (7, odd)))
                commits[place] = CommittedOffset(offset, 3, metadata)  # type: ignore[arg-type]
                indexes = random.choice((indexes, (*indexes[1:], 1 << 31)))
            topic.partitions = CommittedPartitions(indexes, commits)  # type: ignore[assignment]


def compiled_apis() -> list[ApiKey]:
    """The APIs whose requests are read in C; none without a compiled build."""
    try:
        import rollcall_codec
    except ImportError:
        return []
    return [ApiKey(api_key) for api_key in rollcall_codec.READERS]


def outcome(function: Callable[..., Any], *arguments: object) -> tuple[str, object, object]:
    """What it returned, or what it raised."""
    try:
        result = function(*arguments)
    except Exception as fault:
        return "raised", type(fault), str(fault)
    return "read", type(result), (repr(result), result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    arguments = parser.parse_args()
    if not compiled_apis():
        print("There is no compiled build: make install")
        sys.exit(2)
    fuzzer = Fuzzer(arguments.seed)
    print(f"seed {arguments.seed}, {len(fuzzer.pairs)} APIs and versions", flush=True)
    slice_ = 250_000
    while fuzzer.frames < arguments.frames:
        try:
            fuzzer.run(min(slice_, arguments.frames - fuzzer.frames))
        except AssertionError as difference:
            print(difference)
            sys.exit(1)
        print(
            f"{fuzzer.frames:,} frames, {fuzzer.read:,} sound, {fuzzer.in_c:,} read in C;"
            f" {fuzzer.written:,} answers, {fuzzer.written_in_c:,} written in C",
            flush=True,
        )


if __name__ == "__main__":
    main()
