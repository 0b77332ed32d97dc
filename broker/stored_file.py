"""How is a small file kept that is always written as a whole? By a new one that takes its name.

The seam between the data plane's catalog and the disk. Implements `topics.catalog.CatalogFile`.
"""

from storage.disk import Disk, read_file, replace_file


class StoredFile:
    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def load(self) -> bytes | None:
        """The content as last saved; None if it never was."""
        return read_file(self._disk, self._path) if self._disk.exists(self._path) else None

    def save(self, content: bytes) -> None:
        """Replace the content, durably. Raises OSError."""
        replace_file(self._disk, self._path, content)
