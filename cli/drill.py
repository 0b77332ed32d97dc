"""`rollcall drill`: run failover drills and report recovery, loss, repetition and ownership.

`drill list` names the drills that ship with Rollcall, `drill run` carries one out (drills/). Exit
codes: 0 passed, 1 a promise was broken, 2 it could not run.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from cli.clock import now_ms
from cli.exits import DONE, PROBLEMS
from cli.groups import Commands
from cli.tables import table
from config.listeners import BadAddress, parse_host_port
from rollcall import __version__
from seams.operator_error import WrongInput
from seams.text import instant


@click.group(cls=Commands, name="drill")
def drill() -> None:
    """Kill, stall and cut off a group's daemon or members, and measure what it costs."""


@drill.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def list_drills(*, as_json: bool) -> None:
    """The drills that ship with Rollcall: name, what each shows, and its file."""
    from drills.catalog import shipped_drills

    drills = shipped_drills()
    if as_json:
        rows = [{"name": d.name, "shows": d.shows, "file": d.file} for d in drills]
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(table(("NAME", "SHOWS", "FILE"), [(d.name, d.shows, d.file) for d in drills]))


@drill.command(
    name="run",
    epilog="\b\nExamples:\n"
    "  rollcall drill run some-answered\n"
    "  rollcall drill run slow-a-silent --clients librdkafka,java --out silent\n"
    "  rollcall drill run my-drill.toml --against 127.0.0.1:9092\n"
    "\n"
    "Exit code 0: every promise was kept; 1: a promise was broken; 2: the drill could not run. "
    "docs/drills.md says how to write a drill.",
)
@click.argument("name", metavar="NAME|FILE")
@click.option(
    "--clients",
    metavar="LIBRARY,...",
    default="model",
    show_default=True,
    help="model, librdkafka, aiokafka, kafka-python, java, or exec:PROGRAM; each gets a run.",
)
@click.option(
    "--against",
    metavar="HOST:PORT",
    help="Drill this running server instead of a daemon of the drill's own.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where report.md, report.json, picture.svg and logs are written.  [default: "
    "rollcall-drills/NAME]",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    help="Where the drill's proxy listens for the members.",
)
@click.option(
    "--daemon",
    "program",
    metavar="PROGRAM",
    help="Another `rollcall` to start, such as that of another version.",
)
def run_one(
    *,
    name: str,
    clients: str,
    against: str | None,
    out: Path | None,
    listen: str,
    program: str | None,
) -> int:
    """Carry out a drill, by its name or from a file, and write its report."""
    from drills.catalog import find_drill
    from drills.clients.libraries import check_library
    from drills.files import write_report
    from drills.report import DrillReport, promise_text, summary_table
    from drills.runner import DrillRun, DrillTarget, run_drill

    scenario = find_drill(name)
    libraries = _names_of(clients)
    for library in libraries:
        check_library(library, scenario.protocol, scenario.assignor)
    folder = out or Path("rollcall-drills", scenario.name)
    target = DrillTarget(
        folder,
        None if against is None else _address("--against", against),
        program,
        _address("--listen", listen),
    )
    started_at = instant(now_ms())
    runs: list[DrillRun] = []
    try:
        for library in libraries:
            click.echo(f"Drill {scenario.name} with {library} ...", err=True)
            with tempfile.TemporaryDirectory(prefix="rollcall-drill-") as temporary:
                runs.append(run_drill(scenario, library, target, Path(temporary)))
    finally:
        report = DrillReport(scenario, against or "", __version__, started_at, tuple(runs))
        if runs:  # of libraries before the one that could not run, too
            write_report(report, folder)
            click.echo("\n".join(summary_table(runs)))
    for run in runs:
        for verdict in run.verdicts:
            if not verdict.is_kept:
                click.echo(f"{run.library}: {promise_text(verdict)}")
    click.echo(f"Report: {folder / 'report.md'}")
    return DONE if report.passed else PROBLEMS


def _names_of(clients: str) -> Sequence[str]:
    names = [name.strip() for name in clients.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise WrongInput(f"--clients {clients!r}: name each library once")
    return names


def _address(option: str, text: str) -> tuple[str, int]:
    try:
        return parse_host_port(text)
    except BadAddress as error:
        raise WrongInput(f"{option} {text}: {error}") from None
