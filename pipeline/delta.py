"""Delta Lake output: the tables of jobs as Delta tables, a span of days replaced in one commit.

Through the `deltalake` package (the extra [pipeline-delta]), without Spark. A run replaces the days
of its span, as runner.py does in Parquet; other days stay. Each table is one Delta commit, so a
reader sees all of a table's new days or none.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds

from pipeline.jobs import JOBS
from pipeline.read.files import is_local, local_path
from pipeline.result_tables import RESULTS
from pipeline.runner import TimeSpan
from seams.operator_error import WrongInput

_ROWS_AT_ONCE: Final = 1 << 16
_EXTRA: Final = "rollcall-broker[pipeline-delta]"


def write_delta(results: str, out: str, span: TimeSpan) -> Mapping[str, int]:
    """The days of the span of each table in `results`; the rows of each. Raises WrongInput."""
    try:
        from deltalake import write_deltalake
    except ImportError:
        raise WrongInput(f"deltalake is not installed: pip install '{_EXTRA}'") from None
    if not is_local(results):
        raise WrongInput(f"{results}: Delta tables are made of results in a local folder")
    first, last = span.days()
    written = {}
    for name in RESULTS:
        folder = local_path(results) / name
        if not folder.is_dir():
            continue
        schema = pa.schema([*RESULTS[name].schema.remove_metadata(), ("dt", pa.string())])
        files = list(_files(folder, first, last))
        rows = sum(ds.dataset(file, format="parquet").count_rows() for file, _ in files)
        write_deltalake(
            f"{out.rstrip('/')}/{name}",
            pa.RecordBatchReader.from_batches(schema, _batches(files, schema)),
            mode="overwrite",
            partition_by=["dt"],
            predicate=f"dt >= '{first}' AND dt <= '{last}'",
        )
        written[name] = rows
    if not written:
        raise WrongInput(f"{results} has no table of a job; the jobs are {', '.join(JOBS)}")
    return written


def _files(folder: Path, first: str, last: str) -> Iterator[tuple[Path, str]]:
    for day in sorted(folder.glob("dt=*")):
        if first <= (name := day.name.removeprefix("dt=")) <= last:
            for file in sorted(day.glob("*.parquet")):
                yield file, name


def _batches(files: list[tuple[Path, str]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file, day in files:
        for batch in ds.dataset(file, format="parquet").to_batches(batch_size=_ROWS_AT_ONCE):
            days = pa.array([day] * batch.num_rows, pa.string())
            columns = [batch.column(name) for name in schema.names[:-1]]
            yield pa.RecordBatch.from_arrays([*columns, days], schema=schema)
