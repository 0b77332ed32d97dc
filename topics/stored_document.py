"""Stored document: reads the small JSON file of a store, or repairs a damaged one.

A repair keeps the damaged file as a copy, and begins again with nothing. A store saves its file
itself, as each of its changes is another one.
"""

import json
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct

from protocol.config_def import ConfigException
from storage.api import Corrupt
from topics.catalog import CatalogFile
from topics.checked_json import JsonDocument, check_document

_UNREADABLE: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    ConfigException,
)

ContentT = TypeVar("ContentT")


class StoredDocument(Struct, Generic[ContentT], frozen=True):
    """How one kind of file is read. `parse` makes the content of the document, or raises ValueError
    and its kin; `damaged` is raised instead. Of a secret file no error has more than its type."""

    version: int
    parse: Callable[[JsonDocument], ContentT]
    damaged: type[Corrupt]
    is_secret: bool = False

    def load(self, file: CatalogFile) -> ContentT | None:
        """None: there is no file. Raises `damaged`, NewerFormat, OSError."""
        content = file.load()
        if content is None:
            return None
        try:
            document = json.loads(content)
            check_document(document, file.name, self.version)
            return self.parse(document)
        except _UNREADABLE as fault:
            if self.is_secret:
                raise self.damaged(file.name, 0, type(fault).__name__) from None
            raise self.damaged(file.name, 0, f"{type(fault).__name__}: {fault}") from fault

    def load_or_repair(
        self, file: CatalogFile, empty: bytes, on_lost: Callable[[str], None]
    ) -> tuple[ContentT | None, bool]:
        """The content, and whether the file was damaged. Then it is `empty` from now on, and
        `on_lost` gets the name of the copy. Raises NewerFormat, OSError."""
        try:
            return self.load(file), False
        except self.damaged:
            kept_as = file.keep_copy()
            file.save(empty)
            on_lost(kept_as)
            return None, True
