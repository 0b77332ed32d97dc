"""Member processes: one script for each client library; run by tests/interop/group.py."""
