"""Whose is this data directory, and is it ours alone? Its lock, its identity, and its refusals.

`broker/main.py` opens it first of all: it makes the directory, takes the lock (one daemon at a
time) and reads or writes `meta.properties`, Kafka's file with one key of our own, so that cluster
id and node id stay the same over restarts. Each refusal is an exception with a message of one line
for the operator; the daemon prints it and exits.
Kafka's counterparts: LogManager.lockLogDirs, MetaProperties, MetaPropertiesEnsemble.
"""

import fcntl
import os
import uuid
from collections.abc import Callable
from uuid import UUID

from msgspec import Struct

from storage.checkpoints import decode_uuid, encode_uuid
from storage.disk import Disk, RealDisk, read_file, replace_file

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
DATA_VERSION = 1

_KAFKA_VERSION = "1"
_OUR_VERSION_KEY = "rollcall.data.version"


class DataDirRefused(Exception):
    """The directory cannot be used; the message says why in one line."""


class DataDirUnusable(DataDirRefused):
    """It cannot be made, read or written."""


class DataDirLocked(DataDirRefused):
    """Another daemon runs on it; `pid` is the holder's, if it could be read."""

    def __init__(self, path: str, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"data directory {path} is in use by {holder}")
        self.pid = pid


class DataDirForeign(DataDirRefused):
    """It belongs to a real Kafka, to another node, or to another version of Rollcall."""


class Identity(Struct, frozen=True):
    """What `meta.properties` keeps."""

    cluster_id: str
    node_id: int
    directory_id: str


def random_id() -> UUID:
    """A UUID whose 22 characters do not begin with a dash, which command lines trip over."""
    while True:
        candidate = uuid.uuid4()
        if not encode_uuid(candidate).startswith("-"):
            return candidate


class DataDir:
    """The directory, locked until `close`."""

    __slots__ = ("_lock_fd", "identity", "path")

    def __init__(
        self,
        path: str,
        node_id: int,
        *,
        disk: Disk | None = None,
        new_id: Callable[[], UUID] = random_id,
    ) -> None:
        """Make or open it; raises DataDirRefused."""
        self.path = path
        try:
            os.makedirs(path, mode=0o755, exist_ok=True)  # noqa: PTH103
            self._lock_fd = _lock(path)
        except OSError as fault:
            raise DataDirUnusable(_cannot(path, fault)) from None
        try:
            self.identity = _identify(disk or RealDisk(), path, node_id, new_id)
        except BaseException as fault:
            self.close()
            if isinstance(fault, OSError):
                raise DataDirUnusable(_cannot(path, fault)) from None
            raise

    def close(self) -> None:
        """Let another daemon have it."""
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)


def _cannot(path: str, fault: OSError) -> str:
    return f"data directory {path} cannot be used: {fault.strerror or fault}"


def _lock(path: str) -> int:
    """Take the lock; its file names the holder, and stays behind unlocked at the end."""
    fd = os.open(f"{path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).strip()
        os.close(fd)
        raise DataDirLocked(path, int(holder) if holder.isdigit() else None) from None
    except OSError:
        os.close(fd)
        raise
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _identify(disk: Disk, path: str, node_id: int, new_id: Callable[[], UUID]) -> Identity:
    file = f"{path}/{META_PROPERTIES}"
    if not disk.exists(file):
        identity = Identity(encode_uuid(new_id()), node_id, encode_uuid(new_id()))
        replace_file(disk, file, _encode(identity))
        return identity
    identity = _decode(path, read_file(disk, file).decode("utf-8", "replace"))
    if identity.node_id != node_id:
        raise DataDirForeign(
            f"data directory {path} belongs to node {identity.node_id}, this is node {node_id}"
        )
    return identity


def _encode(identity: Identity) -> bytes:
    lines = {
        "cluster.id": identity.cluster_id,
        "directory.id": identity.directory_id,
        "node.id": identity.node_id,
        _OUR_VERSION_KEY: DATA_VERSION,
        "version": _KAFKA_VERSION,
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items()).encode()


def _decode(path: str, content: str) -> Identity:
    properties = dict(
        line.strip().split("=", 1)
        for line in content.splitlines()
        if "=" in line and line[0] != "#"
    )
    ours = properties.get(_OUR_VERSION_KEY)
    if ours is None and "cluster.id" in properties:
        raise DataDirForeign(
            f"data directory {path} belongs to an Apache Kafka broker; choose another directory"
        )
    if ours is not None and ours != str(DATA_VERSION):
        raise DataDirForeign(
            f"data directory {path} has data version {ours}, this Rollcall knows {DATA_VERSION}"
        )
    cluster_id, node = properties.get("cluster.id", ""), properties.get("node.id", "")
    if decode_uuid(cluster_id) is None or not node.isdecimal() or ours is None:
        raise DataDirForeign(f"data directory {path}: {META_PROPERTIES} is damaged")
    return Identity(cluster_id, int(node), properties.get("directory.id", ""))
