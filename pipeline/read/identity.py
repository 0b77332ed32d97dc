"""Source identity: is this the log that a lake was landed from?

Offsets mean records of one log only. Another cluster has another cluster id. A data directory that
was wiped and filled again may have the same one, but its log says so: it begins with newer records,
or ends before what was landed. Compaction and retention move the beginning of a log forward, never
back, and leave a batch its time.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from seams.operator_error import OperationFailed
from seams.text import instant

CLOCK_SKEW_MS: Final = 300_000
"""Between the clock of the machine that ingests and that of the broker."""


class LogBeginning(NamedTuple):
    """The first batch (or record) of a log: its offset, the first and the newest time in it."""

    offset: int
    first_ms: int
    last_ms: int


Beginnings = Mapping[int, LogBeginning]
"""By partition."""


class OtherLog(OperationFailed):
    """The source is not what the lake was landed from; the message is for people."""


def another_cluster(known: str | None, found: str | None) -> str | None:
    """Why the source is not the lake's, by the cluster ids; None: nothing says so."""
    if known is None or found is None or known == found:
        return None
    return f"the lake has the records of the cluster {known}, this is the cluster {found}"


def another_log(
    topic: str,
    partition: int,
    *,
    read: int,
    read_ms: int | None,
    end: int,
    before: LogBeginning | None,
    now: LogBeginning | None,
) -> str | None:
    """Why a partition is not the one that was landed up to the offset `read`, at `read_ms`; None:
    nothing says so. `before` and `now`: its beginning then, and as it is found."""
    name = f"{topic}-{partition}"
    if end < read and (now is None or now != before):  # else a replica that is behind
        return f"{name} ends at offset {end}, and records up to {read} were landed"
    if now is None:
        return None
    if before is not None and now.offset < before.offset:
        return f"{name} begins at offset {now.offset}, and began at {before.offset}"
    if before is not None and now.offset == before.offset and now.first_ms > before.last_ms:
        return (
            f"{name} begins with a record of {instant(now.first_ms)}, and began with one of "
            f"{instant(before.first_ms)}"
        )
    if read_ms is not None and now.offset < read and now.first_ms > read_ms + CLOCK_SKEW_MS:
        return (
            f"{name} has at offset {now.offset} a record of {instant(now.first_ms)}, and offsets "
            f"up to {read} were landed by {instant(read_ms)}"
        )
    return None
