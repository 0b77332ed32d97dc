"""Local frames: SQLFrame's DataFrame on DuckDB, with what the rules use of Spark's beyond it."""

import uuid
from collections.abc import Callable, Iterator
from typing import Protocol, Self

import duckdb
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from sqlframe.base.column import Column
from sqlframe.base.types import Row
from sqlframe.duckdb import functions as fn
from sqlframe.duckdb.dataframe import DuckDBDataFrame
from sqlframe.duckdb.group import DuckDBGroupedData
from sqlglot import exp

from pipeline.read.files import local_path

_ROWS_AT_ONCE = 1 << 16
_STEPS_MAX = 2
"""Select statements within one expression."""


class FrameStore(Protocol):
    """What a frame needs of its session."""

    def execute(self, statement: str) -> duckdb.DuckDBPyConnection: ...

    def relation(self, query: str) -> duckdb.DuckDBPyRelation: ...

    def new_name(self) -> str: ...

    def stored(self, name: str) -> "LocalFrame": ...

    def from_arrow(self, rows: pa.Table) -> "LocalFrame": ...


def quoted(name: str) -> str:
    text: str = exp.to_identifier(name, quoted=True).sql("duckdb")
    return text


class LocalGroups(DuckDBGroupedData):
    def applyInArrow(  # noqa: N802  Spark's
        self, function: Callable[[pa.Table], pa.Table], schema: StructType
    ) -> "LocalFrame":
        """`function` of the rows of each group. Their order is not defined."""
        rows = self._df.toArrow()
        keys = [column.alias_or_name for column in self.group_by_cols]
        arrow = to_arrow_schema(schema)
        groups: dict[tuple[object, ...], list[int]] = {}
        for number, key in enumerate(zip(*(rows[key].to_pylist() for key in keys), strict=True)):
            groups.setdefault(key, []).append(number)
        made = [function(rows.take(numbers)).cast(arrow) for numbers in groups.values()]
        session: FrameStore = self._df.session
        return session.from_arrow(pa.concat_tables(made) if made else arrow.empty_table())


class LocalFrame(DuckDBDataFrame):
    """Lazy, as Spark's: DuckDB evaluates it when rows are wanted."""

    _group_data = LocalGroups

    # Where rows are has no meaning on one machine.

    def repartition(self, *_: object) -> Self:
        return self

    def coalesce(self, *_: object) -> Self:
        return self

    def hint(self, *_: object) -> Self:
        return self

    def select(self, *columns: object, **options: object) -> Self:
        """A field of a struct has its own name; `struct.*` is all of its fields."""
        given = columns[0] if columns and isinstance(columns[0], list) else columns
        wanted: list[object] = []
        for column in given:
            name = column if isinstance(column, str) else _dotted(column)
            if name is None or "." not in name:
                wanted.append(column)
            elif name.endswith(".*"):
                struct = name.removesuffix(".*")
                fields = self._fields(struct)
                wanted += [fn.col(f"{struct}.{field}").alias(field) for field in fields]
            else:
                wanted.append(fn.col(name).alias(name.rpartition(".")[2]))
        chosen: Self = super().select(*wanted, **options)
        return chosen

    # SQLFrame's own operations call this one.
    select.__wrapped__ = DuckDBDataFrame.select.__wrapped__  # type: ignore[attr-defined]

    def _fields(self, struct: str) -> list[str]:
        name, *inner = struct.split(".")
        kind = self._kept_type(name)
        for field in inner:
            kind = kind.field(field).type
        return [kind.field(number).name for number in range(kind.num_fields)]

    def _kept_type(self, name: str) -> pa.DataType:
        kind: pa.DataType = super().select(name).limit(0).toArrow().schema.field(0).type
        return kind

    def _convert_leaf_to_cte(self, *arguments: object, **named: object) -> Self:
        """SQLFrame copies all of an expression at each step: so a long one becomes a view."""
        is_short = len(self.expression.ctes) < _STEPS_MAX
        if is_short or not isinstance(self.expression, exp.Select):
            return self._next_step(*arguments, **named)
        session: FrameStore = self.session
        name = session.new_name()
        session.execute(f"CREATE VIEW {name} AS {self.statement()}")
        names = [exp.column(column) for column in self._columns]
        short = self.copy(expression=exp.select(*names).from_(exp.to_table(name)))
        after: Self = short._next_step(*arguments, **named)
        return after

    def _next_step(self, *arguments: object, **named: object) -> Self:
        after: Self = super()._convert_leaf_to_cte(*arguments, **named)
        return after

    def persist(self, *_: object) -> "LocalFrame":
        """Evaluated now, once, and kept until `unpersist`."""
        session: FrameStore = self.session
        name = session.new_name()
        session.execute(f"CREATE TABLE {name} AS {self.statement()}")
        return session.stored(name)

    def unpersist(self) -> Self:
        source = self.expression.find(exp.Table)
        if source is not None:
            self.session.execute(f"DROP TABLE IF EXISTS {source.name}")
        return self

    def statement(self) -> str:
        (expression,) = self._get_expressions(optimize=False)
        text: str = self.session._to_sql(expression)
        return text

    def toLocalIterator(self, **_: object) -> Iterator[Row]:  # noqa: N802  Spark's
        names = self.columns
        found = self.session.execute(self.statement())
        while rows := found.fetchmany(_ROWS_AT_ONCE):
            for row in rows:
                yield Row(**dict(zip(names, row, strict=True)))

    def toArrow(self, *_: object) -> pa.Table:  # noqa: N802  Spark's
        session: FrameStore = self.session
        return session.relation(self.statement()).to_arrow_table()

    @property
    def write(self) -> "LocalWriter":
        return LocalWriter(self)


def _dotted(column: Column) -> str | None:
    """The name of a plain column, with its struct."""
    found = column.expression
    if isinstance(found, exp.Column):
        return ".".join(part.name for part in found.parts)
    if isinstance(found, exp.Dot):
        return str(found.sql("spark")).replace("`", "")
    return None


class LocalWriter:
    """What `frame.write` does for the pipeline: Parquet, by the values of some columns."""

    def __init__(self, frame: LocalFrame) -> None:
        self._frame = frame
        self._by: tuple[str, ...] = ()

    def mode(self, _: str) -> Self:
        return self  # files have names of their own: nothing is replaced

    def partitionBy(self, *columns: str) -> Self:  # noqa: N802  Spark's
        self._by = columns
        return self

    def parquet(self, path: str) -> None:
        """One file for each combination of values that has rows."""
        folder = local_path(path)
        folder.mkdir(parents=True, exist_ok=True)
        session: FrameStore = self._frame.session
        name = f"part-{uuid.uuid4()}"
        by = ", ".join(map(quoted, self._by))
        where = exp.Literal.string(str(folder)).sql("duckdb")
        session.execute(
            f"COPY ({self._frame.statement()}) TO {where} (FORMAT parquet, COMPRESSION snappy, "
            f"PARTITION_BY ({by}), OVERWRITE_OR_IGNORE, FILENAME_PATTERN '{name}-{{i}}')"
        )
