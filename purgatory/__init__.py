"""Waiting, in the abstract: by key, until a deadline, ended exactly once."""
