"""Report files: report.json, report.md and picture.svg, written into one folder."""

import json
from pathlib import Path

from drills.picture import draw_picture
from drills.report import PICTURE, DrillReport, report_as_json, report_as_markdown


def write_report(report: DrillReport, folder: Path) -> None:
    """Files of an earlier drill in this folder are replaced. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps(report_as_json(report), indent=1)
    (folder / "report.json").write_text(document + "\n", "utf-8")
    (folder / "report.md").write_text(report_as_markdown(report), "utf-8")
    picture = draw_picture(report.runs, report.scenario.partitions)
    (folder / PICTURE).write_text(picture, "utf-8")
