"""Journal limits: how large the write-ahead files are, and when they are flushed and checkpointed.

One place for the daemon and for commands on a stopped data directory: a file that one of them makes
has the size that the other expects.
"""

from typing import Final

from config.keys import Config
from storage.journal.journal import JournalLimits

FILES: Final = 2
"""The journal writes to them in turn; `rollcall.journal.bytes` is their sum."""


def journal_limits(config: Config) -> JournalLimits:
    """Raises ValueError, in one line, if the files could not hold one flush."""
    try:
        return JournalLimits(
            queue_bytes=config.rollcall_journal_queue_max_bytes,
            file_bytes=config.rollcall_journal_bytes // FILES,
            pass_bytes=config.rollcall_checkpoint_bytes,
            linger_ms=config.group_coordinator_append_linger_ms,
            idle_ms=config.rollcall_checkpoint_idle_ms,
            reserve_bytes=config.rollcall_disk_reserve_bytes,
            retry_ms=config.rollcall_disk_full_retry_ms,
        )
    except ValueError as error:
        raise ValueError(
            f"rollcall.journal.bytes = {config.rollcall_journal_bytes}: "
            f"each of its two files is half of that, and {error}"
        ) from None
