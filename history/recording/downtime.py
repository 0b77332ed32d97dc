"""Downtime: how long the coordinator was down before a start, and how it had ended."""

from msgspec import Struct


class Downtime(Struct, frozen=True):
    """The fields of GroupLoadedEntry."""

    away_ms: int | None = None
    stopped: str = ""
