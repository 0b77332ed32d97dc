"""Audit folding: what repeats is one entry at once, and then one each interval with its count.

A client cannot flood the log: it gets a limited number of entries of each interval, and so do all
clients together. What has no room is counted, and the count is an entry. No clock: time is given.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from broker.audit.entry import AuditEntry, AuditKind

AUDIT_INTERVAL_MS: Final = 10_000

NAMED_PER_CLIENT_MAX: Final = {
    AuditKind.REFUSED: 50,
    AuditKind.AUTHENTICATION_FAILED: 20,
    AuditKind.ADMINISTRATIVE: 1_000,
}
"""Different entries of one principal and host in an interval."""

AUDIT_ENTRIES_MAX: Final = 2_000
"""Different entries of one kind in an interval, of all clients; each takes about 1 kB."""

AUDIT_CLIENTS_MAX: Final = 1_000
"""Clients of one kind that are counted apart."""

_ClientKey = tuple[str, str]
_OTHERS: Final[_ClientKey] = ("", "")
"""Stands for the clients beyond AUDIT_CLIENTS_MAX."""

_Key = tuple[str, ...]


class _Repeated:
    __slots__ = ("client", "count", "entry", "until_ms")

    def __init__(self, entry: AuditEntry, client: _ClientKey, until_ms: int) -> None:
        self.entry, self.client, self.until_ms, self.count = entry, client, until_ms, 0


class _Named:
    """One client: how many entries it has now, and how many had no room since the last summary."""

    __slots__ = ("named", "unnamed", "until_ms")

    def __init__(self, until_ms: int) -> None:
        self.named, self.unnamed, self.until_ms = 0, 0, until_ms


class FoldingSizes(Struct, frozen=True):
    """How much is kept now."""

    entries: int
    clients: int


class AuditFolding:
    """The entries of one kind, so that a flood of refusals hides no administrative action."""

    def __init__(self, kind: AuditKind) -> None:
        self._kind = kind
        self._per_client_max = NAMED_PER_CLIENT_MAX[kind]
        # Both in the order of `until_ms`: all intervals are of one length.
        self._entries: dict[_Key, _Repeated] = {}
        self._clients: dict[_ClientKey, _Named] = {}

    @property
    def sizes(self) -> FoldingSizes:
        return FoldingSizes(len(self._entries), len(self._clients))

    @property
    def next_deadline_ms(self) -> int | None:
        entry = next(iter(self._entries.values()), None)
        client = next(iter(self._clients.values()), None)
        return min((first.until_ms for first in (entry, client) if first is not None), default=None)

    def take(self, entry: AuditEntry, now_ms: int) -> AuditEntry | None:
        """The entry to write now; None if it is counted instead."""
        key = _key_of(entry)
        known = self._entries.get(key)
        if known is not None:
            known.count += 1
            return None
        client_key = self._client_key(entry)
        client = self._clients.get(client_key)
        if client is None:
            client = self._clients[client_key] = _Named(now_ms + AUDIT_INTERVAL_MS)
        if client.named >= self._per_client_max or len(self._entries) >= AUDIT_ENTRIES_MAX:
            client.unnamed += 1
            return None
        client.named += 1
        self._entries[key] = _Repeated(entry, client_key, now_ms + AUDIT_INTERVAL_MS)
        return entry

    def _client_key(self, entry: AuditEntry) -> _ClientKey:
        """One that fails to authenticate may name any user: then only its host counts."""
        is_known = self._kind is not AuditKind.AUTHENTICATION_FAILED
        key = (entry.principal if is_known else "", entry.host)
        if key not in self._clients and len(self._clients) >= AUDIT_CLIENTS_MAX:
            return _OTHERS
        return key

    def tick(self, now_ms: int) -> list[AuditEntry]:
        """Counts whose interval is over."""
        return self._due(now_ms)

    def finish(self) -> list[AuditEntry]:
        """All counts, whatever the time."""
        return self._due(None)

    def _due(self, now_ms: int | None) -> list[AuditEntry]:
        due: list[AuditEntry] = []
        for key, known in tuple(self._entries.items()):
            if now_ms is not None and known.until_ms > now_ms:
                break
            del self._entries[key]
            if known.count:
                due.append(replace(known.entry, times=known.count))
            if known.count and now_ms is not None:  # it goes on, probably
                known.count, known.until_ms = 0, now_ms + AUDIT_INTERVAL_MS
                self._entries[key] = known
            elif (client := self._clients.get(known.client)) is not None:
                client.named -= 1
        for client_key, client in tuple(self._clients.items()):
            if now_ms is not None and client.until_ms > now_ms:
                break
            del self._clients[client_key]
            if client.unnamed:
                due.append(
                    AuditEntry(self._kind, client_key[0], client_key[1], unnamed=client.unnamed)
                )
            if client.named and now_ms is not None:
                client.unnamed, client.until_ms = 0, now_ms + AUDIT_INTERVAL_MS
                self._clients[client_key] = client
        return due


def _key_of(entry: AuditEntry) -> _Key:
    named = (entry.principal, entry.host, entry.operation, entry.resource)
    if entry.kind is AuditKind.REFUSED:
        return named
    return (*named, entry.request, entry.error, entry.detail)
