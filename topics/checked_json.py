"""Checked JSON: a small document in a file, with its format and a checksum.

JSON, so that people can read it. A flipped bit may leave valid JSON, so there is a checksum of the
values, independent of layout. A document without one is accepted: it was edited, or is older.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

from storage.api import NewerFormat

_CHECKSUM: Final = "crc32"

JsonDocument = dict[str, Any]
"""As json.loads has it. Its reader takes it apart, and refuses what is of another shape."""


def dump_checked(document: Mapping[str, object], version: int) -> bytes:
    whole = {"format": version, **document}
    return json.dumps({**whole, _CHECKSUM: _checksum(whole)}, indent=1).encode()


def check_document(document: dict[str, object], name: str, version: int) -> None:
    """Check what was read, and remove its checksum. Raises NewerFormat, ValueError, KeyError."""
    found = document["format"]
    if isinstance(found, int) and found > version:
        raise NewerFormat(name, found, version)
    if found != version:
        raise ValueError(f"format {found!r} is not known")
    checksum = document.pop(_CHECKSUM, None)
    if checksum is not None and checksum != _checksum(document):
        raise ValueError(
            f"its {_CHECKSUM} does not fit; who edited it on purpose removes that line"
        )


def _checksum(document: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
