"""Dashboards: the Grafana dashboard and the alert rules use only what a live daemon exports."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from broker.metrics.family import MetricKind
from broker.metrics.scrape import all_families
from docs.make_dashboard import PATH, dashboard_text
from history.lag.model import LagStatus
from history.verdicts.model import VerdictKind
from tests.architecture.tree import ROOT
from tests.console.live import Samples
from tests.console.promql import Query, read

pytestmark = pytest.mark.xdist_group("console")

PROMETHEUS = ROOT / "deploy" / "prometheus"
FAMILIES = {family.name: family for family in all_families()}
ADDED_BY_PROMETHEUS = {"instance", "job"}
NOT_OURS = {"up"}  # Prometheus' own

# Families that a healthy daemon has no sample of, with the values that their labels may have.
ONLY_WITH_PROBLEMS = {
    "group_coordinator_lag_verdict": {"verdict": {str(status.value) for status in LagStatus}},
    "group_coordinator_group_lag_verdict": {"verdict": {"OK", "WARN", "ERR"}},
    "group_coordinator_group_troubles": {"kind": {kind.value for kind in VerdictKind}},
}


def dashboard() -> dict:
    return json.loads(PATH.read_text())


def rules() -> list[dict]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> dict[str, str]:
    """Of panels, variables, annotations and alerts: where it stands -> the expression."""
    board = dashboard()
    found = {
        f"panel {panel['title']} {target['refId']}": target["expr"]
        for panel in board["panels"]
        for target in panel.get("targets", [])
    }
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found[f"variable {variable['name']}"] = variable["query"]["query"]
    for annotation in board["annotations"]["list"]:
        found[f"annotation {annotation['name']}"] = annotation["expr"]
    for rule in rules():
        found[f"alert {rule['alert']}"] = rule["expr"]
    return found


EXPRESSIONS = expressions()


def base_name(name: str) -> str:
    for ending in ("_bucket", "_count", "_sum"):
        base = name.removesuffix(ending)
        if name not in FAMILIES and base in FAMILIES:
            assert FAMILIES[base].kind is MetricKind.HISTOGRAM
            return base
    return name


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_a_live_daemon_has_what_is_asked_for(place: str, shown: Samples) -> None:
    query = read(EXPRESSIONS[place])
    carried: set[str] = set(ADDED_BY_PROMETHEUS)
    for selector in query.selectors:
        if selector.name in NOT_OURS:
            continue
        family = FAMILIES[base_name(selector.name)]
        labels = {*family.labels, *ADDED_BY_PROMETHEUS}
        labels |= {"le"} if selector.name.endswith("_bucket") else set()
        carried |= labels
        assert {label for label, _, _ in selector.matchers} <= labels, selector
        series = [dict(labels) for name, labels in shown if name == selector.name]
        if selector.name in ONLY_WITH_PROBLEMS:
            known = ONLY_WITH_PROBLEMS[selector.name]
            assert all(
                value in known.get(label, {value})
                for label, sign, value in selector.matchers
                if sign == "="
            )
            continue
        assert series, f"{selector.name} is not exposed"
        # A state that is rare may be excluded by what is asked; a value that is named must exist.
        positive = [matcher for matcher in selector.matchers if matcher[1] in ("=", "=~")]
        selector.matchers = positive
        assert any(selector.takes(labels) for labels in series), (
            f"nothing is selected by {selector}"
        )
    assert query.labels <= carried, "grouped by a label that nothing has"


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_counters_are_rated_and_gauges_are_not(place: str) -> None:
    expr = EXPRESSIONS[place]
    for selector in read(expr).selectors:
        family = FAMILIES.get(base_name(selector.name))
        if family is None:
            continue
        rated = re.search(rf"(rate|increase)\({re.escape(selector.name)}\b", expr) is not None
        if family.kind is MetricKind.COUNTER and "failures" not in family.name:
            assert rated, f"{family.name} only grows"
        if family.kind is MetricKind.GAUGE:
            # The exceptions are offsets: gauges by what may happen to them, but they grow.
            assert not rated or family.name.endswith("_offset")


def test_legends_name_labels_that_the_result_has() -> None:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            query = read(target["expr"])
            have = query.labels or {
                label
                for selector in query.selectors
                for label in (*FAMILIES[base_name(selector.name)].labels, *ADDED_BY_PROMETHEUS)
            }
            asked = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            if target["legendFormat"] == "{{instance}}" and panel["type"] == "stat":
                continue  # one number: its legend is not shown
            assert asked <= have, f"{panel['title']}: {target['expr']}"


def test_the_dashboard_can_be_imported() -> None:
    board = dashboard()
    assert PATH.read_text() == dashboard_text(), "run `make docs`"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    titles = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    for wanted in ("Overview", "Groups", "Rebalances by cause", "Lag", "Commits", "Durability"):
        assert wanted in titles
    # The data source is chosen at the import; nothing is tied to one.
    sources = {
        json.dumps(panel["datasource"]) for panel in board["panels"] if "datasource" in panel
    }
    assert sources == {json.dumps({"type": "prometheus", "uid": "${datasource}"})}
    # No two panels in one place.
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_each_alert_says_what_it_means_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) >= 20
    for rule in rules():
        assert rule["alert"].startswith("Rollcall")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}
        for text in rule["annotations"].values():
            assert len(text) > 20
            # What it mentions exists.
            for name in re.findall(r"\b(?:rollcall|group_coordinator)_\w+", text):
                assert base_name(name) in FAMILIES, name
            for label in re.findall(r"\$labels\.(\w+)", text):
                query = read(rule["expr"])
                have = set(query.labels) or {
                    label
                    for selector in query.selectors
                    if selector.name in FAMILIES
                    for label in FAMILIES[selector.name].labels
                }
                assert label in have | ADDED_BY_PROMETHEUS


def test_the_reader_of_queries_sees_everything() -> None:
    query = read(
        "topk(5, histogram_quantile(0.9, "
        'sum by (a, le) (rate(x_bucket{b="1",c=~"$d",e!~"f|g"}[5m])))'
        " / on (instance) max(y) > 0.5 and z == 0)"
    )
    assert [selector.name for selector in query.selectors] == ["x_bucket", "y", "z"]
    assert query.selectors[0].matchers == [("b", "=", "1"), ("c", "=~", "$d"), ("e", "!~", "f|g")]
    assert query.labels == {"a", "le", "instance"}
    assert query.selectors[0].takes({"b": "1", "e": "h"})
    assert not query.selectors[0].takes({"b": "2", "e": "h"})
    assert not query.selectors[0].takes({"b": "1", "e": "g"})
    assert read('label_values(x{a="1"}, b)') == Query(
        [type(query.selectors[0])("x", [("a", "=", "1")])], {"b"}
    )
    for nonsense in ("histogram_quartile(x)", "sum(", "1 + 1", "x{a='b'}"):
        with pytest.raises((ValueError, AssertionError)):
            read(nonsense)


def promtool(*arguments: str | Path) -> None:
    """Prometheus' own tool, where it is at hand."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("there is no promtool here")
    done = subprocess.run(
        [found, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_world_in_which_it_fires() -> None:
    worlds = yaml.safe_load((PROMETHEUS / "alerts.test.yaml").read_text())["tests"]
    fires = {
        re.findall(r'alertname="(\w+)"', case["expr"])[0]
        for world in worlds
        for case in world["promql_expr_test"]
        if case.get("exp_samples")
    }
    assert fires == {rule["alert"] for rule in rules()}
    exposed = {
        base_name(re.split(r"[{ ]", series["series"])[0])
        for world in worlds
        for series in world["input_series"]
    }
    assert exposed <= FAMILIES.keys() | NOT_OURS


def test_prometheus_takes_the_rules_and_they_fire_as_they_should() -> None:
    promtool("check", "rules", PROMETHEUS / "alerts.yaml")
    promtool("test", "rules", PROMETHEUS / "alerts.test.yaml")
