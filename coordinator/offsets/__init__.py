"""Committed offsets: commit, fetch, delete and expiry, the same for every group type."""
