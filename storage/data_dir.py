"""Data directory: its lock, its identity, and why it may be refused.

The daemon opens it first: it makes the directory, takes the lock (one daemon at a time) and reads
or writes `meta.properties`, Kafka's file with one key of our own, so that cluster id and node id
stay the same over restarts. The lock is on the directory itself, so it holds when somebody removes
`.lock`, the file that names the holder. Each refusal is an exception with a message of one line for
the operator; the daemon prints it and exits. A refused start leaves nothing behind: `withdraw`
removes what was made here.
Kafka's counterparts: LogManager.lockLogDirs, MetaProperties, MetaPropertiesEnsemble.
"""

import contextlib
import errno
import fcntl
import os
import re
import uuid
from collections.abc import Callable
from uuid import UUID

from msgspec import Struct

from storage.disk import TEMPORARY, Disk, RealDisk, parent, read_file, replace_file
from storage.journal.write_ahead_pair import FILE_NAMES as WRITE_AHEAD_FILES
from storage.log.checkpoints import decode_uuid, encode_uuid
from storage.log.partition_folders import parse_folder_name

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
        super().__init__(
            f"data directory {path} is in use by {holder}: stop it first, or use another directory"
        )
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

    __slots__ = (
        "_fds",
        "_is_alive",
        "_made",
        "alive_at_ms",
        "identity",
        "is_new",
        "lost_identity",
        "path",
    )

    def __init__(
        self,
        path: str,
        node_id: int,
        *,
        disk: Disk | None = None,
        new_id: Callable[[], UUID] = random_id,
    ) -> None:
        """Make or open it; raises DataDirRefused, and then leaves nothing behind."""
        self.path = path
        self._made: list[str] = []
        self._fds: list[int] = []
        self._is_alive = False  # a daemon's, by `touch`
        self.alive_at_ms: int | None = None  # when a daemon last used it; None if none is known
        disk = disk or RealDisk()
        try:
            # Before anything is written: a directory of another node must stay unchanged.
            known = _read_identity(disk, path, node_id)
            self.is_new = known is None
            self._make_dirs()
            self._lock()
            # Partitions without an identity: moved here from elsewhere, or the file was lost.
            self.lost_identity = self.is_new and any(map(parse_folder_name, os.listdir(path)))  # noqa: PTH208
            self.identity = known or self._identify(disk, node_id, new_id)
        except BaseException as fault:
            self.withdraw()
            if isinstance(fault, OSError | ValueError):  # ValueError: a zero byte in the path
                raise DataDirUnusable(_cannot(path, fault)) from None
            raise

    def touch(self) -> None:
        """Record in the time of `.lock` that a daemon uses the directory. Raises OSError."""
        self._is_alive = True
        if self._fds:
            os.utime(self._fds[-1])

    def close(self) -> None:
        """Release the lock."""
        if self._is_alive:
            with contextlib.suppress(OSError):
                self.touch()
        while self._fds:
            os.close(self._fds.pop())

    def withdraw(self) -> None:
        """Remove what the constructor made, then close: for a start that is refused."""
        while self._made:
            made = self._made.pop()
            with contextlib.suppress(OSError):  # not there, or no longer empty
                os.rmdir(made) if made.endswith("/") else os.unlink(made)  # noqa: PTH106, PTH108
        self.close()

    def _make_dirs(self) -> None:
        missing: list[str] = []
        place = os.path.abspath(self.path)  # noqa: PTH100
        while not os.path.isdir(place) and place != parent(place):  # noqa: PTH112
            missing.append(place)
            place = parent(place)
        for folder in reversed(missing):
            os.makedirs(folder, mode=0o755, exist_ok=True)  # noqa: PTH103
            self._made.append(f"{folder}/")

    def _lock(self) -> None:
        """Lock the directory, and `.lock` in it, which stays behind unlocked at the end.

        The file's own lock is for an earlier Rollcall, which locks the file alone.
        """
        file = f"{self.path}/{LOCK}"
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._fds.append(directory)
        is_missing = not os.path.lexists(file)
        try:
            _flock(directory, is_directory=True)
            fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._fds.append(fd)
            if is_missing:
                self._made.append(file)
            _flock(fd)
        except BlockingIOError:
            self._made = []  # they belong to the holder
            raise DataDirLocked(self.path, _holder(file)) from None
        before = os.fstat(fd)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        if not is_missing:
            # A command that uses the directory must not look like a daemon.
            self.alive_at_ms = before.st_mtime_ns // 1_000_000
            os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _identify(self, disk: Disk, node_id: int, new_id: Callable[[], UUID]) -> Identity:
        file = f"{self.path}/{META_PROPERTIES}"
        # Once more, now that it is locked: another daemon may have come in between.
        known = _read_identity(disk, self.path, node_id)
        if known is not None:
            return known
        self._made += [file, file + TEMPORARY]
        identity = Identity(encode_uuid(new_id()), node_id, encode_uuid(new_id()))
        replace_file(disk, file, _encode(identity))
        return identity


