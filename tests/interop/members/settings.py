"""Settings of a steered member: for steered.py, and for the test that starts it."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Settings:
    bootstrap: str
    topics: list[str]
    group: str
    client_id: str
    session_timeout_ms: int
    max_poll_interval_ms: int
    heartbeat_interval_ms: int = 300
    metadata_max_age_ms: int = 1_000
    instance_id: str | None = None
    jars: tuple[str, ...] = ()
    jvm: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))
