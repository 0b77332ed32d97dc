"""Source check: is there something to read, of which kind, and how large is it? Without Spark.

Runs before an engine is chosen and started, so a mistyped path is reported at once. A path of
Hadoop's file systems can only be opened through Java: it is not checked here.
"""

import os
import socket
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.read.brokers import KAFKA
from pipeline.read.files import is_local, local_path
from pipeline.read.segments import NoSegments, segments
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC
from seams.operator_error import WrongInput

TOPICS: Final = (OFFSETS_TOPIC, HISTORY_TOPIC, LAG_TOPIC)
_MANIFEST: Final = "manifest.json"
_CLUSTERS: Final = "clusters"  # of a lake that has them by name
_OF_A_BROKER: Final = "meta.properties"  # a data directory of Rollcall's or Kafka's
_CONNECT_TIMEOUT_S: Final = 10.0


class SourceKind(StrEnum):
    BROKER = "a broker"
    REMOTE = "on a file system that only Java can read"
    LAKE = "a lake"
    SEGMENTS = "segments"


class CheckedSource(NamedTuple):
    """`size`: bytes of segments or of Parquet; None: unknown. `topics`: None: unknown."""

    kind: SourceKind
    size: int | None
    topics: frozenset[str] | None


class NoListener(WrongInput):
    """No broker listens at the address; the message is for people."""


def check_source(where: str) -> CheckedSource:
    """Raises NoSegments, NoListener, WrongInput."""
    if where.startswith(KAFKA):
        check_broker(where.removeprefix(KAFKA))
        return CheckedSource(SourceKind.BROKER, None, None)
    if not is_local(where):
        return CheckedSource(SourceKind.REMOTE, None, None)
    folder = local_path(where)
    if (folder / _MANIFEST).is_file() or (folder / _CLUSTERS).is_dir():
        size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
        return CheckedSource(SourceKind.LAKE, size, None)
    if not folder.exists():
        raise NoSegments(f"{where}: no such folder or file")
    size, topics = 0, set()
    for topic in TOPICS:
        try:
            size += sum(segment.size for segment in segments(where, topic))
        except NoSegments:
            continue
        topics.add(topic)
    if not topics:
        raise NoSegments(
            f"{where} has neither segments of {OFFSETS_TOPIC}, {HISTORY_TOPIC} or {LAG_TOPIC} "
            f"nor the {_MANIFEST} of a lake"
        )
    return CheckedSource(SourceKind.SEGMENTS, size, frozenset(topics))


def check_results(where: str) -> CheckedSource:
    """A folder of tables that jobs have written. Raises WrongInput."""
    if not is_local(where):
        return CheckedSource(SourceKind.REMOTE, None, None)
    folder = local_path(where)
    if not folder.is_dir():
        raise WrongInput(f"{where} has no table of a job: no such folder")
    size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    return CheckedSource(SourceKind.LAKE, size, None)


def check_broker(servers: str) -> None:
    """One of HOST:PORT,... must accept a connection. Raises NoListener, WrongInput."""
    faults = []
    for server in _each(servers):
        host, _, port = server.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise WrongInput(f"{KAFKA}{servers}: {server!r} is not HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
        except OSError as fault:
            faults.append(f"{server}: {fault.strerror or fault}")
        else:
            return
    raise NoListener("; ".join(faults))


def _each(servers: str) -> Iterable[str]:
    return [server.strip() for server in servers.rstrip("/").split(",")]


def check_output(out: str) -> None:
    """A folder, or where one can be made. Raises WrongInput."""
    if not is_local(out):
        return
    folder = local_path(out).absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        what = "is a file" if there == folder else f"cannot be made: {there} is a file"
        raise WrongInput(f"{out}: {what}; a folder is needed")
    for within in (folder, *folder.parents):
        if (within / _OF_A_BROKER).exists():
            raise WrongInput(f"{out}: {within} is the data directory of a broker; name another one")
    _check_writable(out, there)


def check_output_file(path: str) -> None:
    """A file, or where one can be made. Raises WrongInput."""
    if not is_local(path):
        return
    file = local_path(path).absolute()
    if file.is_dir():
        raise WrongInput(f"{path} is a folder; a file is needed")
    check_output(str(file.parent))


def _check_writable(out: str, there: Path) -> None:
    if not os.access(there, os.W_OK | os.X_OK):
        raise WrongInput(f"{out}: no permission to write to {there}")
