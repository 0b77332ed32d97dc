"""Import: its steps in order. Read the source, read the target, plan, write.

Nothing is written before everything is read and planned. `rollcall offsets import` makes an Import
of its options and prints the Report.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from client.properties import ClientProperties
from config.keys import Config
from history.entry_values import RequestClient
from transfer.append import apply_plan
from transfer.contents import Contents
from transfer.errors import Unusable
from transfer.import_history import history_of_plan
from transfer.plan import Rule, TargetNotEmpty, Terms, check_writable, make_plan, of_one_kind
from transfer.report import Report
from transfer.rollcall_dir import RollcallDir, read_logs
from transfer.selection import Selection
from transfer.source_stats import SourceStats
from transfer.sources import OffsetsSource, read_paths
from transfer.wire import ClusterClient

ACTOR: Final = "rollcall-offsets-import"
"""Whose doing it was, for the history: where other tools have their client id."""


def _ignore(_part: float) -> None:
    pass


class Import(Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    sources: Sequence[Path]
    config: Config
    bootstrap: str | None = None  # instead of the data directory
    client: ClientProperties | None = None  # TLS and SASL of that cluster
    rule: Rule = Rule.REFUSE
    selection: Selection
    for_group: str | None = None
    skip_damaged: bool = False
    keep_topic_ids: bool = False
    dry_run: bool = False
    now_ms: int
    host: str  # where the command runs, for the history
    progressed: Callable[[float], None] = _ignore  # 0 to 1: what a running cluster has taken


def run_import(order: Import) -> Report:
    """Raises Unusable, BadText, DataDirRefused, Corrupt, OSError."""
    if order.bootstrap is not None and order.rule is Rule.MERGE:
        raise Unusable(
            "--merge needs commit times, which a running cluster does not return; use --overwrite"
        )
    source = read_paths(order.sources, order.for_group, order.now_ms)
    contents = source.contents
    destination = str(order.config.data_dir) if order.bootstrap is None else order.bootstrap
    report = Report("rollcall offsets import", source.tally, destination, dry_run=order.dry_run)
    report.groups_left_out = contents.keep_only(order.selection.of(contents.groups))
    contents.check_writable()
    report.notes += [(str(group_id), note) for group_id, note in of_one_kind(contents)]
    report.describe(contents)
    if order.bootstrap is None:
        report.expiring = _expiring(contents, order)
    if source.tally.damaged and not order.skip_damaged:
        report.reason = "the source is damaged; --skip-damaged imports what can be read"
    elif order.bootstrap is not None:
        _commit(order.bootstrap, source, order, report)
    else:
        _write(order, contents, report)
    return report


def _expiring(contents: Contents, order: Import) -> int:
    """The number of offsets that the daemon would soon expire without new commits."""
    oldest_ms = order.now_ms - order.config.offsets_retention_minutes * 60_000
    return sum(
        0 <= commit.committed_at_ms < oldest_ms  # of unknown time: written as of now
        if commit.expire_at_ms == -1
        else commit.expire_at_ms < order.now_ms
        for group in contents.groups.values()
        for commit, _ in group.offsets.values()
    )


def _write(order: Import, contents: Contents, report: Report) -> None:
    """Into a data directory. A rehearsal does not make one."""
    terms = Terms(
        order.rule,
        order.now_ms,
        order.config.rollcall_offsets_value_version,
        keeps_topic_ids=order.keep_topic_ids,
    )
    if order.dry_run and not Path(order.config.data_dir).exists():
        _plan(contents, Contents(), terms, report)
        return
    with RollcallDir(order.config, must_exist=False) as target:
        there = Contents()
        read_logs(target.logs, there, SourceStats(target.path, "rollcall"))
        terms.topic_ids.update(target.topic_ids())
        _plan(contents, there, terms, report)
        if report.plan is not None and not order.dry_run:
            recorded = history_of_plan(
                report.plan, order.now_ms, RequestClient(ACTOR, order.host), target.history()
            )
            report.appended = apply_plan(target, report.plan, order.now_ms, recorded.beside)
            report.events_recorded, report.events_lost = recorded.recorded, recorded.lost


def _plan(contents: Contents, there: Contents, terms: Terms, report: Report) -> None:
    try:
        report.plan = make_plan(contents, there, terms)
    except TargetNotEmpty as refused:
        report.reason = str(refused)


def _commit(bootstrap: str, source: OffsetsSource, order: Import, report: Report) -> None:
    """Into a cluster that runs, as a client without a generation."""
    for group in source.contents.groups.values():
        check_writable(group)
    cluster = ClusterClient(bootstrap, order.client)
    try:
        if order.rule is Rule.REFUSE:
            there = Contents()
            known = dict(cluster.group_ids())
            for group_id in source.contents.groups.keys() & known.keys():
                cluster.fetch(group_id, there)
            if there.groups:
                names = ", ".join(sorted(there.groups)[:3])
                report.reason = (
                    f"{bootstrap} has offsets of {len(there.groups)} of these groups already "
                    f"({names} ...); --overwrite commits over them"
                )
                return
        if order.dry_run:
            return
        groups = source.contents.groups.values()
        done, total = 0, max(sum(len(group.offsets) for group in groups), 1)
        for group in groups:
            if group.offsets:
                refused = cluster.commit(group)
                report.refused += refused
                report.committed += len(group.offsets) - sum(refusal.refuses for refusal in refused)
            done += len(group.offsets)
            order.progressed(done / total)
    finally:
        cluster.close()
