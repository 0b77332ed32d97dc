"""Client quota store: the quotas of users, client ids and addresses, and the file that has them.

The file is written as a whole before a change takes effect: a change that was answered survives a
crash. A change is an operation of the admin queue: it yields its disk work. Then the listeners are
called, so a quota holds when it is answered.
Kafka's counterpart: `ClientQuotaControlManager` for the table, `ClientQuotaMetadataManager`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from security.quotas.limits import EntityType, QuotaEntityNames, QuotaTable
from storage.api import Corrupt
from topics.admin_queue import Steps
from topics.catalog import CatalogFile
from topics.checked_json import JsonDocument, dump_checked
from topics.events import ClientQuotasChanged, ClientQuotasLost, SaveFailed, TopicEvent
from topics.stored_document import StoredDocument

CLIENT_QUOTAS_FORMAT: Final = 1


class ClientQuotasDamaged(Corrupt):
    """Without the file, clients would silently have no quotas."""

    remedy = (
        "restore the file from a copy, or start once with --repair, which keeps it as "
        "*.damaged: clients then have no quotas until these are set again"
    )


class ClientQuotaStore:
    """A change raises OSError if the disk fails; then nothing changed."""

    def __init__(
        self,
        file: CatalogFile,
        quotas_max: int,
        observe: Callable[[TopicEvent], None],
        *,
        repair: bool = False,
    ) -> None:
        """Reads the file. With `repair` a damaged one is kept as a copy; then there are no quotas.

        Raises Corrupt, NewerFormat, OSError.
        """
        self.quotas_max = quotas_max  # entities that may have quotas
        self.table: QuotaTable = {}
        self.was_repaired = False
        self._file = file
        self._observe = observe
        self._listeners: list[Callable[[QuotaTable], None]] = []
        self._load(repair=repair)

    def subscribe(self, listener: Callable[[QuotaTable], None]) -> None:
        """Call `listener` now and after every change."""
        self._listeners.append(listener)
        listener(self.table)

    def change(self, after: QuotaTable) -> Steps[None]:
        """Replace all quotas by these, which are valid."""
        before = self.table
        if after == before:
            return
        try:
            yield lambda: self._file.save(_dump(after))
        except OSError as fault:
            self._observe(SaveFailed("quotas of clients", str(fault)))
            raise
        self.table = after
        for listener in self._listeners:
            listener(after)
        for entity in {**before, **after}:
            if before.get(entity) != after.get(entity):
                self._observe(ClientQuotasChanged(entity, dict(after.get(entity, {}))))

    def _load(self, *, repair: bool) -> None:
        if repair:
            table, self.was_repaired = _QUOTAS_FILE.load_or_repair(
                self._file, _dump({}), lambda kept_as: self._observe(ClientQuotasLost(kept_as))
            )
        else:
            table = _QUOTAS_FILE.load(self._file)
        self.table = table or {}


def _dump(table: QuotaTable) -> bytes:
    quotas = [{"entity": dict(entity), "quotas": dict(of)} for entity, of in table.items()]
    return dump_checked({"client_quotas": quotas}, CLIENT_QUOTAS_FORMAT)


def _table(document: JsonDocument) -> QuotaTable:
    """Raises ValueError and others of `StoredDocument`."""
    return dict(_entries(document["client_quotas"]))


def _entries(entries: object) -> Iterator[tuple[QuotaEntityNames, dict[str, float]]]:
    if not isinstance(entries, list):
        raise TypeError("the quotas are no list")
    for entry in entries:
        entity, quotas = entry["entity"], entry["quotas"]
        names = tuple(sorted(entity.items()))
        for kind, name in names:
            EntityType(kind)
            if name is not None and not (isinstance(name, str) and name):
                raise ValueError(f"{name!r} is no name of a {kind}")
        bounds = {str(key): float(bound) for key, bound in quotas.items()}
        if not names or not all(bound > 0 for bound in bounds.values()):
            raise ValueError(f"the quotas of {entity} are not valid")
        yield names, bounds


_QUOTAS_FILE: Final = StoredDocument(CLIENT_QUOTAS_FORMAT, _table, ClientQuotasDamaged)
