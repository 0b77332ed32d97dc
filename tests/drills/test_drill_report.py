"""Reports: the JSON document, the Markdown page and the picture of a drill."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from drills.events import DrillEvent, Kind
from drills.files import write_report
from drills.judge import judge
from drills.members import BadLine, parse_line
from drills.report import DrillReport
from drills.runner import DrillRun
from drills.scenario import Promises, parse_scenario
from tests.drills.test_judge import Group, formed, give_to_two

SVG = "{http://www.w3.org/2000/svg}"
SCENARIO = parse_scenario('[[step]]\ndo = "kill"\ntarget = "m1"\n', "x|y.toml")


def run_of(group: Group) -> DrillRun:
    measures = group.measures()
    return DrillRun(
        "model",
        ("a", "b"),
        tuple(group.events),
        measures,
        tuple(judge(measures, Promises())),
        group.events[0].at_s,
    )


def failed_group() -> Group:
    group = formed()
    group.note("daemon", Kind.READY)
    group.fault()
    group.note("daemon", Kind.KILLED)
    group.note("a", Kind.STALLED)
    group.note("a", Kind.RESUMED)
    give_to_two(group)
    return group


def written(folder: Path, *groups: Group) -> dict:
    runs = tuple(run_of(group) for group in groups)
    report = DrillReport(SCENARIO, "", "1.2.3", "2026-11-24T05:00:00Z", runs)
    write_report(report, folder)
    return json.loads((folder / "report.json").read_text())


def test_the_json_report_has_each_measure(tmp_path: Path) -> None:
    found = written(tmp_path, failed_group())

    assert (found["drill"], found["passed"], found["against"]) == ("x|y", False, None)
    model = found["clients"]["model"]
    assert model["time_to_recover_s"] is None
    for name in ("records_read_twice", "records_lost", "commits_lost", "rebalances"):
        assert model[name] == 0
    assert model["ownership_overlaps"] == 1
    broken = [p["promise"] for p in model["promises"] if not p["is_kept"]]
    assert broken == ["recover_within_s", "ownership_overlaps_max"]
    assert model["overlaps"][0]["member"] == "b"
    assert len(model["events"]) == len(failed_group().events)
    assert model["events"][0]["at_s"] == 0


def test_the_page_names_what_was_broken(tmp_path: Path) -> None:
    written(tmp_path, failed_group())
    page = (tmp_path / "report.md").read_text()

    assert page.startswith("# Drill x|y: FAILED")
    assert "recover_within_s = 60: never (BROKEN)" in page
    assert "ownership_overlaps_max = 0: 1 (BROKEN)" in page
    assert "commits_lost_max = 0: 0 (kept)" in page
    assert "(picture.svg)" in page


def test_a_drill_without_a_fault_passes(tmp_path: Path) -> None:
    assert written(tmp_path, formed())["passed"]
    assert "there was no fault (kept)" in (tmp_path / "report.md").read_text()


def test_the_picture_has_lanes_faults_and_silences(tmp_path: Path) -> None:
    written(tmp_path, failed_group(), formed())
    root = ET.parse(tmp_path / "picture.svg").getroot()

    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    for words in (
        "a owns partition 0, ",
        "b owns partition 1, ",
        "daemon answers, ",
        "a: stalled, ",
        "kill daemon",
    ):
        assert any(title.startswith(words) for title in titles), words
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a", "b", "daemon", "model: FAILED", "model: passed"} <= set(texts)
    assert float(root.get("viewBox", "").split()[3]) > 100


def test_the_lines_of_a_member() -> None:
    def event(line: str) -> DrillEvent | None:
        return parse_line("m1", line, 5.0)

    assert event('{"event": "assigned", "partitions": [1, 2], "at_ns": 2500000000}') == DrillEvent(
        2.5, "m1", Kind.ASSIGNED, (1, 2)
    )
    assert event('{"event": "read", "partition": 3, "offsets": [7]}') == DrillEvent(
        5.0, "m1", Kind.READ, offsets=((3, 7),)
    )
    assert event('{"event": "committed", "offsets": {"3": 8}}') == DrillEvent(
        5.0, "m1", Kind.COMMITTED, offsets=((3, 8),)
    )
    assert event('{"event": "subscribed"}') is None
    for line in ("hello", "[]", '{"event": "read"}', '{"event": "assigned", "partitions": ["x"]}'):
        with pytest.raises(BadLine, match=re.escape(line)):
            event(line)
