"""Local session: DuckDB behind the part of Spark's session API that the pipeline uses.

`LocalSession` stands where a SparkSession would: the source, the lake, the jobs and the report read
and write through it without knowing which of the two they have. What SQLFrame lacks is here and in
frame.py: the reader of our log format, Parquet with a schema, tables that are kept, groups that
Python evaluates, structs and their fields.

Rows that were read or kept are tables of an in-memory database. What does not fit into its memory
goes to files in a temporary folder, which is removed at the end.
"""

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import duckdb
import pyarrow as pa
from msgspec import Struct
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from sqlframe.duckdb.session import DuckDBSession
from sqlglot import Dialect, exp

from pipeline.decode.decoder import schema_of
from pipeline.engine import local_rules
from pipeline.local.frame import LocalFrame, quoted
from pipeline.progress import ReadSoFar
from pipeline.read.data_source import FORMAT, LogReader, Task, requested_tables
from pipeline.read.files import local_path

MEMORY_LIMIT: Final = "1GiB"
"""Of DuckDB's tables and queries; more of them goes to the temporary folder."""

_KEEP_CASE: Final = "normalization_strategy=case_sensitive"
"""Of names: SQLFrame folds them otherwise, and a join loses the originals."""

_DUCKDB: Final = Dialect.get_or_raise(f"duckdb, version={duckdb.__version__}, {_KEEP_CASE}")
_HIDDEN: Final = ("_", ".")
_numbers: Final = itertools.count(1)  # of the process: SQLFrame calls `__init__` again and again


class LocalSession(DuckDBSession):
    """A connection of its own; `local_session` opens and closes it."""

    _df = LocalFrame

    class Builder(DuckDBSession.Builder):
        DEFAULT_INPUT_DIALECT = f"spark, {_KEEP_CASE}"
        DEFAULT_OUTPUT_DIALECT = f"spark, {_KEEP_CASE}"
        DEFAULT_EXECUTION_DIALECT = f"duckdb, {_KEEP_CASE}"

    builder = Builder()
    read_so_far = ReadSoFar()
    spilled = ""  # the folder of what does not fit into memory

    def _to_sql(self, sql: str | exp.Expression, **options: object) -> str:
        options.setdefault("dialect", _DUCKDB)
        text: str = super()._to_sql(sql, **options)
        return text

    @property
    def read(self) -> "LocalReader":
        return LocalReader(self)

    def createDataFrame(self, rows: Sequence[Sequence[object]], schema: StructType) -> LocalFrame:  # noqa: N802  Spark's
        arrow = to_arrow_schema(schema)
        named = [dict(zip(arrow.names, row, strict=True)) for row in rows]
        return self.from_arrow(pa.Table.from_pylist(named, schema=arrow))

    def from_arrow(self, rows: pa.Table | pa.RecordBatchReader) -> LocalFrame:
        """A copy of the rows, as a table of its own."""
        name = self.new_name()
        with self.registered(rows) as arrow:
            self.execute(f"CREATE TABLE {name} AS SELECT * FROM {arrow}")
        return self.stored(name)

    def stored(self, name: str) -> LocalFrame:
        """A table or view of the database."""
        columns = {column: kind for column, kind, *_ in self.execute(f"DESCRIBE {name}").fetchall()}
        names = [exp.column(column) for column in columns]
        return LocalFrame(self, exp.select(*names).from_(exp.to_table(name)))

    @contextmanager
    def registered(self, rows: pa.Table | pa.RecordBatchReader) -> Iterator[str]:
        name = self.new_name()
        self._conn.register(name, rows)
        try:
            yield name
        finally:
            self._conn.unregister(name)

    def execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        done: duckdb.DuckDBPyConnection = self._conn.execute(statement)
        return done

    def relation(self, query: str) -> duckdb.DuckDBPyRelation:
        found: duckdb.DuckDBPyRelation = self._conn.sql(query)
        return found

    def new_name(self) -> str:
        return f"rows_{next(_numbers)}"


@contextmanager
def local_session(memory_limit: str = MEMORY_LIMIT) -> Iterator[LocalSession]:
    """One for an order; the rules use its functions meanwhile."""
    with tempfile.TemporaryDirectory(prefix="rollcall-duckdb-") as spilled, local_rules():
        session = LocalSession(
            duckdb.connect(
                config={
                    "memory_limit": memory_limit,
                    "temp_directory": spilled,
                    "autoinstall_known_extensions": "false",  # nothing is downloaded
                }
            )
        )
        session.spilled, session.read_so_far = spilled, ReadSoFar()
        try:
            yield session
        finally:
            session.stop()


class LocalReader(Struct):
    """What `spark.read` does for the pipeline."""

    session: LocalSession
    what: str = "parquet"
    said: Mapping[str, str] = {}
    wanted: StructType | None = None

    def format(self, what: str) -> Self:
        self.what = what
        return self

    def options(self, **options: str) -> Self:
        self.said = options
        return self

    def schema(self, wanted: StructType) -> Self:
        self.wanted = wanted
        return self

    def load(self, path: str) -> LocalFrame:
        """A log, up to the end that the options say."""
        if self.what != FORMAT:
            raise NotImplementedError(f"the local engine cannot read {self.what}")
        options = {**self.said, "path": path}
        reader = LogReader(options)
        batches = self._counted(reader)
        schema = schema_of(requested_tables(options))
        return self.session.from_arrow(pa.RecordBatchReader.from_batches(schema, batches))

    def _counted(self, reader: LogReader) -> Iterator[pa.RecordBatch]:
        pieces = [task for task in reader.partitions() if isinstance(task, Task)]
        so_far = self.session.read_so_far
        so_far.begin(sum(task.piece.end - task.piece.start for task in pieces))
        for task in pieces:
            for batch in reader.read(task):
                so_far.rows += batch.num_rows
                yield batch
            so_far.octets += task.piece.end - task.piece.start

    def parquet(self, *paths: str) -> LocalFrame:
        """The files in folders, with the columns that the names of folders say (`dt=...`)."""
        files = [str(file) for path in paths for file in _parquet_files(local_path(path))]
        if self.wanted is None:
            return self.session.stored(self._view(files, None))
        arrow = to_arrow_schema(self.wanted)
        if not files:
            return self.session.from_arrow(arrow.empty_table())
        return self.session.stored(self._view(files, arrow))

    def _view(self, files: list[str], schema: pa.Schema | None) -> str:
        session, name = self.session, self.session.new_name()
        listed = ", ".join(exp.Literal.string(file).sql("duckdb") for file in files)
        # A run may have been of a version whose tables had fewer columns.
        found = f"read_parquet([{listed}], hive_partitioning = true, union_by_name = true)"
        columns = "*"
        if schema is not None:
            there = {column for column, *_ in session.execute(f"DESCRIBE FROM {found}").fetchall()}
            kinds = _duckdb_types(session, schema)
            columns = ", ".join(
                f"CAST({quoted(column) if column in there else 'NULL'} AS {kind}) "
                f"AS {quoted(column)}"
                for column, kind in kinds.items()
            )
        session.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {found}")
        return name


def _duckdb_types(session: LocalSession, schema: pa.Schema) -> dict[str, str]:
    with session.registered(schema.empty_table()) as name:
        return {column: kind for column, kind, *_ in session.execute(f"DESCRIBE {name}").fetchall()}


def _parquet_files(folder: Path) -> Iterator[Path]:
    """As Spark finds them: names that begin with _ or . are hidden."""
    for file in sorted(folder.rglob("*.parquet")):
        if not any(part.startswith(_HIDDEN) for part in file.relative_to(folder).parts):
            yield file
