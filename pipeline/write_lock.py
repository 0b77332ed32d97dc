"""Write lock: one process at a time writes to a lake or to a folder of results.

A lock on a file in the folder, which ends with its process however that ends. Only local folders
have one: for others the caller is told, because two writers would overwrite each other's manifest.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pipeline.read.files import is_local, local_path
from seams.operator_error import OperationFailed

LOCK_FILE: Final = ".writer.lock"


class WriterBusy(OperationFailed):
    """Another process writes there; the message is for people."""


def lock_note(path: str) -> str | None:
    """What to tell people where nothing is locked."""
    if is_local(path):
        return None
    return (
        f"note: nothing checks that no other run writes to {path} (only local folders have a lock)"
    )


@contextmanager
def one_writer(path: str) -> Iterator[None]:
    """Around all that writes there; does nothing for other paths. Raises WriterBusy."""
    if not is_local(path):
        yield
        return
    folder = local_path(path)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise WriterBusy(f"{path}: another run writes there (process {holder})") from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield
