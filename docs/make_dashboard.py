"""Grafana dashboard: deploy/grafana/rollcall.json, an operator's questions and their queries.

A table of rows and panels, from which the JSON is generated. `make docs` writes the file, a test
compares it, and another test checks every metric name and label in it against a live daemon.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).parents[1] / "deploy" / "grafana" / "rollcall.json"

HERE: Final = 'instance=~"$instance"'
GROUP: Final = f'{HERE},group=~"$group"'
RATE: Final = "$__rate_interval"
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS: Final = 24
HEIGHT: Final = 7


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = "{{instance}}"


@dataclass(frozen=True)
class Panel:
    """`kind`: timeseries, stat or table. `meaning` is shown when a reader asks."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    meaning: str = ""
    stacked: bool = False


@dataclass(frozen=True)
class Row:
    title: str
    panels: Sequence[Panel]


def now(name: str, more: str = "", by: str = "instance") -> str:
    return f"sum by ({by}) ({name}{{{_and(more)}}})"


def rate(name: str, more: str = "", by: str = "instance") -> str:
    return f"sum by ({by}) (rate({name}{{{_and(more)}}}[{RATE}]))"


def quantile(share: float, name: str, by: str = "instance") -> str:
    labels = f"{by}, le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({name}_bucket{{{HERE}}}[{RATE}])))"


def quantiles(name: str) -> list[Query]:
    return [
        Query(quantile(0.5, name), "p50 {{instance}}"),
        Query(quantile(0.99, name), "p99 {{instance}}"),
    ]


def top(count: int, expr: str) -> str:
    return f"topk({count}, {expr})"


def _and(more: str) -> str:
    return f"{HERE},{more}" if more else HERE


def stat(title: str, expr: str, unit: str = "short", meaning: str = "") -> Panel:
    return Panel(title, [Query(expr)], unit, "stat", 3, meaning)


OVERVIEW: Final = Row(
    "Overview",
    [
        stat(
            "Ready",
            f"min(rollcall_ready{{{HERE}}})",
            meaning="1 if the daemon is ready for clients.",
        ),
        stat("Groups", f"sum(group_coordinator_groups{{{HERE}}})"),
        stat("Members", f"sum(group_coordinator_members{{{HERE}}})"),
        stat(
            "Records behind",
            f"sum(group_coordinator_group_lag_records{{{HERE}}})"
            f" + sum(rollcall_metrics_left_out_lag_records{{{HERE}}})",
            meaning="All groups, including those without their own series.",
        ),
        stat(
            "Groups with status ERR",
            f'sum(group_coordinator_groups_by_lag_verdict{{{HERE},verdict="ERR"}})',
            meaning="By the status of their lag.",
        ),
        stat("Rebalances running", f"sum(group_coordinator_rebalances_running{{{HERE}}})"),
        stat("Up since", f"min(rollcall_uptime_seconds{{{HERE}}})", "s"),
        Panel(
            "Version",
            [Query(f"rollcall_build_info{{{HERE}}}", "{{version}}")],
            kind="stat",
            width=3,
        ),
        Panel(
            "Requests",
            [Query(rate("rollcall_requests_total", by="request"), "{{request}}")],
            "reqps",
            stacked=True,
        ),
        Panel(
            "Time to answer, p99",
            [
                Query(quantile(0.99, "rollcall_request_seconds", "request"), "{{request}}"),
            ],
            "s",
            meaning="For JoinGroup, SyncGroup and Fetch it includes the wait for others.",
        ),
        Panel(
            "Errors in answers",
            [
                Query(
                    rate("rollcall_request_errors_total", by="request, error"),
                    "{{request}} {{error}}",
                )
            ],
            "cps",
            meaning="Many are normal: REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED.",
        ),
        Panel("Connections", [Query(now("rollcall_connections"))]),
        Panel(
            "Connections closed or refused",
            [Query(rate("rollcall_connections_dropped_total", by="cause"), "{{cause}}")],
            "cps",
        ),
        Panel(
            "Data produced and fetched",
            [
                Query(rate("rollcall_appended_bytes_total"), "produced {{instance}}"),
                Query(rate("rollcall_fetched_bytes_total"), "fetched {{instance}}"),
            ],
            "Bps",
        ),
    ],
)