def _cannot(path: str, fault: OSError | ValueError) -> str:
    reason = fault.strerror if isinstance(fault, OSError) else None
    where = os.path.abspath(path)  # noqa: PTH100  a relative one says nothing without its start
    return f"data directory {where} cannot be used: {reason or fault}"


def _flock(fd: int, *, is_directory: bool = False) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        # NFS locks only what is open for writing, which a directory never is: there the file's
        # lock has to do, as it does for Kafka everywhere.
        if not (is_directory and fault.errno in (errno.EBADF, errno.ENOTSUP, errno.EINVAL)):
            raise


def _holder(file: str) -> int | None:
    """The pid that the holder wrote, if it can be read."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        holder = os.pread(fd, 20, 0).strip()
    except OSError:
        return None
    finally:
        os.close(fd)
    return int(holder) if holder.isdigit() else None


def _read_identity(disk: Disk, path: str, node_id: int) -> Identity | None:
    """The identity in `meta.properties`; None if there is no such file."""
    file = f"{path}/{META_PROPERTIES}"
    if not disk.exists(file):
        return None
    is_ours = any(disk.exists(f"{path}/{name}") for name in WRITE_AHEAD_FILES)
    content = read_file(disk, file).decode("utf-8", "replace")
    identity = _decode(path, content, is_ours=is_ours)
    if identity.node_id != node_id:
        raise DataDirForeign(
            f"data directory {path} belongs to node {identity.node_id}, this is node {node_id} "
            f"(node.id in its {META_PROPERTIES})"
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


def _decode(path: str, content: str, *, is_ours: bool) -> Identity:
    """`is_ours`: the directory has files that no Kafka writes."""
    properties = dict(
        line.strip().split("=", 1)
        for line in content.splitlines()
        if "=" in line and line[0] != "#"
    )
    ours, kafkas = properties.get(_OUR_VERSION_KEY), properties.get("version", "")
    cluster_id, node = properties.get("cluster.id", ""), properties.get("node.id", "")
    if ours is None and cluster_id and not is_ours:
        raise DataDirForeign(
            f"data directory {path} belongs to an Apache Kafka broker (see its "
            f"{META_PROPERTIES}); choose another directory "
            f"(`rollcall offsets import --from {path}` copies its groups and offsets)"
        )
    for found, known, what in (
        (ours, str(DATA_VERSION), "data version"),
        (kafkas, _KAFKA_VERSION, "version"),
    ):
        if found and found.isdecimal() and found != known:
            raise DataDirForeign(
                f"data directory {path}: {META_PROPERTIES} has {what} {found}, this Rollcall "
                f"supports {known}: start it with the Rollcall that wrote it, or with a later one"
            )
    node_id = int(node) if re.fullmatch(r"[0-9]{1,10}", node) else None
    is_whole = decode_uuid(cluster_id) is not None and kafkas == _KAFKA_VERSION
    if ours != str(DATA_VERSION) or node_id is None or not is_whole:
        raise DataDirForeign(
            f"data directory {path}: {META_PROPERTIES} is damaged; restore it from a backup, or "
            "remove it: the directory then gets a new cluster id and keeps everything else"
        )
    return Identity(cluster_id, node_id, properties.get("directory.id", ""))
