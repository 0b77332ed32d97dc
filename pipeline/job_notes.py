"""Job notes: which span and which sources a job saw, and why a table of it is empty or missing.

    OUT/_notes/<job>.json

Each run of a job replaces its note. The report shows them, so that an empty section says why.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field
from pyspark.sql import SparkSession

from pipeline.read.files import read_text, replace_text

_FOLDER: Final = "_notes"


class JobNote(Struct, frozen=True):
    """`tables`: rows written, by table; `empty`: why a table has none, or was not made."""

    job: str
    source: str
    since_ms: int
    until_ms: int
    topics: tuple[str, ...] = ()  # that the source has
    log_ends: str = ""  # where they are from; for people
    tables: Mapping[str, int] = field(default_factory=dict)
    empty: Mapping[str, str] = field(default_factory=dict)


def write_note(spark: SparkSession, out: str, note: JobNote) -> None:
    content = msgspec.json.format(msgspec.json.encode(note)).decode()
    replace_text(spark, f"{out.rstrip('/')}/{_FOLDER}/{note.job}.json", content + "\n")


def read_note(spark: SparkSession, out: str, job: str) -> JobNote | None:
    """None: an older version ran it, or nobody."""
    content = read_text(spark, f"{out.rstrip('/')}/{_FOLDER}/{job}.json")
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=JobNote)
    except msgspec.MsgspecError:
        return None