GROUPS: Final = Row(
    "Groups",
    [
        Panel(
            "Groups by state",
            [Query(now("group_coordinator_groups", by="state"), "{{state}}")],
            stacked=True,
        ),
        Panel(
            "Members of each group",
            [Query(top(20, f"group_coordinator_group_members{{{GROUP}}}"), "{{group}}")],
        ),
        Panel(
            "Members added and removed",
            [
                Query(rate("group_coordinator_members_added_total"), "added {{instance}}"),
                Query(rate("group_coordinator_members_removed_total", by="cause"), "{{cause}}"),
                Query(rate("group_coordinator_members_fenced_total"), "fenced {{instance}}"),
            ],
            "cps",
        ),
        Panel(
            "Groups that are not Stable or Empty",
            [
                Query(
                    f'group_coordinator_group_state{{{GROUP},state!~"Stable|Empty"}}',
                    "{{group}} {{state}}",
                )
            ],
            kind="table",
        ),
        Panel(
            "Delayed operations",
            [Query(now("rollcall_purgatory_operations", by="kind"), "{{kind}}")],
            meaning="Operations in the purgatory: joins, syncs, sessions, fetches.",
        ),
        Panel(
            "Next deadline in the purgatory",
            [
                Query(
                    f"min by (kind) (rollcall_purgatory_next_deadline_seconds{{{HERE}}})",
                    "{{kind}}",
                )
            ],
            "s",
        ),
        Panel(
            "Groups and offsets deleted",
            [
                Query(
                    rate("group_coordinator_group_deletions_total", by="cause"), "groups {{cause}}"
                ),
                Query(
                    rate("group_coordinator_offset_deletions_total", by="cause"),
                    "offsets {{cause}}",
                ),
            ],
            "cps",
        ),
        Panel(
            "Static members replaced, expired sessions forgiven",
            [
                Query(rate("group_coordinator_static_members_replaced_total"), "replaced"),
                Query(rate("group_coordinator_sessions_forgiven_total"), "forgiven"),
            ],
            "cps",
        ),
        Panel(
            "Without their own series",
            [
                Query(now("rollcall_metrics_groups_left_out"), "groups"),
                Query(now("rollcall_metrics_partitions_left_out"), "partitions of groups"),
                Query(now("rollcall_metrics_topic_partitions_left_out"), "partitions of topics"),
            ],
            meaning="rollcall.metrics.groups.max and rollcall.metrics.partitions.max are reached.",
        ),
    ],
)

REBALANCES: Final = Row(
    "Rebalances by cause",
    [
        Panel(
            "Rebalances begun",
            [Query(rate("group_coordinator_rebalances_begun_total", by="cause"), "{{cause}}")],
            "cps",
            stacked=True,
        ),
        Panel(
            "Rebalances completed (Stable)",
            [Query(rate("group_coordinator_rebalances_completed_total", by="cause"), "{{cause}}")],
            "cps",
            stacked=True,
        ),
        Panel(
            "Rebalances by how they ended",
            [Query(rate("group_coordinator_rebalances_ended_total", by="end"), "{{end}}")],
            "cps",
            stacked=True,
        ),
        Panel(
            "Partition-seconds without an owner, per second",
            [
                Query(
                    rate("group_coordinator_unowned_partition_seconds_total", by="cause"),
                    "{{cause}}",
                )
            ],
            meaning="Average number of partitions without an owner because of rebalances.",
            stacked=True,
        ),
        Panel(
            "Partitions moved",
            [Query(rate("group_coordinator_partitions_moved_total", by="cause"), "{{cause}}")],
            "cps",
            stacked=True,
        ),
        Panel("Duration", quantiles("group_coordinator_rebalance_seconds"), "s"),
        Panel(
            "Delay of joins",
            quantiles("group_coordinator_join_delay_seconds"),
            "s",
            meaning="From the begin of the rebalance to a member's JoinGroup.",
        ),
        Panel(
            "Wait of joins for other members",
            quantiles("group_coordinator_join_wait_seconds"),
            "s",
        ),
        Panel(
            "Longest running rebalance",
            [Query(f"group_coordinator_rebalance_oldest_seconds{{{HERE}}}")],
            "s",
        ),
        Panel(
            "Groups that rebalance most",
            [
                Query(
                    top(10, f"changes(group_coordinator_group_generation{{{GROUP}}}[15m]) > 0"),
                    "{{group}}",
                )
            ],
            meaning="Generations in 15 minutes. `rollcall why GROUP` shows the causes.",
        ),
        Panel(
            "Members waited for, by outcome",
            [Query(rate("group_coordinator_waited_for_members_total", by="end"), "{{end}}")],
            "cps",
        ),
        Panel(
            "Events in the history",
            [
                Query(rate("rollcall_history_events_written_total"), "written"),
                Query(rate("rollcall_history_events_lost_total"), "lost"),
            ],
            "cps",
        ),
    ],
)

