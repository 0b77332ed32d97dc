"""Atomic file: a small file that is always replaced as a whole, by a rename.

The seam between the data plane's files and the disk. Implements `topics.catalog.CatalogFile` and
`topics.producer_snapshot.ProducerFile`.
"""

from storage.disk import Disk, parent, read_file, replace_file
from storage.repair.repair import keep_copy


class StoredFile:
    def __init__(self, disk: Disk, path: str, *, is_private: bool = False) -> None:
        """A private one, and its copies, can be read by the owner of the process alone."""
        self._disk = disk
        self._path = path
        self._is_private = is_private

    @property
    def name(self) -> str:
        return self._path

    def load(self) -> bytes | None:
        """The content as last saved; None if it never was."""
        return read_file(self._disk, self._path) if self._disk.exists(self._path) else None

    def save(self, content: bytes) -> None:
        """Replace the content, durably. Raises OSError."""
        replace_file(self._disk, self._path, content, is_private=self._is_private)

    def append(self, content: bytes, position: int) -> None:
        """Write behind the first `position` bytes, durably; a crash may leave a part of it."""
        file = self._disk.open(self._path)
        try:
            file.pwrite(content, position)
            file.sync()
        finally:
            file.close()

    def discard(self) -> None:
        """Remove the file, durably. Raises OSError."""
        self._disk.remove(self._path)
        self._disk.sync_dir(parent(self._path))

    def keep_copy(self) -> str:
        """Copy the content aside, durably; the copy's name. Raises OSError."""
        kept = keep_copy(self._disk, self._path, is_private=self._is_private)
        self._disk.sync_dir(parent(self._path))
        return kept
