"""Report: what was read, left out (and why) and written. As text and as JSON.

Both have the same content. Important findings (damage, offsets of open transactions, groups that
could not be transferred completely) are listed one by one; everything else is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from coordinator.records import record_type
from logtools.kafka_json import Json
from protocol.printable import printable
from transfer.append import Appended
from transfer.contents import GROUP_KINDS, UNKNOWN_KIND, Contents, kind_of, type_name
from transfer.plan import Plan
from transfer.source_stats import SourceStats
from transfer.wire import Refused

LISTED_MAX: Final = 20
"""Of each kind of finding, for people; --json has them all."""

KNOWS_KINDS: Final = ("kafka", "rollcall", "cluster")
"""Sources that say what kind of group each one is; a text file does not."""

SERVED: Final = ("classic", "consumer", "simple")


class Report(Struct):
    """One import or export."""

    command: str
    tally: SourceStats
    destination: str
    dry_run: bool = False
    groups: Counter[str] = field(default_factory=Counter)
    offsets: int = 0
    kept_records: Counter[str] = field(default_factory=Counter)
    """Of types that are not served here: written byte for byte."""
    groups_left_out: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(group, what was done to it)"""
    remarks: list[str] = field(default_factory=list)
    """On the source or the destination as a whole."""
    plan: Plan | None = None
    appended: Appended | None = None
    events_recorded: int = 0
    """To the history of groups."""
    events_lost: int = 0
    """The history's log is damaged, and took none of these."""
    committed: int = 0
    """Offsets that a running cluster took."""
    expiring: int = 0
    """Offsets that were committed longer ago than they are kept without members."""
    refused: list[Refused] = field(default_factory=list)
    reason: str = ""
    """Why nothing was written."""

    def describe(self, contents: Contents) -> None:
        """Take note of what is to be written."""
        has_state = self.tally.kind in KNOWS_KINDS
        self.groups = Counter(
            group.kind if has_state else UNKNOWN_KIND for group in contents.groups.values()
        )
        self.offsets = contents.offsets
        for group in contents.groups.values():
            for key in group.state:
                kind = record_type(key)
                if kind_of(kind) not in SERVED:
                    self.kept_records[type_name(kind)] += 1

    @property
    def exit_code(self) -> int:
        return 1 if self.reason or self.refused else 0


def report_json(report: Report) -> Json:
    tally, plan, appended = report.tally, report.plan, report.appended
    transactions = tally.transactions
    by_type: dict[str, Json] = {}
    for (name, version), count in sorted(tally.by_type.items()):
        versions = by_type.setdefault(name, {})
        assert isinstance(versions, dict)
        versions[version] = count
    return {
        "command": report.command,
        "dry_run": report.dry_run,
        "done": not report.reason and not report.dry_run,
        "reason": report.reason or None,
        "source": {
            "path": tally.source,
            "kind": tally.kind,
            "partitions": len(tally.partitions),
            "missing_partitions": list[Json](tally.missing_partitions),
            "segments": tally.segments,
            "batches": tally.batches,
            "empty_batches": tally.empty_batches,
            "compressed_batches": tally.compressed_batches,
            "control_batches": tally.control_batches,
            "records": tally.records,
            "tombstones": tally.tombstones,
            "records_by_type": by_type,
            "kept_undecoded": tally.kept_undecoded,
            "transactions": {
                "committed": transactions.committed,
                "committed_records": transactions.committed_records,
                "aborted": transactions.aborted,
                "aborted_records": transactions.aborted_records,
                "pending": [dict(entry._asdict()) for entry in transactions.pending],
            },
            "in_use": list[Json](tally.in_use),
            "torn_tails": [dict(entry._asdict()) for entry in tally.torn_tails],
            "damaged": [dict(entry._asdict()) for entry in tally.damaged],
        },
        "groups": {kind: report.groups[kind] for kind in GROUP_KINDS},
        "groups_left_out": report.groups_left_out,
        "offsets": report.offsets,
        "kept_records": dict[str, Json](report.kept_records),
        "notes": [{"group": group, "note": note} for group, note in report.notes],
        "remarks": list[Json](report.remarks),
        "destination": report.destination,
        "plan": None
        if plan is None
        else {
            "groups_added": plan.groups_added,
            "groups_changed": plan.groups_changed,
            "groups_unchanged": plan.groups_unchanged,
            "groups_empty": plan.groups_empty,
            "offsets_written": plan.offsets_written,
            "offsets_kept": plan.offsets_kept,
            "states_kept": plan.states_kept,
            "topic_ids_dropped": plan.topic_ids_dropped,
            "records": plan.records,
        },
        "history_events": report.events_recorded,
        "history_events_lost": report.events_lost,
        "committed": report.committed,
        "expiring": report.expiring,
        "written": None if appended is None else dict[str, Json](appended._asdict()),
        "refused": [dict(entry._asdict()) for entry in report.refused],
    }


