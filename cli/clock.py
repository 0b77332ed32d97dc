"""What time is it for a command? The wall clock, in the unit of all that Kafka writes down."""

from datetime import UTC, datetime


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return round(datetime.now(UTC).timestamp() * 1_000)
