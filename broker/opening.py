"""What does the data directory hold, and was anything wrong with it? Opens the logs and says so.

main.py calls it before anything else is built. A damaged partition of the offsets topic, or a
damaged journal, forbids the start: groups would go back to older offsets, and nobody would know. A
damaged partition of another topic is set aside and its clients hear KAFKA_STORAGE_ERROR: it keeps
no group from being served. With --repair what is damaged is cut, kept aside, and told in full.
Kafka differs: `LogLoader` cuts such a log without asking, once the broker was not stopped cleanly.
"""

from typing import Final
from uuid import UUID

from broker.observe.events import DaemonStep, Warned
from broker.observe.observer import Observer
from coordinator.records import (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    UnreadableRecord,
    read_group_key,
    read_offset_key,
    record_type,
)
from protocol.names import OFFSETS_TOPIC
from storage.api import Corrupt, TopicPartition
from storage.batch.record_batch import read_header
from storage.journal.journal import Journal
from storage.log.checkpoints import NO_TOPIC_ID
from storage.log.log_store import Expects, LogStore, StoreOpened
from storage.log.partition_folders import PARTITION_NUMBER_MAX
from storage.log.partition_log import PartitionLog
from storage.log.segment import TailCut
from storage.repair.repair_plan import Repaired
from topics.catalog import Catalog, CatalogDamaged, CatalogFile, TopicEntry

GROUPS_NAMED_MAX: Final = 1_000
"""Groups of which a report says what they lost; the copy has the others too."""


def open_logs(
    store: LogStore, observer: Observer, *, repair: bool, catalog: CatalogFile | None = None
) -> StoreOpened:
    """Open all partitions; those that the catalog names must be there. Raises Corrupt, OSError."""
    opened = store.open(repair=repair, expects=_expected_by(catalog, repair=repair))
    if store.is_repairing and not repair:
        observer(Warned("A repair was interrupted: it goes on now"))
    if store.rolled_back:
        observer(Warned("An import was interrupted: nothing of it is left"))
    if store.kept_import:
        words = "An import was interrupted and others used the directory since: what it wrote stays"
        observer(Warned(words))
    offsets_damage = [one for key, one in store.damaged.items() if key.topic == OFFSETS_TOPIC]
    if offsets_damage:
        raise _first_of(offsets_damage)
    if not opened.was_clean:
        _begin_epochs(store)
    for damage in store.damaged.values():
        observer(Warned("A partition is damaged and not served", {"reason": str(damage)}))
    for folder in store.left_alone:
        words = "Left a folder alone: no partition has such a number"
        observer(Warned(words, {"path": folder, "greatest": PARTITION_NUMBER_MAX}))
    for key in store.partitions():
        log = store.partition_log(key)
        if log is not None and log.aborted.is_news:
            _tell_transactions(log, observer)
    return opened


def _begin_epochs(store: LogStore) -> None:
    """What a power failure may have taken from a log, its readers must be able to notice."""
    for key in store.partitions():
        log = store.partition_log(key)
        if log is not None and key.topic != OFFSETS_TOPIC:  # ownership elects those
            try:
                log.begin_epoch()
            except Corrupt as damage:  # of a sealed segment, which opening has not read
                store.fail(key, damage)


def _first_of(damage: list[Corrupt]) -> Corrupt:
    """One line names the first; how many others there are, it says too."""
    first, more = damage[0], len(damage) - 1
    if not more:
        return first
    return Corrupt(first.path, first.position, f"{first.reason} (and {more} more partitions)")


def _expected_by(catalog: CatalogFile | None, *, repair: bool) -> Expects:
    """Partitions of topics that were not deleted. Without a catalog, those of the offsets topic.

    Raises NewerFormat, and Corrupt unless a repair is to make a new one: nothing was touched yet.
    """
    topics: dict[str, TopicEntry] = {}
    content = None if catalog is None else catalog.load()
    if catalog is not None and content is not None:
        try:
            topics = {entry.name: entry for entry in Catalog.read(content, catalog.name).topics}
        except CatalogDamaged:
            if not repair:
                raise

    def expected(key: TopicPartition) -> UUID | None:
        entry = topics.get(key.topic)
        if entry is not None:
            is_expected = key.partition < entry.partitions and key.partition not in entry.missing
            return entry.topic_id if is_expected else None
        return NO_TOPIC_ID if key.topic == OFFSETS_TOPIC else None

    return expected


