"""Report: what a drill found, as JSON for programs and as Markdown for people."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, to_builtins

from drills.events import DrillEvent, Kind
from drills.judge import PromiseVerdict
from drills.runner import DrillRun
from drills.scenario import Scenario

PICTURE: Final = "picture.svg"
EVENT_ROWS_MAX: Final = 200
"""Lines of the list of events in report.md; the JSON report has all of them."""

_COLUMNS: Final = (
    ("time to recover (s)", "time_to_recover_s"),
    ("read twice", "records_read_twice"),
    ("lost", "records_lost"),
    ("ownership overlaps", "ownership_overlaps"),
    ("commits lost", "commits_lost"),
    ("rebalances", "rebalances"),
)
_QUIET: Final = frozenset((Kind.READ, Kind.COMMITTED, Kind.WRITTEN, Kind.PROBED))


class DrillReport(Struct, frozen=True):
    """`against`: the server that was drilled; "" for a daemon of the drill's own."""

    scenario: Scenario
    against: str
    version: str
    started_at: str
    """ISO 8601, UTC."""
    runs: tuple[DrillRun, ...]

    @property
    def passed(self) -> bool:
        return all(run.passed for run in self.runs)


def report_as_json(report: DrillReport) -> dict[str, object]:
    """The document of report.json; docs/drills.md has its fields."""
    scenario = report.scenario
    return {
        "drill": scenario.name,
        "shows": scenario.shows,
        "file": scenario.file,
        "protocol": scenario.protocol,
        "against": report.against or None,
        "rollcall_version": report.version,
        "started_at": report.started_at,
        "passed": report.passed,
        "steps": [str(step) for step in scenario.steps],
        "clients": {run.library: _run_as_json(run) for run in report.runs},
    }


def _run_as_json(run: DrillRun) -> dict[str, object]:
    measures: dict[str, object] = to_builtins(run.measures)
    seconds = measures["time_to_recover_s"]
    assert seconds is None or isinstance(seconds, float)
    return {
        "passed": run.passed,
        **measures,
        "time_to_recover_s": None if seconds is None else round(seconds, 3),
        "recoveries": [
            {
                "fault": recovery.fault,
                "at_s": round(recovery.at_s - run.began_s, 3),
                "seconds": None if recovery.seconds is None else round(recovery.seconds, 3),
            }
            for recovery in run.measures.recoveries
        ],
        "overlaps": [
            {**to_builtins(overlap), "at_s": round(overlap.at_s - run.began_s, 3)}
            for overlap in run.measures.overlaps
        ],
        "promises": [to_builtins(verdict) for verdict in run.verdicts],
        "events": [_event_as_json(event, run.began_s) for event in run.events],
    }


def _event_as_json(event: DrillEvent, began_s: float) -> dict[str, object]:
    found: dict[str, object] = {
        "at_s": round(event.at_s - began_s, 4),
        "source": event.source,
        "kind": str(event.kind),
    }
    if event.partitions:
        found["partitions"] = event.partitions
    if event.offsets:
        found["offsets"] = event.offsets
    if event.number:
        found["number"] = event.number
    if event.text:
        found["text"] = event.text
    return found


def report_as_markdown(report: DrillReport) -> str:
    scenario = report.scenario
    where = f"the server at {report.against}" if report.against else "a daemon of the drill's own"
    load = f"{scenario.protocol}, {scenario.partitions} partitions, "
    load += f"{scenario.records_per_s} records a second"
    lines = [
        f"# Drill {scenario.name}: {'passed' if report.passed else 'FAILED'}",
        "",
        *([scenario.shows, ""] if scenario.shows else []),
        f"{report.started_at}, Rollcall {report.version}, against {where}, group protocol {load}.",
        "",
        "Steps: " + "; ".join(str(step) for step in scenario.steps) + ".",
        "",
        *summary_table(report.runs),
        "",
        f"![lanes of the members over time]({PICTURE})",
    ]
    for run in report.runs:
        lines += ["", f"## {run.library}", "", *_run_lines(run)]
    return "\n".join(lines) + "\n"


def summary_table(runs: Sequence[DrillRun]) -> list[str]:
    """A row for each library, in Markdown."""
    head = ["clients", "result", *(title for title, _ in _COLUMNS)]
    rows = [head, ["---"] * len(head)]
    for run in runs:
        values = [_shown(getattr(run.measures, field)) for _, field in _COLUMNS]
        rows.append([run.library, "passed" if run.passed else "FAILED", *values])
    return ["| " + " | ".join(row) + " |" for row in rows]


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def promise_text(verdict: PromiseVerdict) -> str:
    """One line: the promise, its limit, and what was found."""
    value = "never" if verdict.value is None else f"{verdict.value:.6g}"
    if verdict.value is None and verdict.is_kept:
        value = "there was no fault"
    state = "kept" if verdict.is_kept else "BROKEN"
    return f"{verdict.promise} = {verdict.limit:g}: {value} ({state})"


def _run_lines(run: DrillRun) -> list[str]:
    measures = run.measures
    lines = [f"- {promise_text(verdict)}" for verdict in run.verdicts]
    lines.append(
        f"- {measures.records_written} records written, {measures.records_read} read, "
        f"{measures.commits_acknowledged} commits acknowledged, {measures.commits_refused} refused"
    )
    if measures.ownership_overlaps_expected:
        lines.append(
            f"- {measures.ownership_overlaps_expected} overlaps of ownership with a member that "
            "was silent for its whole session: no coordinator can avoid these"
        )
    for recovery in measures.recoveries:
        took = "never" if recovery.seconds is None else f"after {recovery.seconds:.2f} s"
        at_s = recovery.at_s - run.began_s
        lines.append(f"- {recovery.fault}, at {at_s:.2f} s: recovered {took}")
    shown = [event for event in run.events if event.kind not in _QUIET]
    lines += ["", "| seconds | who | what |", "| ---: | --- | --- |"]
    for event in shown[:EVENT_ROWS_MAX]:
        words = " ".join(
            filter(
                None,
                (
                    str(event.kind),
                    ", ".join(map(str, event.partitions)),
                    str(event.number or ""),
                    event.text.replace("|", "/"),
                ),
            )
        )
        lines.append(f"| {event.at_s - run.began_s:.3f} | {event.source} | {words} |")
    if len(shown) > EVENT_ROWS_MAX:
        lines += ["", f"{len(shown) - EVENT_ROWS_MAX} more events are in report.json."]
    return lines
