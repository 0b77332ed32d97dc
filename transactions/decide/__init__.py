"""Decisions about transactional ids: one file for each request, and for what time brings."""