LAG: Final = Row(
    "Lag",
    [
        Panel(
            "Records behind",
            [Query(top(20, f"group_coordinator_group_lag_records{{{GROUP}}}"), "{{group}}")],
        ),
        Panel(
            "Seconds behind",
            [Query(top(20, f"group_coordinator_group_max_lag_seconds{{{GROUP}}}"), "{{group}}")],
            "s",
            meaning="Lag of the group's partition that is furthest behind.",
        ),
        Panel(
            "Groups by lag status",
            [Query(now("group_coordinator_groups_by_lag_verdict", by="verdict"), "{{verdict}}")],
            stacked=True,
        ),
        Panel(
            "Partitions with the most lag",
            [
                Query(
                    top(20, f"group_coordinator_lag_records{{{GROUP}}} > 0"),
                    "{{group}} {{topic}}-{{partition}}",
                )
            ],
            kind="table",
            width=12,
        ),
        Panel(
            "Partitions whose status is not OK",
            [
                Query(
                    f"group_coordinator_lag_verdict{{{GROUP}}}",
                    "{{group}} {{topic}}-{{partition}} {{verdict}}",
                )
            ],
            kind="table",
            width=12,
            meaning="STOP: no more commits. STALL: always the same offset. REWIND: it went back.",
        ),
        Panel(
            "Current verdicts",
            [Query(now("group_coordinator_troubles", by="kind"), "{{kind}}")],
            meaning="On all groups. `rollcall verdicts` shows the evidence and the remedy.",
            stacked=True,
        ),
        Panel(
            "Groups with verdicts",
            [Query(f"group_coordinator_group_troubles{{{GROUP}}}", "{{group}} {{kind}}")],
            kind="table",
        ),
        Panel(
            "Consumed",
            [
                Query(
                    top(
                        20,
                        "sum by (group) "
                        f"(rate(group_coordinator_committed_offset{{{GROUP}}}[5m]) >= 0)",
                    ),
                    "{{group}}",
                )
            ],
            "cps",
            meaning="Records per second that each group commits; wrong while an offset goes back.",
        ),
        Panel(
            "Produced",
            [
                Query(
                    top(
                        20,
                        "sum by (topic) "
                        f'(rate(rollcall_partition_end_offset{{{HERE},topic!~"__.*"}}[5m]))',
                    ),
                    "{{topic}}",
                )
            ],
            "cps",
        ),
        Panel(
            "Sampling",
            [
                Query(f"rollcall_lag_round_seconds{{{HERE}}}", "round"),
                Query(f"rollcall_lag_round_busy_seconds{{{HERE}}}", "event loop busy"),
            ],
            "s",
        ),
    ],
)

COMMITS: Final = Row(
    "Commits",
    [
        Panel(
            "Offsets committed",
            [Query(rate("group_coordinator_offset_commits_total"))],
            "cps",
        ),
        Panel(
            "Offsets committed by non-members",
            [Query(rate("group_coordinator_outside_offset_commits_total"))],
            "cps",
            meaning="Tools, and consumers that are not members of the group.",
        ),
        Panel(
            "Offsets moved by non-members",
            [Query(rate("group_coordinator_offsets_moved_total", by="by"), "{{by}}")],
            "cps",
        ),
        Panel(
            "Time until a commit is answered",
            [
                Query(
                    "histogram_quantile(0.5, sum by (le) (rate(rollcall_request_seconds_bucket"
                    f'{{{HERE},request="OffsetCommit"}}[{RATE}])))',
                    "p50",
                ),
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(rollcall_request_seconds_bucket"
                    f'{{{HERE},request="OffsetCommit"}}[{RATE}])))',
                    "p99",
                ),
            ],
            "s",
        ),
        Panel("Offsets kept", [Query(now("group_coordinator_offsets"))]),
        Panel(
            "Assignments that could not be stored",
            [Query(rate("group_coordinator_assignments_refused_total"))],
            "cps",
        ),
    ],
)

