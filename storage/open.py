"""Opening a data directory: its logs and its journal, in the order that recovery needs.

In order: open the partitions, which cuts torn tails / refuse what must not be served damaged /
begin leader epochs after a crash / re-apply the journal, or repair what is damaged. The daemon
and the commands on a stopped data directory do it here, so that both notice the same damage and
leave the same files. What was found goes to `observe` as events, in order; the caller logs them.

A damaged partition of a `required` topic, or a damaged journal, forbids the opening: groups would
go back to older offsets, and nobody would know. A damaged partition of another topic is set aside.
Kafka differs: `LogLoader` cuts such a log without asking, once the broker was not stopped cleanly.
Kafka's counterparts: LogManager.loadLogs, MetaPropertiesEnsemble.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from storage.api import Corrupt, TopicPartition
from storage.atomic_file import StoredFile
from storage.batch.record_batch import read_header
from storage.data_dir import META_PROPERTIES, DataDir
from storage.disk import Disk
from storage.journal.flush import OnStored
from storage.journal.journal import Journal, OnJournalFailed
from storage.journal.journal_limits import JournalLimits
from storage.journal.recovery import Recovered
from storage.log.log_store import Expects, LogStore, StoreOpened, expects_nothing
from storage.log.partition_log import PartitionLog
from storage.log.segment import IndexRebuilt, TailCut
from storage.repair.repair_plan import Lost, Repaired, RepairPlan

TOPICS_FILE: Final = "rollcall-topics.json"
GROUP_CONFIGS_FILE: Final = "rollcall-group-configs.json"
BROKER_CONFIGS_FILE: Final = "rollcall-broker-configs.json"
SCRAM_FILE: Final = "rollcall-scram-credentials.json"
ACLS_FILE: Final = "rollcall-acls.json"
CLIENT_QUOTAS_FILE: Final = "rollcall-client-quotas.json"
PRODUCERS_FILE: Final = "rollcall-producers.snapshot"

# What opening found: values for the log.


class RepairResumed(Struct, frozen=True):
    """A repair was interrupted; this opening finishes it."""


class ImportUndone(Struct, frozen=True):
    """An import was interrupted, and nothing of it is left."""


class ImportKept(Struct, frozen=True):
    """An import was interrupted and others used the directory since: what it wrote stays."""


class PartitionSetAside(Struct, frozen=True):
    """A partition is damaged and not served."""

    reason: str


class FolderIgnored(Struct, frozen=True):
    """No partition has such a number."""

    path: str


class TransactionsRead(Struct, frozen=True):
    """A log that came from a Kafka has transactions; those that were open count as aborted."""

    path: str
    aborted: int
    open: int


class JournalRecovered(Struct, frozen=True):
    """The journal had what the logs lack, or a torn tail."""

    recovered: Recovered


class PartitionLeftOut(Struct, frozen=True):
    """Records of a damaged partition in the journal were not re-applied."""

    reason: str
    journal_kept_as: tuple[str, ...]


class TailTruncated(Struct, frozen=True):
    """A log ended in bytes that are no batch."""

    cut: TailCut
    restored_by_the_journal: bool


class IndexesRebuilt(Struct, frozen=True):
    """The indexes of a segment were missing or wrong. After a kill that is to be expected."""

    rebuilt: IndexRebuilt
    was_clean: bool


class DamageRepaired(Struct, frozen=True):
    """Damage was cut, or put aside where nothing could be cut."""

    repaired: Repaired


class RecordsRestored(Struct, frozen=True):
    """The journal had all that a repair had cut from a partition."""

    topic_partition: TopicPartition


class RecordsLost(Struct, frozen=True):
    """A repair had to cut records that nobody else has."""

    lost: Lost


OpenEvent = (
    RepairResumed
    | ImportUndone
    | ImportKept
    | PartitionSetAside
    | FolderIgnored
    | TransactionsRead
    | JournalRecovered
    | PartitionLeftOut
    | TailTruncated
    | IndexesRebuilt
    | DamageRepaired
    | RecordsRestored
    | RecordsLost
)
ObserveOpening = Callable[[OpenEvent], None]


def observe_nothing(_: OpenEvent) -> None:
    """For a command, which reports only what it was asked for."""


# What is opened, and how.


class StorageSettings(Struct, frozen=True):
    """How a data directory is opened. The topics are named by those who know them."""

    journal: JournalLimits
    required: tuple[str, ...]
    """Topics that are not served in part. Their leader epochs are begun when they are elected."""
    dispensable: tuple[str, ...] = ()
    """Topics whose damaged partitions do not forbid the journal's recovery."""
    is_synced: bool = True
    """`rollcall.flush=commit`."""