def report_text(report: Report) -> str:
    return "".join(f"{printable(line)}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.command}: {report.tally.source} -> {report.destination}"
    yield from _read_lines(report.tally)
    yield from _found_lines(report)
    yield from _findings(report)
    yield from _written_lines(report)


def _read_lines(tally: SourceStats) -> Iterator[str]:
    if not tally.segments:
        return
    yield _line(
        "read",
        _count(tally.records, "record"),
        f"{_count(tally.batches, 'batch', 'batches')} of "
        f"{_count(len(tally.partitions), 'partition')}",
        _some(tally.compressed_batches, "compressed"),
        _some(tally.empty_batches, "left empty by the cleaner"),
        _some(tally.tombstones, "tombstone", "tombstones"),
    )
    names: dict[str, list[str]] = {}
    for (name, version), count in sorted(tally.by_type.items()):
        names.setdefault(name, []).append(f"{version} {_number(count)}")
    for name, versions in names.items():
        yield _line("", f"{name}: {', '.join(versions)}")
    sums = tally.transactions
    if sums.committed or sums.aborted or sums.pending:
        yield _line(
            "transactions",
            _some(sums.committed, f"committed ({_count(sums.committed_records, 'offset')})"),
            _some(sums.aborted, f"aborted ({_count(sums.aborted_records, 'offset')} dropped)"),
            _some(len(sums.pending), "pending offset, not shown", "pending offsets, not shown"),
        )


def _found_lines(report: Report) -> Iterator[str]:
    kinds = [
        f"{_number(report.groups[kind])} {kind}"
        for kind in GROUP_KINDS
        if report.groups[kind] and report.tally.kind in KNOWS_KINDS
    ]
    total = sum(report.groups.values())
    yield _line(
        "found",
        _count(total, "group") + (f" ({', '.join(kinds)})" if kinds else ""),
        _count(report.offsets, "offset"),
        _some(report.groups_left_out, "group left out", "groups left out"),
    )
    if report.kept_records:
        kept = sum(report.kept_records.values())
        names = ", ".join(f"{name} {count}" for name, count in report.kept_records.items())
        yield _line("", f"{_count(kept, 'record')} of types not served, kept as they are: {names}")


def _findings(report: Report) -> Iterator[str]:
    tally = report.tally
    for directory in tally.in_use:
        yield _line(
            "note", f"a broker runs on {directory}: what it writes during the import may be missed"
        )
    if tally.missing_partitions:
        yield _line("note", f"partitions {tally.missing_partitions} are not in the source")
    if report.expiring:
        yield _line(
            "note",
            f"{_count(report.expiring, 'offset')} committed longer ago than "
            "offsets.retention.minutes: they expire unless their groups get members",
        )
    yield from _listed(
        "pending",
        [
            f"{p.group} {p.topic}-{p.partition} at {p.offset} (producer {p.producer_id})"
            for p in tally.transactions.pending
        ],
    )
    yield from _listed(
        "torn tail", [f"{t.file} at byte {t.position}: {t.size} bytes" for t in tally.torn_tails]
    )
    yield from _listed(
        "damaged",
        [
            f"{d.file} at byte {d.position}"
            + (f", offset {d.offset}" if d.offset >= 0 else "")
            + f": {d.reason}"
            for d in tally.damaged
        ],
    )
    if report.events_lost:
        lost = _count(report.events_lost, "event")
        yield _line("note", f"the history log is damaged: {lost} not recorded")
    yield from _listed("note", report.remarks)
    yield from _listed("note", [f"{group} {note}" for group, note in report.notes])
    yield from _listed(
        "refused",
        [
            f"{r.group}{f' {r.topic}-{r.partition}' if r.topic else ''}: {r.error}"
            for r in report.refused
        ],
    )


def _written_lines(report: Report) -> Iterator[str]:
    plan, appended = report.plan, report.appended
    if plan is not None:
        yield _line(
            "to write" if appended is None else "wrote",
            _count(plan.records, "record"),
            _some(plan.groups_added, "new group", "new groups"),
            _some(plan.groups_changed, "group changed", "groups changed"),
            _some(plan.groups_unchanged, "group unchanged", "groups unchanged"),
            _some(plan.groups_empty, "group without offsets", "groups without offsets"),
            _some(plan.offsets_kept, "offset older than the target's", "offsets older"),
            _some(plan.topic_ids_dropped, "foreign topic id dropped", "foreign topic ids dropped"),
        )
    if report.reason:
        yield _line("NOT DONE", report.reason)
    elif report.dry_run:
        yield _line("dry run", "nothing was written")
    elif report.committed:
        yield _line("done", f"{_count(report.committed, 'offset')} committed")
    elif appended is not None:
        yield _line(
            "done",
            f"{_count(appended.batches, 'batch', 'batches')}, {_number(appended.bytes)} bytes, "
            f"into {_count(appended.partitions, 'partition')}",
            _some(report.events_recorded, "history event", "history events"),
        )


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:LISTED_MAX]:
        yield _line(title, line)
    if len(lines) > LISTED_MAX:
        yield _line("", f"and {len(lines) - LISTED_MAX} more; --json lists them all")


def _line(title: str, *facts: str) -> str:
    return f"  {title:<13} {', '.join(fact for fact in facts if fact)}"


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{_number(number)} {singular if number == 1 else plural or singular + 's'}"


def _some(number: int, singular: str, plural: str = "") -> str:
    return _count(number, singular, plural or singular) if number else ""


def _number(number: int) -> str:
    return f"{number:,}".replace(",", " ")
