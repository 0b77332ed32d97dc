"""Run summary: what a run did, as JSON for schedulers and alerts."""

import json
from collections.abc import Mapping

from msgspec import Struct, field

from seams.text import instant


class RunSummary(Struct):
    """Filled while the run goes on. Times in ms since the epoch; a table's rows, by its name."""

    job: str
    source: str
    out: str
    since_ms: int
    until_ms: int
    began_ms: int
    engine: str = ""
    why: str = ""
    log_ends: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self, now_ms: int) -> str:
        said: Mapping[str, object] = {
            "job": self.job,
            "from": self.source,
            "to": self.out,
            "engine": self.engine,
            "engine_reason": self.why,
            "since": instant(self.since_ms),
            "until": instant(self.until_ms),
            "began_at": instant(self.began_ms),
            "seconds": round((now_ms - self.began_ms) / 1_000, 3),
            **({"log_ends": self.log_ends} if self.log_ends else {}),
            "rows": self.rows,
            "seconds_by_job": self.seconds,
        }
        return json.dumps(said, indent=1) + "\n"
