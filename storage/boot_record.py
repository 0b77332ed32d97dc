"""Boot record: has the machine gone down since the data directory was last used?

What topics have beyond their last sync is in the page cache: a killed process loses none of it, a
machine that goes down may lose all. A daemon that runs keeps the id of the system's boot in a small
file, and a clean stop, which syncs everything, removes it. So a start that finds the id of another
boot knows that records may be missing. It writes its own id only when whatever that means for
open transactions is on the disk: a start that is killed before leaves the next one in doubt too.

Where the system has no such id (it is Linux's), every stop that was not clean counts.
Kafka's counterpart: none; it relies on replicas.
"""

from pathlib import Path
from typing import Final

from storage.atomic_file import StoredFile
from storage.disk import Disk

BOOT_FILE: Final = "rollcall-boot-id"

_NO_BOOT: Final = b"\n"
"""In place of the id: of a boot that no other is equal to."""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def current_boot_id() -> str | None:
    """The id of the system's boot; None if the system has none."""
    try:
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


class BootRecord:
    """The file beside `meta.properties`. `lost` is decided when it is made, before any write."""

    __slots__ = ("_boot_id", "_file", "_is_saved", "lost")

    def __init__(self, disk: Disk, path: str, boot_id: str | None, *, was_clean: bool) -> None:
        """`was_clean`: the logs were closed, and so synced, at the last stop."""
        self._file = StoredFile(disk, f"{path}/{BOOT_FILE}")
        self._boot_id = boot_id
        self._is_saved = False
        recorded = self._file.load()
        if recorded is None:
            self.lost = not was_clean
        else:
            self._is_saved = boot_id is not None and recorded.strip() == boot_id.encode()
            self.lost = not self._is_saved

    def save(self) -> None:
        """From now on a start in this boot finds everything that is written. Raises OSError."""
        if not self._is_saved:
            self._file.save(f"{self._boot_id or ''}\n".encode())
            self._is_saved = True

    def clear(self, *, is_resolved: bool = True) -> None:
        """Everything is synced and closed. Raises OSError.

        Unless what an earlier loss means is `is_resolved`, the next start hears of that loss again.
        """
        if not is_resolved:
            self._file.save(_NO_BOOT)
        elif self._file.load() is not None:
            self._file.discard()
            self._is_saved = False
