"""Schema: the columns of each table, as text and as JSON."""

from collections.abc import Iterator

from pipeline.result_tables import RESULTS
from pipeline.tables import LAKE_TABLES, Table, meaning_of, unit_of


def _chosen(name: str | None) -> list[Table]:
    """One table or all. Raises KeyError."""
    every = {**LAKE_TABLES, **RESULTS}
    return list(every.values()) if name is None else [every[name]]


def schema_lines(name: str | None) -> Iterator[str]:
    for number, table in enumerate(_chosen(name)):
        if number:
            yield ""
        yield f"{table.name}: each row is {table.row}"
        for field in table.schema:
            unit = unit_of(field)
            unit = f" ({unit})" if unit else ""
            yield f"  {field.name:26} {field.type!s:12.40} {meaning_of(field)}{unit}"


def schema_json(name: str | None) -> list[dict[str, object]]:
    return [
        {
            "table": table.name,
            "topic": table.topic,
            "row": table.row,
            "columns": [
                {
                    "name": field.name,
                    "type": str(field.type),
                    "unit": unit_of(field),
                    "meaning": meaning_of(field),
                }
                for field in table.schema
            ],
        }
        for table in _chosen(name)
    ]