def recover_journal(
    journal: Journal, store: LogStore, opened: StoreOpened, observer: Observer, *, repair: bool
) -> bool:
    """Re-apply what was promised; was anything repaired? Raises Corrupt, OSError."""
    repair = repair or store.is_repairing
    logs = [log for key in store.partitions() if (log := store.partition_log(key)) is not None]
    ends = [log.log_end_offset for log in logs]
    damaged: list[Repaired] = []
    if repair:
        left_out = journal.repair()
        damaged += [*opened.repaired, *filter(None, [left_out])]
        for repaired in damaged:
            _tell_repaired(repaired, store, observer)
    else:
        recovered = journal.recover()
        if recovered.reapplied or recovered.tail is not None:
            observer(DaemonStep("Recovered the journal", recovered._asdict()))
        for key in recovered.left_out:
            kept_as = ", ".join(recovered.kept_as) or "no room for a copy"
            reason = {"reason": str(store.damaged[key]), "journal_kept_as": kept_as}
            observer(Warned("Left out a damaged partition and the journal of it", reason))
    for log, end in zip(logs, ends, strict=True):
        for one in log.repairs:
            facts = one._asdict()
            if isinstance(one, TailCut):
                facts["restored_by_the_journal"] = log.log_end_offset > end
                observer(Warned("Cut a torn tail", facts))
            elif opened.was_clean:
                observer(Warned("Rebuilt the indexes of a segment", facts))
            else:  # a kill may leave them behind their segment
                observer(DaemonStep("Rebuilt the indexes of a segment", facts))
    if repair:
        store.finish_repair(damaged)
    return bool(damaged)


def _tell_transactions(log: PartitionLog, observer: Observer) -> None:
    found_open = log.aborted.found_open
    facts = {"path": log.path, "aborted": len(log.aborted) - found_open, "open": found_open}
    if found_open:
        observer(Warned("Transactions of a moved log were open: they count as aborted", facts))
    else:
        observer(DaemonStep("Read the transactions of a log that came from a Kafka", facts))


def _tell_repaired(repaired: Repaired, store: LogStore, observer: Observer) -> None:
    facts = repaired._asdict()
    del facts["lost"]
    done = "Cut what was damaged" if repaired.bytes_cut else "Put aside what was damaged"
    observer(Warned(done, {**facts, "kept_as": ", ".join(repaired.kept_as)}))
    for lost in repaired.lost:
        topic, partition = lost.topic_partition
        name = f"{topic}-{partition}"
        log = store.partition_log(lost.topic_partition)
        if log is not None and _has(log, lost.first_offset) and _has(log, lost.last_offset):
            observer(Warned("The journal had all that was cut", {"partition": name}))
            continue
        observer(
            Warned(
                "Lost records",
                {
                    "partition": name,
                    "first_offset": lost.first_offset,
                    "last_offset": lost.last_offset,
                    "readable_in_the_copy": lost.records,
                },
            )
        )
        if topic == OFFSETS_TOPIC:
            for group, what in list(_by_group(lost.keys).items())[:GROUPS_NAMED_MAX]:
                observer(
                    Warned("Lost the newest values of", {"group_id": group, "of": ", ".join(what)})
                )


def _has(log: PartitionLog, offset: int) -> bool:
    """Is a record at this offset, or was it once? In a gap there never was."""
    batch = next(iter(log.batches(offset)), None)
    return batch is not None and read_header(batch).base_offset <= offset


def _by_group(keys: tuple[bytes, ...]) -> dict[str, list[str]]:
    """What these keys name, by group."""
    found: dict[str, list[str]] = {}
    for key in keys:
        try:
            kind = record_type(key)
            if kind in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT):
                group_id, topic, partition = read_offset_key(key)
                found.setdefault(group_id, []).append(f"{topic}-{partition}")
            else:
                found.setdefault(read_group_key(key), []).append("the group itself")
        except (UnreadableRecord, ValueError, IndexError):
            found.setdefault("?", []).append(key.hex())
    return found
