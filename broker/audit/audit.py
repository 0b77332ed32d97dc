"""Audit: makes an entry of each refusal, failed authentication and administrative action.

The authorizer, the server and the routes of administrative requests call it. What is written at
once, and what is counted, `folding.py` decides. Entries go to the observer, so to the log, or to
the file of `rollcall.audit.log`. Other requests cost nothing. Kafka's counterpart: the audit lines
of `StandardAuthorizer`.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec

from broker.audit.actions import AUDITED_REQUESTS, resource_text
from broker.audit.entry import AuditEntry, AuditKind, bounded, names_of
from broker.audit.file import AuditFile
from broker.audit.folding import AuditFolding
from broker.loop.clock import SystemClock
from broker.net.connection import Connection
from broker.net.dispatch import Dispatcher
from broker.net.request import PendingRequest
from broker.net.server import Server
from broker.observe.events import PartFailed, PeerFault, Warned
from broker.observe.observer import Observer
from coordinator.offsets.events import OffsetsCommitted
from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages import Response
from protocol.names import ApiKey, ErrorCode
from protocol.printable import printable
from seams.next_deadline import unwatched
from seams.now import Now
from seams.principal import ANONYMOUS
from seams.reply_token import ReplyToken

AUDIT_CLOSE_TIMEOUT_S: Final = 5.0


class Audit:
    """One of the ticker's parts: counts are written when their interval is over."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: SystemClock, observe: Observer, path: str
    ) -> None:
        """`path`: `rollcall.audit.log`; empty for entries in the log."""
        self._loop = loop
        self._clock = clock
        self._observe = observe
        self._folding = {kind: AuditFolding(kind) for kind in AuditKind}
        self._file = AuditFile(path, self._report_soon) if path else None
        self._on_earlier: Callable[[], None] = unwatched

    def watch(self, server: Server, dispatcher: Dispatcher) -> None:
        """See failed authentications, and the answers of administrative requests."""
        server.on_authentication_failure = self.authentication_failed
        for api_key in AUDITED_REQUESTS:
            dispatcher.follow_answers(api_key, self.answered)

    # What is reported.

    def refused(
        self, token: ReplyToken, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> None:
        """As `OnRefusal` of the authorizer."""
        request = _api_name(token.route.api_key) if isinstance(token, PendingRequest) else ""
        self._take(
            AuditEntry(
                AuditKind.REFUSED,
                _shown(str(token.principal)),
                token.client_host.removeprefix("/"),
                _shown(token.client_id),
                request,
                operation.name,
                _shown(resource_text(resource_type, name)),
            )
        )

    def authentication_failed(self, connection: Connection, fault: PeerFault, detail: str) -> bool:
        """As `AuthenticationFailed`. `detail` never has what the client sent as a secret."""
        mechanism, name = connection.claimed
        self._take(
            AuditEntry(
                AuditKind.AUTHENTICATION_FAILED,
                _shown(name),
                connection.host,
                operation=mechanism,
                error=fault,
                detail=_shown(detail),
                listener=connection.listener.name,
            )
        )
        return self._file is None

    def answered(self, token: ReplyToken, response: Response) -> None:
        """An administrative request has its answer."""
        assert isinstance(token, PendingRequest)
        for action in AUDITED_REQUESTS[token.route.api_key](token.request, response):
            self._take(
                AuditEntry(
                    AuditKind.ADMINISTRATIVE,
                    _shown(str(token.principal)),
                    token.client_host.removeprefix("/"),
                    _shown(token.client_id),
                    _api_name(token.route.api_key),
                    resource=_shown(action.resource),
                    error=ErrorCode(action.error_code).name,
                    detail=printable(action.detail),
                )
            )

    def offsets_committed(self, event: OffsetsCommitted) -> None:
        """By a simple consumer or a tool. One that goes on is as usual; a step back is a reset."""
        kept = dict(event.replaced)
        back = [
            f"{topic}-{index} {before.committed_offset} to {after.committed_offset}"
            for topic, partitions in event.offsets
            for index, after in partitions.items()
            if (before := kept.get(topic, {}).get(index)) is not None
            and after.committed_offset < before.committed_offset
        ]
        if back:
            self._take(
                AuditEntry(
                    AuditKind.ADMINISTRATIVE,
                    _shown(event.principal or str(ANONYMOUS)),
                    event.client_host.removeprefix("/"),
                    _shown(event.client_id),
                    _api_name(ApiKey.OFFSET_COMMIT),
                    resource=_shown(resource_text(ResourceType.GROUP, event.group_id)),
                    error=ErrorCode.NONE.name,
                    detail=printable(names_of(back)),
                )
            )

    # Time and the end.

    @property
    def next_deadline_ms(self) -> int | None:
        due_ms = (each.next_deadline_ms for each in self._folding.values())
        return min((each for each in due_ms if each is not None), default=None)

    def watch_deadline(self, on_earlier: Callable[[], None]) -> None:
        """`on_earlier` is called after each entry: its interval begins."""
        self._on_earlier = on_earlier

    def tick(self, now: Now) -> None:
        for each in self._folding.values():
            self._write(each.tick(now.mono_ms))

    def finish(self) -> None:
        """Write the counts of what was folded."""
        for each in self._folding.values():
            self._write(each.finish())

    async def close(self) -> None:
        self.finish()
        if self._file is not None:
            await self._loop.run_in_executor(None, self._file.close, AUDIT_CLOSE_TIMEOUT_S)

    def _take(self, entry: AuditEntry) -> None:
        written = self._folding[entry.kind].take(entry, self._clock.now().mono_ms)
        self._on_earlier()
        if written is not None:
            self._write([written])

    def _write(self, entries: Iterable[AuditEntry]) -> None:
        for entry in entries:
            if self._file is None:
                self._observe(entry)
            else:
                at = datetime.fromtimestamp(self._clock.now().wall_ms / 1000, UTC)
                self._file.write(audit_json(entry, at))

    def _report_soon(self, reason: str | None) -> None:
        """In the file's thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._report, reason)

    def _report(self, reason: str | None) -> None:
        if reason is not None:
            self._observe(PartFailed("audit log", OSError(reason)))
        else:
            lost = 0 if self._file is None else self._file.lost
            self._observe(Warned("The audit log is written again", {"lines_lost": lost}))


def audit_json(entry: AuditEntry, at: datetime) -> bytes:
    """One line of the file: empty fields are left out."""
    fields = msgspec.structs.asdict(entry)
    when = at.isoformat(timespec="milliseconds")
    line: dict[str, object] = {"at": when, "audit": fields.pop("kind")}
    times, unnamed = fields.pop("times"), fields.pop("unnamed")
    line |= {name: value for name, value in fields.items() if value}
    if times > 1:
        line["times"] = times
    if unnamed:
        line["unnamed"] = unnamed
    return msgspec.json.encode(line)


def _shown(text: str) -> str:
    return printable(bounded(text))


def _api_name(api_key: ApiKey) -> str:
    return api_key.name.title().replace("_", "")
