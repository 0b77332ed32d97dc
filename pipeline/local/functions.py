"""Local functions: Spark's functions on DuckDB, where SQLFrame has none or another meaning.

Each has the name and the arguments of `pyspark.sql.functions`; those that are not here are
SQLFrame's own. tests/pipeline/test_local_engine.py compares them with Spark's.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from sqlframe.base.column import Column
from sqlframe.duckdb import functions as sqlframe_functions
from sqlglot import exp, parse_one

_Name: TypeAlias = "Column | str"


def function(name: str) -> Callable[..., Column]:
    """Raises AttributeError."""
    found: Callable[..., Column] | None = _OWN.get(name)
    return found if found is not None else getattr(sqlframe_functions, name)


def _call(name: str, *arguments: object) -> Column:
    """A function of DuckDB by its own name."""
    return Column(exp.Anonymous(this=name, expressions=[_expression(each) for each in arguments]))


def _expression(argument: object) -> exp.Expression:
    found: exp.Expression = Column.ensure_col(argument).column_expression
    return found


def _literal(value: object) -> Column:
    return sqlframe_functions.lit(value)


def _last(column: _Name, ignorenulls: bool = False) -> Column:  # noqa: FBT001, FBT002  Spark's
    value = exp.LastValue(this=_expression(column))
    return Column(exp.IgnoreNulls(this=value) if ignorenulls else value)


def _regression(name: str) -> Callable[[_Name, _Name], Column]:
    """Null instead of NaN, as Spark has it."""

    def made(y: _Name, x: _Name) -> Column:
        found = _call(name, y, x)
        return sqlframe_functions.when(~_call("isnan", found), found)

    return made


def _try_subtract(left: _Name, right: _Name) -> Column:
    left, right = Column.ensure_col(left), Column.ensure_col(right)
    return _call("try", left - right)


def _try_sum(column: _Name) -> Column:
    """Null where the sum does not fit 64 bits; DuckDB adds them up in 128."""
    return Column(exp.TryCast(this=_call("sum", column).column_expression, to=_type("bigint")))


def _type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def _timestamp_millis(column: _Name) -> Column:
    return _call("make_timestamp_ms", column)


def _to_date(column: _Name) -> Column:
    return Column(exp.Cast(this=_expression(column), to=_type("date")))


def _to_json(column: _Name) -> Column:
    """Without the fields that are null."""
    patched = _call("json_merge_patch", _literal("{}"), _call("to_json", column))
    return Column(exp.Cast(this=patched.column_expression, to=_type("varchar")))


def _from_json(column: _Name, schema: str) -> Column:
    """What the text lacks is null; what the schema lacks is left out."""
    wanted = exp.DataType.build(schema, dialect="spark")
    return _call("json_transform", column, _literal(_shape(wanted)))


def _shape(wanted: exp.DataType) -> str:
    """As json_transform takes it."""
    if wanted.this == exp.DataType.Type.ARRAY:
        return f"[{_shape(wanted.expressions[0])}]"
    if wanted.this == exp.DataType.Type.STRUCT:
        fields = ", ".join(f'"{field.name}": {_shape(field.kind)}' for field in wanted.expressions)
        return f"{{{fields}}}"
    return f'"{wanted.sql(dialect="duckdb")}"'


def _get_json_object(column: _Name, path: str) -> Column:
    return _call("json_extract_string", column, _literal(path))


def _regexp_extract(column: _Name, pattern: str, group: int) -> Column:
    """RE2 writes a named group with a P."""
    named = pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    return _call("regexp_extract", column, _literal(named), _literal(group))


def _aggregate(column: _Name, initial: Column, merge: Callable[[Column, Column], Column]) -> Column:
    """SQLFrame passes no `initial` on, and DuckDB cannot reduce an empty list without it."""
    reduced = sqlframe_functions.aggregate(column, initial, merge).column_expression
    return _call("list_reduce", column, Column(reduced.args["merge"]), initial)


def _array_sort(column: _Name) -> Column:
    """Nulls last."""
    return _call("list_sort", column, _literal("ASC"), _literal("NULLS LAST"))


def _sort_array(column: _Name) -> Column:
    """Nulls first."""
    return _call("list_sort", column, _literal("ASC"), _literal("NULLS FIRST"))


def _get(column: _Name, index: Column) -> Column:
    """From 0; null beyond the ends."""
    return _call("list_extract", column, index + 1)


def _max_by(column: _Name, order: _Name) -> Column:
    """Of the row with the greatest `order`, also if that is null: DuckDB's arg_max passes it by."""
    return _call("arg_max_null", column, order)


def _collect_set(column: _Name) -> Column:
    """Without null; an empty list of no rows."""
    distinct = exp.Distinct(expressions=[_expression(column)])
    listed = exp.Filter(
        this=exp.Anonymous(this="list", expressions=[distinct]),
        expression=exp.Where(
            this=exp.Not(this=exp.Is(this=_expression(column), expression=exp.Null()))
        ),
    )
    return sqlframe_functions.coalesce(Column(listed), Column(exp.Array(expressions=[])))


def _broadcast(frame: object) -> object:
    return frame


def _expr(text: str) -> Column:
    return Column(parse_one(text, dialect="spark"))


_OWN: Final[dict[str, Callable[..., Column]]] = {
    "aggregate": _aggregate,
    "array_sort": _array_sort,
    "broadcast": _broadcast,  # of a frame, not of a column
    "collect_set": _collect_set,
    "from_json": _from_json,
    "get": _get,
    "get_json_object": _get_json_object,
    "last": _last,
    "max_by": _max_by,
    "regexp_extract": _regexp_extract,
    "regr_r2": _regression("regr_r2"),
    "regr_slope": _regression("regr_slope"),
    "regr_sxx": _regression("regr_sxx"),
    "regr_syy": _regression("regr_syy"),
    "sort_array": _sort_array,
    "timestamp_millis": _timestamp_millis,
    "to_date": _to_date,
    "to_json": _to_json,
    "try_subtract": _try_subtract,
    "try_sum": _try_sum,
}
