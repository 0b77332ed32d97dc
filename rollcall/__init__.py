"""Rollcall: a Kafka group coordinator that explains itself. What users import lives here."""

__version__ = "0.1.0"
