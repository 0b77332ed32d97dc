"""Consumers as processes, one script a client library; run by tests/interop/group.py."""
