"""Report: one page of the tables that jobs have written, to look at before one reads.

First what needs somebody, then health, rebalances and lag as pictures, what was unusual in
sentences, who moved offsets, and a section for each group. What a source cannot know says why.
facts.py asks the tables; this module says and draws.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Row

from pipeline.jobs import JOBS
from pipeline.report.charts import (
    COLOURS,
    ChartMark,
    LaneSpan,
    Line,
    TimelineLane,
    legend,
    lines_over_time,
    span_title,
    timeline,
)
from pipeline.report.facts import RepeatedAnomaly, ReportFacts, collect_facts
from pipeline.report.html_page import (
    Link,
    Section,
    duration_text,
    instant_text,
    page,
)
from pipeline.report.sentences import (
    KINDS,
    VERDICT_SENTENCES,
    anomaly_sentence,
    at_worst,
    counted,
    figure,
    place,
    spaced,
    step_text,
    when,
)
from pipeline.results import Results
from seams.text import first_of, instant

TOP: Final = 20
"""Groups that have a section."""

LINES_MAX: Final = 8
"""Groups that one chart of lines can hold."""

FINDINGS_OF_A_KIND: Final = 12
"""Shown before the reader asks for more."""

_UNKNOWN_CAUSE: Final = "cause unknown"


def report_page(results: Results, *, top: int = TOP) -> str:
    """The HTML of the report."""
    facts = collect_facts(results, top)
    anchors = {group: f"g-{n}" for n, group in enumerate(facts.shown, 1)}
    written = _Page(results, facts, anchors)
    sections = [
        written.attention(),
        written.health(),
        written.rebalances(),
        written.lag(),
        written.commits(),
        written.anomalies(),
        written.moves(),
        written.groups(),
        *(written.group(group) for group in facts.shown),
        written.sources(),
    ]
    return page("Consumer groups", _headline(facts), _about(results, facts), sections)


def _headline(facts: ReportFacts) -> str:
    count = len(facts.attention) + facts.attention_left_out
    if count:
        return f"{counted(count, 'group')} need{'s' if count == 1 else ''} you"
    return "No group needs you" if facts.statuses else "Nothing is known to need you"


def _about(results: Results, facts: ReportFacts) -> list[str]:
    low, high = facts.axis
    span = f"{instant(low)} to {instant(high)}"
    if facts.commits is None:
        return [f"{span}. Tables of {results.path}."]
    groups = counted(facts.groups or 0, "group")
    partitions = counted(facts.partitions or 0, "partition")
    commits = counted(facts.commits, "commit")
    return [f"{commits} of {groups} and {partitions}, {span}. Tables of {results.path}."]


class _Page:
    """The sections. `anchors`: of the groups that have one."""

    def __init__(self, results: Results, facts: ReportFacts, anchors: dict[str, str]) -> None:
        self._results = results
        self._facts = facts
        self._anchors = anchors
        self._causes = self._cause_colours()

    def _link(self, group: str | None) -> Link | str:
        if group is None:
            return "all groups"
        return Link(group, self._anchors[group]) if group in self._anchors else group

    def _href(self, group: str) -> str:
        return f"#{self._anchors[group]}"

    def _cause_colours(self) -> dict[str, str]:
        causes = {row["cause"] for rows in self._facts.rebalances.values() for row in rows}
        named = sorted(cause for cause in causes if cause is not None)
        colours = {cause: f"c{n % COLOURS}" for n, cause in enumerate(named)}
        return {**colours, _UNKNOWN_CAUSE: "c7"} if None in causes else colours

    # ------------------------------------------------------------ what needs somebody

    def attention(self) -> Section:
        section = Section("attention", "Who needs you")
        facts = self._facts
        groups = facts.attention
        section.sentences([self._link(group), " ", *self._reasons(group)] for group in groups)
        if facts.attention_left_out:
            section.note(f"{counted(facts.attention_left_out, 'more group')}, not shown here.")
        if not facts.attention:
            section.note(
                "At the last evaluation every group was OK."
                if facts.statuses
                else "Health is unknown: " + self._why_empty("group_health", "group_health")
            )
        figures: list[tuple[str, object]] = [
            (f"groups {status}", facts.statuses.get(status, 0))
            for status in ("ERR", "WARN", "OK")
            if facts.statuses
        ]
        figures += [("commits", facts.commits), ("rebalances", facts.rebalance_count)]
        figures.append(("anomalies", sum(facts.anomaly_counts.values())))
        if facts.moves is not None:
            figures.append(("offsets moved by hand", facts.moves.notable_count))
        section.figures((what, value) for what, value in figures if value is not None)
        return section

    def _reasons(self, group: str) -> tuple[str, str]:
        """(what is wrong, the figures in small print)"""
        newest = self._facts.newest.get(group)
        said = []
        small = ""
        if newest is not None and newest["status"] != "OK":
            worst = place(newest["worst_topic"], newest["worst_partition"])
            bad = newest["bad_partitions"]
            said.append(
                f"is {newest['status']}: {VERDICT_SENTENCES[newest['worst_verdict']]} on {worst}"
                + (f" and {counted(bad - 1, 'more partition')}" if bad > 1 else "")
            )
            small = f"{counted(newest['total_lag'], 'record')} behind at {instant(newest['at_ms'])}"
        recent = [f for f in self._facts.findings if f.group == group]
        kinds = {KINDS.get(f.kind, f.kind).lower(): f for f in recent}
        if kinds:
            said.append(("; " if said else "") + "had " + first_of(list(kinds), 3))
        return "".join(said), small

    # ------------------------------------------------------------ pictures

    def health(self) -> Section:
        section = Section("health", "Health over time")
        facts = self._facts
        if not facts.health:
            return self._empty(section, "group_health", "group_health")
        shown = [group for group in facts.shown if group in facts.health]
        lanes = [self._health_lane(group) for group in shown]
        section.chart(timeline(lanes, facts.axis), "The status of each group over time")
        section.parts.append(legend([(name, name, "") for name in ("OK", "WARN", "ERR")]))
        self._bounded(
            section, len(shown), sum(facts.statuses.values()), "groups", "the worst first"
        )
        return section

    def _health_lane(self, group: str) -> TimelineLane:
        facts = self._facts
        spans: list[LaneSpan] = []
        for row in facts.health[group]:
            begin, end = row["bucket"], row["bucket"] + facts.health_step_ms
            last = spans[-1] if spans else None
            if last is not None and (last.to_ms, last.colour) == (begin, row["status"]):
                spans[-1] = last._replace(to_ms=end)
            else:
                spans.append(LaneSpan(begin, end, row["status"], ""))
        named = [s._replace(title=span_title(s.colour, s.from_ms, s.to_ms)) for s in spans]
        newest = facts.newest.get(group)
        note = "" if newest is None else f"{figure(newest['total_lag'])} behind"
        return TimelineLane(group, self._href(group), named, note)

    def rebalances(self) -> Section:
        section = Section("rebalances", "Rebalances")
        facts = self._facts
        shown = [group for group in facts.shown if group in facts.rebalances]
        if not shown:
            return self._empty(section, "rebalance_stats", "rebalances")
        lanes = [self._rebalance_lane(group) for group in shown]
        section.chart(timeline(lanes, facts.axis), "Rebalances of each group over time, by cause")
        section.parts.append(
            legend([(spaced(cause), colour, "") for cause, colour in self._causes.items()])
        )
        if facts.rebalances_left_out:
            section.note(
                f"{counted(facts.rebalances_left_out, 'rebalance')} not drawn: of other groups, or "
                "older."
            )
        if _UNKNOWN_CAUSE in self._causes:
            section.note(
                "Causes are in the history that Rollcall keeps. The log of a Kafka has the "
                "rebalances without them."
            )
        return section

    def _rebalance_lane(self, group: str) -> TimelineLane:
        rows = self._facts.rebalances[group]
        spans = []
        for row in rows:
            began, lasted = row["began_at_ms"], row["duration_ms"]
            cause = row["cause"] or _UNKNOWN_CAUSE
            title = f"{spaced(cause)}, {instant(began)}"
            title += "" if lasted is None else f", took {duration_text(lasted / 1000)}"
            title += f", generation {row['generation_after']}"
            spans.append(LaneSpan(began, began + (lasted or 0), self._causes[cause], title))
        return TimelineLane(group, self._href(group), spans, counted(len(rows), "rebalance"))

    def lag(self) -> Section:
        section = Section("lag", "Lag")
        facts = self._facts
        largest = sorted(
            facts.health, key=lambda group: -max(row["total_lag"] for row in facts.health[group])
        )
        shown = [g for g in largest if any(row["total_lag"] for row in facts.health[g])][:LINES_MAX]
        if not facts.health:
            return self._empty(section, "group_health", "group_health")
        if not shown:
            section.note("No group had any lag at an evaluation.")
            return section
        lines = [self._lag_line(group) for group in shown]
        section.chart(
            lines_over_time(lines, facts.axis, "records behind, all partitions of a group"),
            "Lag of the groups with the greatest lag",
        )
        self._bounded(section, len(shown), len(facts.health), "groups", "those with the most lag")
        return section

    def _lag_line(self, group: str) -> Line:
        rows = self._facts.health.get(group, ())
        points = [(row["bucket"], float(row["total_lag"])) for row in rows]
        return Line(group, points, self._href(group))

    def commits(self) -> Section:
        section = Section("commits", "Commits a minute")
        facts = self._facts
        if not facts.rates:
            return self._empty(section, "commit_rate", "group_commit_rate")
        totals = {group: sum(row["value"] for row in rows) for group, rows in facts.rates.items()}
        shown = sorted(totals, key=lambda group: (-totals[group], group))[:LINES_MAX]
        section.chart(self._rate_chart(shown), "Commits a minute; storms are marked")
        self._bounded(section, len(shown), facts.groups or 0, "groups", "those that commit most")
        return section

    def _rate_chart(self, groups: Sequence[str]) -> str:
        facts = self._facts
        lines = [
            Line(
                group,
                [(row["bucket"], float(row["value"])) for row in facts.rates.get(group, ())],
                self._href(group),
            )
            for group in groups
        ]
        storms = [
            ChartMark(
                finding.since_ms,
                max((row["value"] for row in facts.rates.get(finding.group or "", ())), default=0),
                f"{finding.group}: {anomaly_sentence(finding.kind, finding.evidence)}",
                "#anomalies",
            )
            for finding in facts.findings
            if finding.kind == "commit_storm" and finding.group in groups
        ]
        return lines_over_time(lines, facts.axis, "commits a minute (maximum)", storms)

    # ------------------------------------------------------------ sentences

    def anomalies(self) -> Section:
        section = Section("anomalies", "What was unusual")
        facts = self._facts
        if not facts.findings:
            return self._empty(section, "anomalies", "anomalies")
        order = {kind: n for n, kind in enumerate(KINDS)}
        kinds = sorted({f.kind for f in facts.findings}, key=lambda kind: order.get(kind, 99))
        for kind in kinds:
            found = [finding for finding in facts.findings if finding.kind == kind]
            title = KINDS.get(kind, kind)
            section.heading(f"{title}: {figure(facts.anomaly_counts.get(kind, len(found)))}", 3)
            self._list(section, found)
        if facts.findings_left_out:
            section.note(f"Left out: {figure(facts.findings_left_out)} weaker ones.")
        return section

    def _list(self, section: Section, found: Sequence[RepeatedAnomaly]) -> None:
        """One sentence for a group: its strongest finding, and where else it is so."""
        together: dict[tuple[str, str | None, str | None], list[RepeatedAnomaly]] = {}
        for finding in found:
            whose = (finding.kind, finding.group or finding.topic, finding.member)
            together.setdefault(whose, []).append(finding)
        items = [self._finding(*same) for same in together.values()]
        section.sentences(items[:FINDINGS_OF_A_KIND])
        if more := items[FINDINGS_OF_A_KIND:]:
            rest = Section("", "")
            rest.sentences(more)
            section.fold(f"{figure(len(more))} more", rest)

    def _finding(self, finding: RepeatedAnomaly, *others: RepeatedAnomaly) -> list[str | Link]:
        said: list[str | Link] = []
        named = [place(finding.topic, finding.partition), finding.member or ""]
        whose = ", ".join(text for text in named if text)
        if finding.group is not None:
            said += [self._link(finding.group), f" {whose}: " if whose else ": "]
        else:
            said.append(f"{whose}: ")
        said.append(f"{anomaly_sentence(finding.kind, finding.evidence)}.")
        places = [place(other.topic, other.partition) for other in others]
        if places := [name for name in places if name]:
            said.append(f" Also on {first_of(places, 3)}.")
        small = when(finding.since_ms, finding.until_ms)
        if finding.score > 1:
            small += f"; {figure(round(finding.score, 1))} times its threshold"
        if (times := finding.count + sum(other.count for other in others)) > 1:
            small += f"; {figure(times)} times in all"
        return [*said, small]

    def moves(self) -> Section:
        section = Section("audit", "Who moved offsets")
        moves = self._facts.moves
        if moves is None:
            return self._suspects(section)
        section.figures(sorted(moves.counts.items(), key=lambda item: item[0]))
        if moves.notable:
            self._bounded(
                section, len(moves.notable), moves.notable_count, "moved offsets",
                "resets and deletions first",
            )  # fmt: skip
            section.table(
                ["when", "group", "partition", "before", "after", "moved", "by", "client",
                 "address", "principal"],
                [
                    [instant_text(row["at_ms"]), self._link(row["group"]),
                     place(row["topic"], row["partition"]), row["old_offset"], row["new_offset"],
                     row["moved"], spaced(row["by"]), row["client_id"], row["host"],
                     row["principal"]]
                    for row in moves.notable
                ],
            )  # fmt: skip
        else:
            section.note("No offset was reset, set or deleted.")
        if moves.ordinary:
            rest = Section("", "")
            rest.note(
                "Clients outside the members of a group that commit forward again and again: "
                "simple consumers."
            )
            rest.table(
                ["group", "client", "address", "commits", "partitions"],
                [
                    [self._link(row["group"]), row["client_id"], row["host"], row["commits"],
                     row["partitions"]]
                    for row in moves.ordinary
                ],
            )  # fmt: skip
            section.fold(
                f"{counted(moves.ordinary_count, 'ordinary commit')} of simple consumers", rest
            )
        return section

    def _suspects(self, section: Section) -> Section:
        facts = self._facts
        if facts.suspects is None:
            return self._empty(section, "audit", "audit")
        section.note(
            "Who moved them is in the history that Rollcall keeps. The log of a Kafka shows which "
            "offsets went back or were deleted, and not by whom."
        )
        if not facts.suspects:
            section.note("No offset went back or was deleted.")
            return section
        self._bounded(
            section, len(facts.suspects), facts.suspects_count, "offsets", "those that went back "
            "first",
        )  # fmt: skip
        section.table(
            ["when", "group", "partition", "before", "after"],
            [
                [instant_text(row["at_ms"]), self._link(row["group"]),
                 place(row["topic"], row["partition"]), row["old_offset"],
                 row["new_offset"] if row["new_offset"] is not None else "deleted"]
                for row in facts.suspects
            ],
        )  # fmt: skip
        return section

    # ------------------------------------------------------------ groups

    def groups(self) -> Section:
        section = Section("groups", "Group by group")
        there = max(self._facts.groups or 0, sum(self._facts.statuses.values()))
        there = max(there, len(self._facts.shown))
        self._bounded(section, len(self._facts.shown), there, "groups", "the worst first")
        return section

    def group(self, group: str) -> Section:
        facts = self._facts
        newest = facts.newest.get(group)
        status = newest["status"] if newest is not None else ""
        if not status and facts.health.get(group):
            status = facts.health[group][-1]["status"]
        section = Section(self._anchors[group], group, level=3, chip=status)
        lanes = []
        if group in facts.health:
            lanes.append(self._health_lane(group)._replace(name="health", href=""))
        if group in facts.rebalances:
            lanes.append(self._rebalance_lane(group)._replace(name="rebalances", href=""))
        if lanes:
            section.chart(timeline(lanes, facts.axis), f"Health and rebalances of {group}")
        if any(row["total_lag"] for row in facts.health.get(group, ())):
            line = self._lag_line(group)._replace(name="lag", href="")
            chart = lines_over_time([line], facts.axis, "records behind")
            section.chart(chart, f"Lag of {group}")
        found = [finding for finding in facts.findings if finding.group == group]
        if found:
            section.heading("What was unusual")
            self._list(section, found)
        self._forecast(section, group)
        self._causes_of(section, group)
        self._committers(section, group)
        section.parts.append('<p class="note"><a href="#attention">to the top</a></p>')
        return section

    def _forecast(self, section: Section, group: str) -> None:
        rows = self._facts.trend.get(group, ())
        if not rows:
            return
        section.heading("Forecast")
        section.note(
            "The linear trend of the samples of each partition's last hour, extended; the range is "
            "for a slope two standard errors steeper or flatter."
        )
        section.table(
            ["partition", "hour", "lag, records", "delay", "change, records/s", "±", "r²",
             "caught up in", "at best", "at worst"],
            [
                [
                    place(row["topic"], row["partition"]),
                    instant_text(row["hour_ms"]),
                    row["lag_last"],
                    duration_text(row["delay_p95_s"]) or "unknown",
                    row["slope_per_s"],
                    row["slope_error_per_s"],
                    row["r2"],
                    duration_text(row["catch_up_s"]) or "never",
                    duration_text(row["catch_up_low_s"]),
                    duration_text(row["catch_up_high_s"]) or at_worst(row["catch_up_s"]),
                ]
                for row in rows
            ],
        )  # fmt: skip

    def _causes_of(self, section: Section, group: str) -> None:
        rows = self._facts.rebalances.get(group, ())
        if not rows:
            return
        section.heading("Rebalances")
        section.table(
            ["began", "cause", "client", "took", "generation", "members", "partitions moved",
             "without an owner, partition-seconds"],
            [
                [
                    instant_text(row["began_at_ms"]),
                    spaced(row["cause"]) if row["cause"] else "unknown",
                    row["client_id"],
                    duration_text(None if (ms := row["duration_ms"]) is None else ms / 1000),
                    step_text(row["generation_before"], row["generation_after"]),
                    step_text(row["members_before"], row["members_after"]),
                    row["partitions_moved"],
                    row["unowned_partition_seconds"],
                ]
                for row in list(reversed(rows))[:FINDINGS_OF_A_KIND]
            ],
        )  # fmt: skip
        if len(rows) > FINDINGS_OF_A_KIND:
            section.note(f"The newest {FINDINGS_OF_A_KIND} of {figure(len(rows))}.")

    def _committers(self, section: Section, group: str) -> None:
        rows: Sequence[Row] = self._facts.clients.get(group, ())
        if not rows:
            return
        section.heading("Who committed")
        section.table(
            ["client", "member", "commits", "partitions"],
            [
                [row["client_id"] or "not a member", row["member_id"], row["commits"],
                 row["partitions"]]
                for row in rows[:FINDINGS_OF_A_KIND]
            ],
        )  # fmt: skip
        if len(rows) > FINDINGS_OF_A_KIND:
            section.note(f"The first {FINDINGS_OF_A_KIND} of {figure(len(rows))}.")

    # ------------------------------------------------------------ what is not known

    def sources(self) -> Section:
        section = Section("sources", "What this page is made of")
        rows: list[list[object]] = []
        for name, job in JOBS.items():
            note = self._results.note(name)
            there = [table for table in job.days if table in self._results.names]
            if note is None:
                made = ", ".join(there) or "has not run"
                rows.append([name, None, None, None, made])
                continue
            said = [f"{table}: {counted(count, 'row')}" for table, count in note.tables.items()]
            said += [f"{table}: {why}" for table, why in note.empty.items()]
            said += [note.log_ends] if note.log_ends else []
            rows.append(
                [
                    name,
                    note.source,
                    ", ".join(note.topics),
                    f"{instant(note.since_ms)} to {instant(note.until_ms)}",
                    "; ".join(said),
                ]
            )
        section.table(["job", "source", "topics", "span", "tables"], rows)
        return section

    def _empty(self, section: Section, job: str, table: str) -> Section:
        section.note(f"Nothing here: {self._why_empty(job, table)}")
        return section

    def _why_empty(self, job: str, table: str) -> str:
        note = self._results.note(job)
        if note is not None and table in note.empty:
            return f"{note.empty[table]}."
        if table not in self._results.names:
            return f"the job {job} has written no table {table}."
        return f"the table {table} has no rows in this span."

    def _bounded(self, section: Section, shown: int, there: int, what: str, which: str) -> None:
        if shown < there:
            section.note(f"Shown: {figure(shown)} of {figure(there)} {what}, {which}.")
