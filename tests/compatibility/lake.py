"""Pipeline tables: the rows of a lake's and a result folder's files, counted and checksummed.

Read by pyarrow, so that no Spark and no code of the pipeline stands between the files and the test.
"""

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq

Rows = list[dict[str, object]]


def as_of_answers(text: str) -> object:
    return json.loads(text)


def checksum(rows: Rows) -> dict[str, object]:
    """Rows have no order; values are compared as text. Spark gives a bytearray for bytes."""
    lines = sorted(
        repr(
            sorted(
                (name, bytes(value) if isinstance(value, bytearray) else value)
                for name, value in row.items()
            )
        )
        for row in rows
    )
    return {"rows": len(rows), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def table_answers(lake: Path, results: Path) -> dict[str, dict[str, dict[str, object]]]:
    return {
        folder.name: {
            table.name: checksum(rows_of(table))
            for table in sorted(folder.iterdir())
            if table.is_dir() and any(table.rglob("*.parquet"))
        }
        for folder in (lake, results)
    }


def rows_of(table: Path) -> Rows:
    """Without the columns that folders stand for, such as `dt`."""
    rows: Rows = []
    for path in sorted(table.rglob("*.parquet")):
        rows += pq.ParquetFile(path).read().to_pylist()
    return rows
