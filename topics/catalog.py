"""Topic catalog: the file with all topics, their ids, partitions and configs.

It is JSON, so that people can read it. It is written as a whole before a change takes effect: after
a crash a topic either exists or does not. It also reserves producer ids, which must never be
assigned twice. Kafka's counterpart: the topic, config and producer id records of the metadata log.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol, cast
from uuid import UUID

from msgspec import Struct, field

from protocol.names import COORDINATOR_TOPICS, ZERO_TOPIC_ID, TopicId, TopicName
from seams.topic_names import name_fault
from storage.api import Corrupt, TopicPartition
from topics.checked_json import check_document, dump_checked
from topics.settings import TOPIC_PARTITIONS_MAX

CATALOG_FORMAT: Final = 1

_PRODUCER_IDS_END: Final = 1 << 63  # an int64 on the wire


class CatalogDamaged(Corrupt):
    """Without a catalog, existing topics would seem to be deleted."""

    remedy = (
        "restore the file from a copy, or start once with --repair, which keeps it as "
        "*.damaged and rebuilds it from the folders of the partitions: topics keep their "
        "ids, partitions and records, and lose their configs"
    )


class CatalogFile(Protocol):
    """A small file that is read once and always written as a whole."""

    @property
    def name(self) -> str:
        """Its name in error messages."""

    def load(self) -> bytes | None:
        """The content as last saved; None if there is none."""

    def save(self, content: bytes) -> None:
        """Replace the content: atomically, and durably before it returns. Raises OSError."""

    def keep_copy(self) -> str:
        """Copy the content to another file, durably; the copy's name. Raises OSError."""


class TopicEntry(Struct, frozen=True):
    name: TopicName
    topic_id: TopicId
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    """Of a topic that was found on the disk: the partitions that were absent or unreadable. They
    are not created: their records may be elsewhere."""

    def plain(self) -> dict[str, object]:
        plain: dict[str, object] = {
            "name": self.name,
            "id": str(self.topic_id),
            "partitions": self.partitions,
            "configs": self.configs,
        }
        return {**plain, "missing": list(self.missing)} if self.missing else plain


class Catalog(Struct):
    topics: list[TopicEntry] = field(default_factory=list)
    deleting: dict[TopicId, TopicName] = field(default_factory=dict)
    """Deleted topics whose folders may still exist after a crash."""
    next_producer_id: int = 0
    forgetting: dict[TopicId, TopicName] = field(default_factory=dict)
    """Deleted topics whose committed offsets may still exist."""

    def dump(self) -> bytes:
        document = {
            "topics": [topic.plain() for topic in self.topics],
            "deleting": [str(topic_id) for topic_id in self.deleting],
            "deleting_names": list(self.deleting.values()),
            "next_producer_id": self.next_producer_id,
            "forgetting": [
                {"name": name, "id": str(topic_id)} for topic_id, name in self.forgetting.items()
            ],
        }
        return dump_checked(document, CATALOG_FORMAT)

    @classmethod
    def read(cls, content: bytes, name: str) -> "Catalog":
        """The catalog in a file. Raises Corrupt, because going on without it would lose topics, and
        NewerFormat, which no repair can fix."""
        try:
            document = json.loads(content)
            check_document(document, name, CATALOG_FORMAT)
            catalog = cls(
                [_entry(topic) for topic in document["topics"]],
                _deleting(document["deleting"], document.get("deleting_names", [])),
                document["next_producer_id"],
                {
                    UUID(topic["id"]): TopicName(str(topic["name"]))
                    for topic in document.get("forgetting", [])
                },
            )
            catalog._check()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
            raise CatalogDamaged(name, 0, f"{type(fault).__name__}: {fault}") from fault
        return catalog

    def _check(self) -> None:
        """Raises ValueError for values that we never write."""
        for values in ([t.name for t in self.topics], [t.topic_id for t in self.topics]):
            if len(set(values)) < len(values):
                raise ValueError("two topics have the same name or id")
        next_id = self.next_producer_id
        if type(next_id) is not int or not 0 <= next_id < _PRODUCER_IDS_END:
            raise ValueError(f"next_producer_id is {next_id!r}")


def expected_partitions(
    file: CatalogFile, *, repair: bool = False
) -> Callable[[TopicPartition], TopicId | None]:
    """The topic id of a partition whose log must be there; of others None.

    What the catalog does not know must be there if a coordinator writes it, whatever its id is.
    Raises NewerFormat, and Corrupt unless a repair is to rebuild the catalog.
    """
    topics: dict[str, TopicEntry] = {}
    content = file.load()
    if content is not None:
        try:
            topics = {entry.name: entry for entry in Catalog.read(content, file.name).topics}
        except CatalogDamaged:
            if not repair:
                raise

    def expected(key: TopicPartition) -> TopicId | None:
        entry = topics.get(key.topic)
        if entry is not None:
            is_expected = key.partition < entry.partitions and key.partition not in entry.missing
            return entry.topic_id if is_expected else None
        return ZERO_TOPIC_ID if key.topic in COORDINATOR_TOPICS else None

    return expected


def _deleting(ids: list[str], names: list[str]) -> dict[TopicId, TopicName]:
    """Older catalogs have no names."""
    padded = [*names, *[""] * len(ids)]
    return {UUID(text): TopicName(str(name)) for text, name in zip(ids, padded, strict=False)}


def _entry(topic: Mapping[str, object]) -> TopicEntry:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    name, partitions, configs = topic["name"], topic["partitions"], topic["configs"]
    if not isinstance(name, str) or name_fault(name) is not None:
        raise ValueError(f"{name!r} is no name of a topic")
    if type(partitions) is not int or not 0 < partitions <= TOPIC_PARTITIONS_MAX:
        raise ValueError(f"{name} has {partitions!r} partitions")
    if not isinstance(configs, dict) or not all(isinstance(v, str) for v in configs.values()):
        raise ValueError(f"the configs of {name} are no strings")
    missing = tuple(cast("Iterable[int]", topic.get("missing", ())))
    if not all(type(index) is int and 0 <= index < partitions for index in missing):
        raise ValueError(f"{name} misses partitions that it has not got")
    return TopicEntry(TopicName(name), UUID(str(topic["id"])), partitions, dict(configs), missing)
