"""Handlers: one file per request of the data plane."""
