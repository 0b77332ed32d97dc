"""Storage: logs of record batches on disk. Knows bytes, keys and values, not groups."""
