"""`rollcall offsets import`: take groups and offsets over from a Kafka's files, CSV or JSON.

Reads all of the source first, then all of the target, then plans, then writes: nothing is written
that was not read whole. Exit code 0: done; 1: refused because of what was found; 2: usage.
"""

from pathlib import Path

import click

from broker.config import Config
from cli.offsets_options import (
    check_place,
    config_of,
    in_one_line,
    now_ms,
    rule_of,
    selection_of,
    show,
    transfer_options,
)
from transfer.append import apply_plan
from transfer.contents import Contents
from transfer.plan import Rule, TargetNotEmpty, Terms, make_plan
from transfer.report import Report
from transfer.rollcall_dir import RollcallDir, read_logs
from transfer.sources import Source, read_paths
from transfer.tally import Tally
from transfer.wire import Cluster


@click.command(
    name="import",
    epilog="\b\nExamples:\n"
    "  rollcall offsets import --from /var/lib/kafka/data --dry-run\n"
    "  rollcall offsets import --from /var/lib/kafka/data --data-dir /var/lib/rollcall\n"
    "  rollcall offsets import --from offsets.csv --bootstrap 127.0.0.1:9092\n"
    "\n"
    "All or nothing: after a crash in the middle the data directory is as it was. The daemon must "
    "not run on it; its next start finds the groups.",
)
@click.option(
    "--from",
    "sources",
    metavar="PATH",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A log directory of a stopped Kafka or a copy of it (may be repeated: all that a broker "
    "or a cluster has), a data directory of Rollcall, a .csv or a .json file.",
)
@click.option("--for-group", metavar="GROUP", help="Whose offsets a CSV file of three columns has.")
@click.option("--skip-damaged", is_flag=True, help="Import what can be read, and list what cannot.")
@click.option(
    "--keep-topic-ids",
    is_flag=True,
    help="Also of topics that the target does not have: right only if the same topics will be "
    "there again, for an offset of another id is not shown to clients that ask by id.",
)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@transfer_options
def offsets_import(
    *,
    sources: tuple[Path, ...],
    for_group: str | None,
    skip_damaged: bool,
    keep_topic_ids: bool,
    as_json: bool,
    data_dir: str | None,
    bootstrap: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    wanted: tuple[str, ...],
    excluded: tuple[str, ...],
    dry_run: bool,
    merge: bool,
    overwrite: bool,
) -> int:
    """Import groups and their offsets into a data directory, or into a cluster that runs."""
    check_place(bootstrap, data_dir)
    rule = rule_of(merge=merge, overwrite=overwrite)
    selection = selection_of(wanted, excluded)
    config = config_of(data_dir, config_file, pairs)
    with in_one_line():
        at_ms = now_ms()
        source = read_paths(sources, for_group, at_ms)
        report = Report(
            "rollcall offsets import",
            source.tally,
            str(config.data_dir) if bootstrap is None else bootstrap,
            dry_run=dry_run,
        )
        contents = source.contents
        report.groups_left_out = contents.keep_only(selection.of(contents.groups))
        report.describe(contents)
        if source.tally.damaged and not skip_damaged:
            report.reason = "the source is damaged; --skip-damaged imports what can be read"
        elif bootstrap is not None:
            _commit(bootstrap, source, rule, report)
        else:
            terms = Terms(rule, at_ms, config.rollcall_offsets_value_version)
            _write(config, contents, terms, report, keep_topic_ids=keep_topic_ids)
    show(report, machine=as_json)
    return report.exit_code


def _write(
    config: Config, contents: Contents, terms: Terms, report: Report, *, keep_topic_ids: bool
) -> None:
    """Into a data directory. A rehearsal does not make one."""
    if report.dry_run and not Path(config.data_dir).exists():
        _plan(contents, Contents(), terms, report, keep_topic_ids=keep_topic_ids)
        return
    with RollcallDir(config, must_exist=False) as target:
        there = Contents()
        read_logs(target.logs, there, Tally(target.path, "rollcall"))
        terms.topic_ids.update(target.topic_ids())
        _plan(contents, there, terms, report, keep_topic_ids=keep_topic_ids)
        if report.plan is not None and not report.dry_run:
            report.appended = apply_plan(target, report.plan, terms.now_ms)


def _plan(
    contents: Contents, there: Contents, terms: Terms, report: Report, *, keep_topic_ids: bool
) -> None:
    if keep_topic_ids:
        for group in contents.groups.values():
            for (topic, _), (commit, _) in group.offsets.items():
                terms.topic_ids.setdefault(topic, commit.topic_id)
    try:
        report.plan = make_plan(contents, there, terms)
    except TargetNotEmpty as refused:
        report.reason = str(refused)


def _commit(bootstrap: str, source: Source, rule: Rule, report: Report) -> None:
    """Into a cluster that runs, as a client without a generation."""
    if rule is Rule.MERGE:
        raise click.UsageError(
            "--merge compares commit times, which a running cluster does not tell; --overwrite"
        )
    cluster = Cluster(bootstrap)
    try:
        if rule is Rule.REFUSE:
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
        for group in source.contents.groups.values():
            if group.offsets and not report.dry_run:
                report.refused += cluster.commit(group)
    finally:
        cluster.close()