class RepairUnfinished(Exception):
    """A repair was interrupted, and the caller is not one to finish it. Nothing was changed."""


class Storage(Struct, frozen=True):
    """An open data directory: complete logs, and a journal that nobody has written to yet."""

    disk: Disk
    path: str
    store: LogStore
    journal: Journal
    was_repaired: bool

    @property
    def topics_file(self) -> StoredFile:
        return topics_file(self.disk, self.path)

    @property
    def group_configs_file(self) -> StoredFile:
        return StoredFile(self.disk, f"{self.path}/{GROUP_CONFIGS_FILE}")

    @property
    def broker_configs_file(self) -> StoredFile:
        return StoredFile(self.disk, f"{self.path}/{BROKER_CONFIGS_FILE}")

    @property
    def scram_file(self) -> StoredFile:
        return scram_file(self.disk, self.path)

    @property
    def acls_file(self) -> StoredFile:
        return StoredFile(self.disk, f"{self.path}/{ACLS_FILE}")

    @property
    def client_quotas_file(self) -> StoredFile:
        return StoredFile(self.disk, f"{self.path}/{CLIENT_QUOTAS_FILE}")

    @property
    def producers_file(self) -> StoredFile:
        return StoredFile(self.disk, f"{self.path}/{PRODUCERS_FILE}")


class JournalCallbacks(Struct, frozen=True):
    """Called in the flusher's thread."""

    stored: OnStored = lambda _stored, _seconds: None
    failed: OnJournalFailed = lambda _: None
    reopened: Callable[[], None] = lambda: None


def topics_file(disk: Disk, path: str) -> StoredFile:
    """The topic catalog's. It says which partitions must be there, so it is read first."""
    return StoredFile(disk, f"{path}/{TOPICS_FILE}")


def scram_file(disk: Disk, path: str) -> StoredFile:
    """Of the SCRAM credentials: for the owner of the process alone."""
    return StoredFile(disk, f"{path}/{SCRAM_FILE}", is_private=True)


def open_storage(
    disk: Disk,
    path: str,
    settings: StorageSettings,
    observe: ObserveOpening,
    *,
    expects: Expects = expects_nothing,
    callbacks: JournalCallbacks | None = None,
    repair: bool = False,
    may_resume_repair: bool = True,
) -> Storage:
    """Open and recover a locked data directory. Raises Corrupt, RepairUnfinished, OSError.

    `expects` names the partitions that must be there. With `repair` what is damaged is cut, kept
    aside, and reported in full; a repair that was interrupted is finished, asked or not.
    """
    if not may_resume_repair and RepairPlan(disk, path).is_open:
        raise RepairUnfinished(path)
    callbacks = callbacks or JournalCallbacks()
    store = LogStore(disk, path, reserve_bytes=settings.journal.reserve_bytes)
    opened = open_logs(store, settings, observe, repair=repair, expects=expects)
    journal = Journal(
        disk,
        store,
        on_stored=callbacks.stored,
        on_failed=callbacks.failed,
        on_reopened=callbacks.reopened,
        is_synced=settings.is_synced,
        limits=settings.journal,
        dispensable=settings.dispensable,
    )
    was_repaired = _recover_journal(journal, store, opened, observe, repair=repair)
    return Storage(disk, path, store, journal, was_repaired)


