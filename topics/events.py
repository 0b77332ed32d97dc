"""What happened to topics and their records? Facts, for log lines, metrics and the coordinator.

`broker/observe.py` words and counts them. The first three are also what listeners of the registry
hear, such as the coordinator, which forgets the offsets of a deleted topic.
"""

from dataclasses import dataclass

from protocol.names import ErrorCode, ProducerId, TopicId, TopicName
from storage.api import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicCreated:
    name: TopicName
    topic_id: TopicId
    partitions: int
    automatic: bool = False  # a client asked for its metadata, nobody for its creation


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    name: TopicName
    topic_id: TopicId
    partitions: int


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    name: TopicName
    topic_id: TopicId
    partitions_before: int
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicAdopted:
    """Logs lay on the disk that the catalog did not know: they are kept, as a topic."""

    name: TopicName
    topic_id: TopicId
    partitions: int


@dataclass(frozen=True, slots=True)
class AutoCreationFailed:
    """A client asked for a topic that cannot be made; told once, however often it asks."""

    name: TopicName
    reason: str


@dataclass(slots=True)
class RecordsAppended:
    topic_partition: TopicPartition
    records: int
    bytes: int


@dataclass(slots=True)
class RecordsFetched:
    topic_partition: TopicPartition
    bytes: int


@dataclass(frozen=True, slots=True)
class ProduceRefused:
    topic_partition: TopicPartition
    error_code: ErrorCode
    reason: str


@dataclass(frozen=True, slots=True)
class SegmentsDeleted:
    """Retention dropped whole files."""

    topic_partition: TopicPartition
    segments: int
    log_start_offset: int


@dataclass(frozen=True, slots=True)
class PartitionFailed:
    """The disk refused or returned what it should not; `offline` if the partition is given up."""

    topic_partition: TopicPartition
    reason: str
    offline: bool


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """A block of ids that no later start can give out again."""

    first: ProducerId
    last: ProducerId


@dataclass(frozen=True, slots=True)
class SaveFailed:
    """The catalog or the producer snapshot could not be written."""

    what: str
    reason: str


TopicChange = TopicCreated | TopicDeleted | PartitionsAdded
TopicEvent = (
    TopicChange
    | TopicAdopted
    | AutoCreationFailed
    | RecordsAppended
    | RecordsFetched
    | ProduceRefused
    | SegmentsDeleted
    | PartitionFailed
    | ProducerIdsReserved
    | SaveFailed
)
