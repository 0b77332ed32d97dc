"""Observation: events of all parts become log lines and counters."""
