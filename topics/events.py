"""Topic events: what happened to topics and records, for log lines, metrics and the coordinator.

`broker/observe/observer.py` logs and counts them. Listeners of the registry get the events of
`TopicChange`: the coordinator deletes the offsets of a deleted topic.
"""

from msgspec import Struct

from protocol.names import ErrorCode, ProducerId, TopicId, TopicName
from seams.principal import Principal
from security.acls.entry import Acl
from storage.api import TopicPartition


class TopicCreated(Struct, frozen=True):
    name: TopicName
    topic_id: TopicId
    partitions: int
    automatic: bool = False  # created by a Metadata request


class TopicDeleted(Struct, frozen=True):
    """The client is the one that sent DeleteTopics."""

    name: TopicName
    topic_id: TopicId
    partitions: int
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class PartitionsAdded(Struct, frozen=True):
    name: TopicName
    topic_id: TopicId
    partitions_before: int
    partitions: int


class TopicRecovered(Struct, frozen=True):
    """The disk had logs that are not in the catalog: they are kept, as a topic."""

    name: TopicName
    topic_id: TopicId
    partitions: int


class PartitionsFoundMissing(Struct, frozen=True):
    """A recovered topic has no logs for these: they are neither served nor created."""

    name: TopicName
    partitions: tuple[int, ...]


class PartitionsRecreated(Struct, frozen=True):
    """A repair creates missing partitions, empty; records that exist elsewhere are given up."""

    name: TopicName
    partitions: tuple[int, ...]


class StrayFolderRenamed(Struct, frozen=True):
    """No topic owns it; its content is unchanged."""

    path: str


class CatalogRebuilt(Struct, frozen=True):
    """It was damaged, and was rebuilt from the folders."""

    kept_as: str
    topics: tuple[TopicName, ...]


class ConfigsLost(Struct, frozen=True):
    """The catalog had invalid configs of a topic; the broker's defaults apply from now on."""

    name: TopicName
    reason: str


class AutoCreationFailed(Struct, frozen=True):
    """A client requested a topic that cannot be created; reported once per topic."""

    name: TopicName
    reason: str


class RecordsAppended(Struct, frozen=True):
    topic_partition: TopicPartition
    records: int
    bytes: int


class RecordsFetched(Struct, frozen=True):
    topic_partition: TopicPartition
    bytes: int


class ProduceRefused(Struct, frozen=True):
    topic_partition: TopicPartition
    error_code: ErrorCode
    reason: str


class MarkerNotAppended(Struct, frozen=True):
    """The end of a transaction was not written: its coordinator or producer is an old one."""

    topic_partition: TopicPartition
    error_code: ErrorCode
    reason: str


class SegmentsDeleted(Struct, frozen=True):
    """Retention deleted whole segments."""

    topic_partition: TopicPartition
    segments: int
    log_start_offset: int


class RecordsDeleted(Struct, frozen=True):
    """A client deleted the records before the log start offset, with DeleteRecords."""

    topic_partition: TopicPartition
    log_start_offset: int


class PartitionFailed(Struct, frozen=True):
    """The disk failed or returned invalid data; `offline` if the partition is given up."""

    topic_partition: TopicPartition
    reason: str
    offline: bool


class ProducerIdsReserved(Struct, frozen=True):
    """A block of ids that no later start can assign again."""

    first: ProducerId
    last: ProducerId


class SaveFailed(Struct, frozen=True):
    """The catalog or the producer snapshot could not be written."""

    what: str
    reason: str


class GroupConfigsChanged(Struct, frozen=True):
    """A group has these configs now; it had others."""

    group_id: str
    configs: dict[str, str]


class GroupConfigsLost(Struct, frozen=True):
    """The file was damaged: no group has configs of its own any more."""

    kept_as: str


class GroupConfigCapped(Struct, frozen=True):
    """A value that was set is outside of the broker's limits of this start."""

    group_id: str
    name: str
    value: int
    in_effect: int


class TopicConfigsChanged(Struct, frozen=True):
    """A topic has these configs of its own now; it had others."""

    name: TopicName
    configs: dict[str, str]


class BrokerConfigsChanged(Struct, frozen=True):
    """The broker, or the cluster, has these dynamic configs now; it had others."""

    configs: dict[str, str]
    per_broker: bool
    unused: tuple[str, ...]  # stored and shown; without effect


class BrokerConfigIgnored(Struct, frozen=True):
    """A dynamic config of the file that is not valid any more: the static value applies."""

    name: str
    reason: str


class BrokerConfigsLost(Struct, frozen=True):
    """The file was damaged: the broker has no dynamic configs any more."""

    kept_as: str


class ScramCredentialsChanged(Struct, frozen=True):
    """A user has a new password for a mechanism, hashed so often; None: it was deleted."""

    user: str
    mechanism: str
    iterations: int | None


class ScramCredentialsLost(Struct, frozen=True):
    """The file was damaged: no user has SCRAM credentials any more."""

    kept_as: str


class ClientQuotasChanged(Struct, frozen=True):
    """A user, a client id, both or an address has these quotas now; it had others."""

    entity: tuple[tuple[str, str | None], ...]
    quotas: dict[str, float]


class ClientQuotasLost(Struct, frozen=True):
    """The file was damaged: clients have no quotas any more."""

    kept_as: str


class ClientMetricsChanged(Struct, frozen=True):
    """A subscription of client metrics has these configs now; it had others."""

    name: str
    configs: dict[str, str]


TopicChange = TopicCreated | TopicDeleted | PartitionsAdded


class AclsChanged(Struct, frozen=True):
    """The changed entries, in effect already, and the client that changed them."""

    added: tuple[Acl, ...]
    removed: tuple[Acl, ...]
    principal: Principal
    client_id: str
    client_host: str


class AclsLost(Struct, frozen=True):
    """The file was damaged: there are no ACLs any more."""

    kept_as: str


TopicEvent = (
    TopicChange
    | TopicRecovered
    | PartitionsFoundMissing
    | PartitionsRecreated
    | StrayFolderRenamed
    | CatalogRebuilt
    | ConfigsLost
    | TopicConfigsChanged
    | GroupConfigsChanged
    | GroupConfigsLost
    | GroupConfigCapped
    | BrokerConfigsChanged
    | BrokerConfigIgnored
    | BrokerConfigsLost
    | ScramCredentialsChanged
    | ScramCredentialsLost
    | ClientQuotasChanged
    | ClientQuotasLost
    | ClientMetricsChanged
    | AclsChanged
    | AclsLost
    | AutoCreationFailed
    | RecordsAppended
    | RecordsFetched
    | ProduceRefused
    | MarkerNotAppended
    | SegmentsDeleted
    | RecordsDeleted
    | PartitionFailed
    | ProducerIdsReserved
    | SaveFailed
)
