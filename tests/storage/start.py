"""Start of the logs: what a start of the daemon opens, repairs and warns of."""

from broker.observe.log_lines import LogFields, LogLine
from broker.observe.storage_lines import STORAGE_LINES
from protocol.names import OFFSETS_TOPIC
from storage.api import LogSettings, TopicPartition
from storage.journal.journal import Journal
from storage.log.log_store import LogStore
from storage.open import OpenEvent, StorageSettings, _recover_journal, open_logs, topics_file
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, NOW_MS, SMALL_LIMITS, keys_in, records
from topics.catalog import CatalogFile, expected_partitions

KEY = TopicPartition(OFFSETS_TOPIC, 0)
SEVERAL_SEGMENTS = LogSettings(segment_bytes=2 << 10, index_interval_bytes=256)


class Start:
    """The store and the journal after it, with segments of a few records."""

    def __init__(
        self, disk: SimulatedDisk, *, repair: bool = False, catalog: CatalogFile | None = None
    ) -> None:
        self.disk = disk
        self._lines: list[LogLine] = []
        self.store = LogStore(disk, DATA, lambda _: SEVERAL_SEGMENTS)
        expects = expected_partitions(catalog or topics_file(disk, DATA), repair=repair)
        settings = StorageSettings(SMALL_LIMITS, required=(OFFSETS_TOPIC,))
        opened = open_logs(self.store, settings, self._observe, repair=repair, expects=expects)
        self.journal = Journal(
            disk,
            self.store,
            on_stored=lambda *_: None,
            on_failed=lambda _: None,
            limits=SMALL_LIMITS,
        )
        _recover_journal(self.journal, self.store, opened, self._observe, repair=repair)

    def _observe(self, event: OpenEvent) -> None:
        self._lines += STORAGE_LINES[type(event)](event)

    def keys(self) -> list[str]:
        return keys_in(list(self.store.partitions()[KEY].batches(0)))

    def append(self) -> int:
        """One more record; its offset."""
        position = self.journal.log(KEY).append(records("next"), NOW_MS)
        assert self.journal.pump()
        return position - 1

    def warnings(self) -> dict[str, LogFields]:
        """The facts of each warning, the last of its kind, by its words."""
        return {line.message: line.fields for line in self._lines if line.level == "warning"}