def lock_data_dir(path: str, node_id: int) -> DataDir:
    """For a command: it is not a node, and accepts the directory of any. Raises DataDirRefused.

    A new directory gets `node_id`.
    """
    meta = Path(path, META_PROPERTIES)
    lines = meta.read_text("utf-8", "replace").splitlines() if meta.exists() else []
    said = [line.removeprefix("node.id=") for line in lines if line.startswith("node.id=")]
    is_number = bool(said) and re.fullmatch(r"[0-9]{1,10}", said[0]) is not None
    return DataDir(path, int(said[0]) if is_number else node_id)


# The logs.


def open_logs(
    store: LogStore,
    settings: StorageSettings,
    observe: ObserveOpening,
    *,
    repair: bool = False,
    expects: Expects = expects_nothing,
) -> StoreOpened:
    """Open all partitions. Raises Corrupt, OSError."""
    opened = store.open(repair=repair, expects=expects)
    if store.is_repairing and not repair:
        observe(RepairResumed())
    if store.rolled_back:
        observe(ImportUndone())
    if store.kept_import:
        observe(ImportKept())
    damage = [reason for key, reason in store.damaged.items() if key.topic in settings.required]
    if damage:
        raise _first_of(damage)
    if not opened.was_clean:
        _begin_epochs(store, settings)
    for reason in store.damaged.values():
        observe(PartitionSetAside(str(reason)))
    for folder in store.ignored_folders:
        observe(FolderIgnored(folder))
    for log in _logs(store):
        if log.moved.is_newly_read:
            observe(TransactionsRead(log.path, log.moved.aborted, len(log.moved.left_open)))
    return opened


def _logs(store: LogStore) -> list[PartitionLog]:
    return [log for key in store.partitions() if (log := store.partition_log(key)) is not None]


def _begin_epochs(store: LogStore, settings: StorageSettings) -> None:
    """What a power failure may have taken from a log, its readers must be able to notice."""
    for log in _logs(store):
        if log.topic_partition.topic not in settings.required:
            try:
                log.begin_leader_epoch()
            except Corrupt as damage:  # of a sealed segment, which opening has not read
                store.fail(log.topic_partition, damage)


def _first_of(damage: list[Corrupt]) -> Corrupt:
    """The first, and how many others there are: one line names it."""
    first, more = damage[0], len(damage) - 1
    if not more:
        return first
    return Corrupt(first.path, first.position, f"{first.reason} (and {more} more partitions)")


# The journal.


def _recover_journal(
    journal: Journal, store: LogStore, opened: StoreOpened, observe: ObserveOpening, *, repair: bool
) -> bool:
    """Re-apply what was promised; was anything repaired? Raises Corrupt, OSError."""
    repair = repair or store.is_repairing
    logs = _logs(store)
    ends = [log.log_end_offset for log in logs]
    damaged: list[Repaired] = []
    if repair:
        left_out = journal.repair()
        damaged += [*opened.repaired, *filter(None, [left_out])]
        for repaired in damaged:
            _observe_repaired(repaired, store, observe)
    else:
        recovered = journal.recover()
        if recovered.reapplied or recovered.tail is not None:
            observe(JournalRecovered(recovered))
        for key in recovered.left_out:
            observe(PartitionLeftOut(str(store.damaged[key]), recovered.kept_as))
    for log, end in zip(logs, ends, strict=True):
        for repair_done in log.repairs:
            if isinstance(repair_done, TailCut):
                observe(TailTruncated(repair_done, log.log_end_offset > end))
            else:
                observe(IndexesRebuilt(repair_done, opened.was_clean))
    if repair:
        store.finish_repair(damaged)
    return bool(damaged)


def _observe_repaired(repaired: Repaired, store: LogStore, observe: ObserveOpening) -> None:
    observe(DamageRepaired(repaired))
    for lost in repaired.lost:
        log = store.partition_log(lost.topic_partition)
        if log is not None and _has(log, lost.first_offset) and _has(log, lost.last_offset):
            observe(RecordsRestored(lost.topic_partition))
        else:
            observe(RecordsLost(lost))


def _has(log: PartitionLog, offset: int) -> bool:
    """Is a record at this offset, or was it once? In a gap there never was."""
    batch = next(iter(log.batches(offset)), None)
    return batch is not None and read_header(batch).base_offset <= offset