DURABILITY: Final = Row(
    "Durability",
    [
        Panel("Journal: duration of a flush", quantiles("rollcall_journal_flush_seconds"), "s"),
        Panel("Journal: flushes", [Query(rate("rollcall_journal_flushes_total"))], "cps"),
        Panel(
            "Journal: partitions that share a flush",
            [Query(quantile(0.5, "rollcall_journal_flush_partitions"), "p50 {{instance}}")],
        ),
        Panel(
            "Journal: queue",
            [
                Query(now("rollcall_journal_queue_bytes"), "used {{instance}}"),
                Query(now("rollcall_journal_queue_limit_bytes"), "limit {{instance}}"),
            ],
            "bytes",
        ),
        Panel("Journal: bytes", [Query(rate("rollcall_journal_stored_bytes_total"))], "Bps"),
        Panel(
            "Checkpoints: time spent, per second",
            [
                Query(rate("rollcall_journal_checkpoint_seconds_total"), "checkpoint thread"),
                Query(rate("rollcall_journal_checkpoint_wait_seconds_total"), "commits waited"),
            ],
            "s",
        ),
        Panel(
            "Failures",
            [
                Query(now("rollcall_journal_failed"), "journal failed"),
                Query(now("rollcall_journal_full"), "disk full"),
                Query(now("rollcall_journal_flush_age_seconds"), "running flush (s)"),
                Query(now("rollcall_journal_failures_total"), "writes and fsyncs"),
                Query(now("rollcall_offline_partitions"), "offline partitions"),
            ],
        ),
        Panel(
            "Partitions of the offsets topic",
            [Query(now("group_coordinator_partitions", by="state"), "{{state}}")],
            stacked=True,
        ),
        Panel(
            "Duration of loads",
            quantiles("group_coordinator_partition_load_seconds"),
            "s",
        ),
        Panel(
            "Running load",
            [
                Query(now("rollcall_load_read_bytes"), "read {{instance}}"),
                Query(now("rollcall_load_to_read_bytes"), "to read {{instance}}"),
            ],
            "bytes",
        ),
        Panel(
            "Snapshots",
            [
                Query(rate("rollcall_snapshots_taken_total"), "taken {{instance}}"),
                Query(rate("rollcall_snapshots_failed_total"), "failed {{instance}}"),
            ],
            "cps",
            meaning="A start reads the log after the last snapshot.",
        ),
    ],
)

STORAGE: Final = Row(
    "Logs and cleaner",
    [
        Panel("All logs", [Query(now("rollcall_log_bytes"))], "bytes"),
        Panel(
            "The offsets topic",
            [Query(now("rollcall_partition_log_bytes", 'topic="__consumer_offsets"'))],
            "bytes",
            meaning="It falls when its partitions are cleaned.",
        ),
        Panel(
            "Cleaner: bytes read and written",
            [
                Query(rate("rollcall_cleaner_read_bytes_total"), "read {{instance}}"),
                Query(rate("rollcall_cleaner_written_bytes_total"), "written {{instance}}"),
            ],
            "Bps",
        ),
        Panel(
            "Cleaner: dirtiest log, fullest map",
            [
                Query(f"rollcall_cleaner_max_dirty_ratio{{{HERE}}}", "dirty {{instance}}"),
                Query(f"rollcall_cleaner_buffer_utilization_ratio{{{HERE}}}", "map {{instance}}"),
            ],
            "percentunit",
        ),
        Panel(
            "Cleaner: passes, and partitions that cannot be cleaned",
            [
                Query(rate("rollcall_cleaner_runs_total"), "passes {{instance}}"),
                Query(now("rollcall_cleaner_uncleanable_partitions"), "uncleanable {{instance}}"),
            ],
        ),
        Panel(
            "Largest topics",
            [
                Query(
                    top(10, now("rollcall_partition_log_bytes", by="topic")),
                    "{{topic}}",
                )
            ],
            "bytes",
        ),
    ],
)

