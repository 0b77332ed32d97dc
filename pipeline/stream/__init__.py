"""Streaming: the health of groups as of now, batch by batch."""
