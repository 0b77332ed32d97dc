"""Worker imports: keeps what a Spark worker has imported from being read or searched for each task.

Before each task a worker invalidates the caches of the import system. Until Python 3.12 an importer
of a zip file then reads the whole directory of the archive again. Spark puts its own `pyspark.zip`
on the workers' path, with more than a thousand entries: 0.14 s of CPU for each task, as much as
decoding half a million commits. An archive that has not changed need not be read again.

After each task a worker collects garbage, and so looks at every object of every module: 0.02 s, as
much as decoding a hundred thousand commits. Modules stay, so the collector need not see them.
"""

import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from zipimport import zipimporter


@cache
def prepare_worker() -> None:
    """Everything of ours that a worker runs calls this first; only the first call does something.

    What is there now is never looked at by the garbage collector again. It is still freed when
    nothing refers to it; only cycles that are garbage by then would stay.
    """
    keep_archives()
    gc.freeze()


def keep_archives() -> None:
    """From now on, invalidated caches read those archives of this process again that changed.

    Those that are in use now: what is imported later from another archive is only slower.
    """
    for importer in sys.path_importer_cache.values():
        if isinstance(importer, zipimporter) and "invalidate_caches" not in vars(importer):
            vars(importer)["invalidate_caches"] = _if_changed(importer)


def _if_changed(importer: zipimporter) -> Callable[[], None]:
    """In the place of its `invalidate_caches`."""
    known = _identity(importer.archive)

    def invalidate() -> None:
        nonlocal known
        now = _identity(importer.archive)
        if now is None or now != known:
            known = now
            zipimporter.invalidate_caches(importer)

    return invalidate


def _identity(path: str) -> tuple[int, int, int] | None:
    """What differs if it is another file or has other content; None: it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116  as Spark's workers do
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