NODE: Final = Row(
    "Loop and process",
    [
        Panel(
            "Delay of the event loop",
            quantiles("rollcall_event_loop_lag_seconds"),
            "s",
        ),
        Panel(
            "Longest turns",
            [Query(f"rollcall_longest_turn_seconds{{{HERE}}}", "{{kind}}")],
            "s",
            meaning="Longest block of the loop in the last one to two minutes, by kind of work.",
        ),
        Panel(
            "Long turns",
            [Query(rate("rollcall_long_turns_total", by="kind"), "{{kind}}")],
            "cps",
            meaning="Turns of more than 5 ms.",
        ),
        Panel("Garbage collector: pauses", quantiles("rollcall_gc_pause_seconds"), "s"),
        Panel(
            "CPU",
            [Query(rate("process_cpu_seconds_total"))],
            "percentunit",
            meaning="1 is one core. The loop uses up to one, the journal's thread part of another.",
        ),
        Panel(
            "Memory",
            [Query(now("process_resident_memory_bytes"))],
            "bytes",
        ),
        Panel(
            "File descriptors",
            [
                Query(now("process_open_fds"), "open {{instance}}"),
                Query(now("process_max_fds"), "limit {{instance}}"),
            ],
        ),
        Panel(
            "Stalls",
            [Query(rate("rollcall_event_loop_stall_seconds_total"))],
            "s",
            meaning="Share of time in which the process did not run.",
        ),
        Panel(
            "Unexpected errors",
            [
                Query(rate("rollcall_internal_failures_total"), "outside requests"),
                Query(rate("rollcall_request_failures_total", by="request"), "{{request}}"),
                Query(rate("rollcall_log_lines_lost_total"), "log lines lost"),
            ],
            "cps",
        ),
    ],
)

ROWS: Final = (OVERVIEW, GROUPS, REBALANCES, LAG, COMMITS, DURABILITY, STORAGE, NODE)

Json = dict[str, object]


def dashboard() -> Json:
    panels: list[Json] = []
    y = 0
    for row in ROWS:
        panels.append(_row(len(panels) + 1, row.title, y))
        y += 1
        x = tallest = 0
        for panel in row.panels:
            height = 4 if panel.kind == "stat" else HEIGHT
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            place = {"x": x, "y": y, "w": panel.width, "h": height}
            panels.append(_panel(len(panels) + 1, panel, place))
            x += panel.width
            tallest = max(tallest, height)
        y += tallest
    return {
        "uid": "rollcall",
        "title": "Rollcall",
        "description": "Consumer groups, their lag and their coordinator.",
        "tags": ["kafka", "rollcall"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": [_restarts()]},
        "templating": {"list": _variables()},
        "panels": panels,
    }


def _row(number: int, title: str, y: int) -> Json:
    place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
    return {
        "id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place,
        "panels": [],
    }  # fmt: skip


def _panel(number: int, panel: Panel, place: Json) -> Json:
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": DATASOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
            **({"instant": True, "format": "table"} if panel.kind == "table" else {}),
        }
        for at, query in enumerate(panel.queries)
    ]
    custom: Json = {"fillOpacity": 10, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    made: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                **({"custom": custom} if panel.kind == "timeseries" else {}),
            },
            "overrides": [],
        },
        "targets": targets,
    }
    if panel.title == "Version":
        made["options"] = {"textMode": "name", "graphMode": "none"}
    return made


def _restarts() -> Json:
    return {
        "name": "Restarts",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "orange",
        "expr": f"changes(rollcall_start_time_seconds{{{HERE}}}[1m]) > 0",
        "titleFormat": "Restart of {{instance}}",
    }


def _variables() -> list[Json]:
    def of_label(name: str, query: str, label: str) -> Json:
        return {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            # Of many groups a list of all would be longer than a query may be.
            **({"allValue": ".*"} if name == "group" else {}),
            "current": {"text": "All", "value": "$__all"},
            "sort": 1,
        }

    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        of_label("instance", "label_values(rollcall_build_info, instance)", "Instance"),
        of_label(
            "group",
            f"label_values(group_coordinator_group_members{{{HERE}}}, group)",
            "Group",
        ),
    ]


def dashboard_text() -> str:
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(dashboard_text())
