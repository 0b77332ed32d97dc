"""Engine: `fn` and `Window` of whatever runs the rules: Spark, or DuckDB for small logs.

The rules (derive/, jobs.py, the report) are written once, with the DataFrame API of PySpark. The
local engine has the same API through SQLFrame, which translates it to DuckDB's SQL. Its functions
and windows are other objects, so the rules take both from here: `fn.sum` is that of the engine in
use. ADR 0061 says why.

One engine is in use at a time: Spark, unless `local_rules` is entered.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyspark.sql
import pyspark.sql.functions

if TYPE_CHECKING:
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

__all__ = ["Window", "fn", "local_rules"]

_is_local = False


class _Functions:
    """`pyspark.sql.functions`, or what the local engine has in its place."""

    def __getattr__(self, name: str) -> object:
        if not _is_local:
            return getattr(pyspark.sql.functions, name)
        from pipeline.local import functions

        return functions.function(name)


class _Windows:
    """`pyspark.sql.Window`, or the local engine's."""

    def __getattr__(self, name: str) -> object:
        if not _is_local:
            return getattr(pyspark.sql.Window, name)
        from sqlframe.duckdb import Window as LocalWindow

        return getattr(LocalWindow, name)


if not TYPE_CHECKING:
    fn: Final = _Functions()
    Window: Final = _Windows()


@contextmanager
def local_rules(*, is_local: bool = True) -> Iterator[None]:
    """Inside, `fn` and `Window` are those of the local engine, or of Spark again."""
    global _is_local  # noqa: PLW0603  a process works on one order at a time
    before, _is_local = _is_local, is_local
    try:
        yield
    finally:
        _is_local = before
