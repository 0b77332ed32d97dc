"""Logs of record batches. Knows bytes, keys and values, not groups."""
