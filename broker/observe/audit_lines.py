"""Audit lines: the audit log in the log, where it has no file of its own."""

from collections.abc import Iterable
from typing import Final

from broker.audit.entry import AuditEntry
from broker.observe.log_lines import LineTable, LogFields, LogLine, log_lines_for

AUDIT_LINES: Final[LineTable] = {}


@log_lines_for(AUDIT_LINES, AuditEntry)
def _(entry: AuditEntry) -> Iterable[LogLine]:
    fields: LogFields = {"audit": entry.kind}
    named = {
        "principal": entry.principal,
        "host": entry.host,
        "client_id": entry.client_id,
        "request": entry.request,
        "operation": entry.operation,
        "resource": entry.resource,
        "error": entry.error,
        "detail": entry.detail,
        "listener": entry.listener,
    }
    fields |= {name: value for name, value in named.items() if value}
    if entry.times > 1:
        fields["times"] = entry.times
    if entry.unnamed:
        fields["unnamed"] = entry.unnamed
    yield LogLine("info", entry.message, fields)
