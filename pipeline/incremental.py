"""Incremental runs: which days of the results must be made again since the last run?

    OUT/_incremental.json       for each job: the runs of the lake that it has seen, and its end

The days from the first one with a new record on, and those from the end of the last run on: groups
that fell silent are evaluated there. Rows of earlier days stay as they are, also where a rule
compares them with the whole history (the baseline of group_commit_rate). After a compaction the run
is new, so all days are made again, once.
"""

import json
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from pipeline.lake import Manifest, read_manifest
from pipeline.read.files import is_local, local_path, read_text, replace_text
from pipeline.tables import LAKE_TABLES
from seams.operator_error import WrongInput

STATE_FILE: Final = "_incremental.json"
_DAY_MS: Final = 86_400_000


class SeenRuns(Struct, frozen=True):
    """`until_ms`: where the span of the last run ended."""

    lake: str
    runs: tuple[str, ...]
    until_ms: int


def first_day_ms(job: str, lake: str, out: str) -> int:
    """Where the span of this run begins; 0: everything. Raises WrongInput, NoLake."""
    manifest = _manifest(lake, out)
    seen = _seen(out).get(job)
    if seen is None or seen.lake != lake:
        return 0
    new = [run for run in manifest.runs if run not in seen.runs]
    days = [
        folder.parent.name.removeprefix("dt=")
        for name in LAKE_TABLES
        for run in new
        for folder in (local_path(lake) / name).glob(f"dt=*/run={run}")
    ]
    last_ms = seen.until_ms // _DAY_MS * _DAY_MS
    return min([last_ms, *map(_begin_ms, days)])


def remember_run(job: str, lake: str, out: str, until_ms: int) -> None:
    """After all tables are written."""
    now = SeenRuns(lake, _manifest(lake, out).runs, until_ms)
    every = {**_seen(out), job: now}
    content = {
        name: {"lake": seen.lake, "runs": seen.runs, "until_ms": seen.until_ms}
        for name, seen in every.items()
    }
    replace_text(None, f"{out.rstrip('/')}/{STATE_FILE}", json.dumps(content, indent=1) + "\n")


def _manifest(lake: str, out: str) -> Manifest:
    if not is_local(lake) or not is_local(out):
        raise WrongInput("--incremental needs a lake and results in local folders")
    manifest = read_manifest(None, lake.rstrip("/"))
    if manifest is None:
        raise WrongInput(f"--incremental needs a lake, and {lake} is none: see `run ingest`")
    return manifest


def _seen(out: str) -> dict[str, SeenRuns]:
    content = read_text(None, f"{out.rstrip('/')}/{STATE_FILE}")
    if content is None:
        return {}
    try:
        return {
            name: SeenRuns(said["lake"], tuple(said["runs"]), int(said["until_ms"]))
            for name, said in json.loads(content).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise WrongInput(
            f"{out}/{STATE_FILE} is damaged: {fault}; without the file all days are made again"
        ) from None


def _begin_ms(day: str) -> int:
    try:
        return round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1_000)
    except ValueError:
        return 0  # a record without a time
