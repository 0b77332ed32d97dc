"""Fixtures: those of the plugin, also where the installed package is older than its entry point."""

from rollcall.pytest_plugin import (
    _rollcall_server,
    rollcall,
    rollcall_factory,
    rollcall_session,
)

__all__ = ["_rollcall_server", "rollcall", "rollcall_factory", "rollcall_session"]
