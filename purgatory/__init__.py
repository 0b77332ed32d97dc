"""Purgatory: delayed operations, watched by key, expired by deadline, each ended exactly once."""
