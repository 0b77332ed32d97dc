"""Rendering: an exchange as text, so that two brokers' answers can be compared line by line.

A message becomes one line of `field=value` and, below it, one indented line for each nested struct.
Every field that the version has is written, defaults too (but for a throttle time of 0): an
answer that differs in nothing but a null for an empty string is a different answer.

What two honest brokers may choose freely is named here and nowhere else: the random part of a
member id, topic and cluster ids, ports, producer ids, ids of fetch sessions, times of the broker's
clock, folders, the wording of an error message, and the order of arrays that Kafka fills from a
hash map. Batches of producers are shown by their fields, in `shown_batches.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final
from uuid import UUID

from protocol.schema import Struct, fields_of
from tests.compare.batches import AT_MS
from tests.compare.shown_batches import are_shown, shown_batches

_RANDOM_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_MADE_BY_BROKER: Final = re.compile(r"[A-Za-z0-9_-]{22}")
"""A member id that the broker made for a consumer: a UUID as Kafka's Uuid writes it."""
_MEMBER_IN_TEXT: Final = re.compile(r"(?<=ember )[A-Za-z0-9_-]{22}(?=[ .])")
_REQUEST_IN_TEXT: Final = re.compile(r"^Request Request\(.*\)(?= needs [A-Z_]+ permission\.$)")

FREE_VALUES: Final = {
    "port": "<port>",
    "cluster_id": "<cluster>",
    "finalized_features_epoch": "<epoch>",
    "log_dir": "<path>",
    "total_bytes": "<bytes>",
    "usable_bytes": "<bytes>",
    "last_fetch_timestamp": "<time>",
    "last_caught_up_timestamp": "<time>",
}
"""Fields whose value says nothing of the broker's behaviour."""

PRODUCER_IDS: Final = frozenset({"producer_id", "v3_and_below_producer_id", "producer_id_filters"})

TIMES: Final = frozenset(
    {
        "transaction_start_time_ms",
        "last_timestamp",
        "timestamp",
        "log_append_time_ms",
    }
)
"""Times of the broker's clock; a time that the scenario gave is shown."""

OFFSETS_OF_THE_METADATA_LOG: Final = frozenset(
    {("DescribedQuorumPartition", "high_watermark"), ("QuorumReplica", "log_end_offset")}
)
"""They depend on what was done to the cluster before."""

TEXTS: Final = frozenset({"error_message", "batch_index_error_message"})
"""Wording is each broker's own; whether there is any is compared."""

EXACT_TEXTS: Final = frozenset(
    {
        "ConsumerGroupHeartbeatResponse",
        "DescribedConsumerGroup",
        "AlterConfigsResourceResponse",
        "CreatableTopicResult",
        "DeletableTopicResult",
        "CreatePartitionsTopicResult",
        "DescribeConfigsResult",
        "ElectedPartition",
        "ReassignablePartitionResponse",
        "UpdateFeaturesResponse",
        "UpdatableFeatureResult",
        "UnregisterBrokerResponse",
        "RemoveRaftVoterResponse",
        "DescribedQuorumPartition",
        "DescribeClientQuotasResponse",
        "DescribeUserScramCredentialsResult",
        "AlterUserScramCredentialsResult",
        "DescribeAclsResponse",
        "AclCreationResult",
        "DeleteAclsFilterResult",
    }
)
"""Messages with texts that clients show or log as they are: here the wording is compared too."""

UNORDERED: Final = frozenset(
    {
        ("JoinGroupResponse", "members"),
        ("DescribedGroup", "members"),
        ("DescribeGroupsResponse", "groups"),
        ("HeartbeatAssignment", "topic_partitions"),
        ("HeartbeatTopicPartitions", "partitions"),
        ("DescribedTopicPartitions", "partitions"),
        ("DescribedConsumerGroup", "members"),
        ("DescribedConsumerMember", "subscribed_topic_names"),
        ("ConsumerGroupDescribeResponse", "groups"),
        ("DescribedAssignment", "topic_partitions"),
        ("ListGroupsResponse", "groups"),
        ("DeleteGroupsResponse", "results"),
        ("MetadataResponse", "topics"),
        ("DescribeConfigsResult", "configs"),
        ("DescribeConfigsResponse", "results"),
        ("CreatableTopicResult", "configs"),
        ("OffsetFetchResponse", "topics"),
        ("OffsetFetchResponseTopics", "partitions"),
        ("OffsetFetchResponseGroup", "topics"),
        ("CreateTopicsResponse", "topics"),
        ("DeleteTopicsResponse", "responses"),
        ("CreatePartitionsResponse", "results"),
        ("IncrementalAlterConfigsResponse", "responses"),
        ("AlterConfigsResponse", "responses"),
        ("ListConfigResourcesResponse", "config_resources"),
        ("AddPartitionsToTxnResponse", "results_by_topic_v3_and_below"),
        ("AddPartitionsToTxnResponse", "results_by_transaction"),
        ("AddPartitionsToTxnResult", "topic_results"),
        ("AddPartitionsToTxnTopicResult", "results_by_partition"),
        ("TxnOffsetCommitResponse", "topics"),
        ("TxnOffsetCommitResponseTopic", "partitions"),
        ("WriteTxnMarkersResponse", "markers"),
        ("WritableTxnMarkerResult", "topics"),
        ("WritableTxnMarkerTopicResult", "partitions"),
        ("DescribeTransactionsResponse", "transaction_states"),
        ("DescribedTransaction", "topics"),
        ("TransactionTopic", "partitions"),
        ("ListTransactionsResponse", "transaction_states"),
        ("ListTransactionsResponse", "unknown_state_filters"),
        ("DescribedProducersPartition", "active_producers"),
        ("DescribeProducersResponse", "topics"),
        ("DescribedProducersTopic", "partitions"),
        ("ProduceResponse", "responses"),
        ("ApiVersionsResponse", "finalized_features"),
        ("ApiVersionsResponse", "supported_features"),
        ("TopicProduceResponse", "partition_responses"),
        ("DeleteRecordsResponse", "topics"),
        ("DeleteRecordsTopicResult", "partitions"),
        ("DescribeLogDirsResult", "topics"),
        ("DescribeLogDirsTopic", "partitions"),
        ("AlterReplicaLogDirsResponse", "results"),
        ("AlterReplicaLogDirTopicResult", "partitions"),
        ("DescribeUserScramCredentialsResponse", "results"),
        ("AlterUserScramCredentialsResponse", "results"),
        ("QuotaAlterationResult", "entity"),
        ("AlterClientQuotasResponse", "entries"),
        ("DescribeClientQuotasResponse", "entries"),
        ("QuotaEntry", "entity"),
        ("QuotaEntry", "values"),
    }
)
"""Arrays that Kafka gathers in a hash map or per partition: sorted before they are compared."""


class Names:
    """Gives random ids the numbers of their first appearance: #1, #2, ... within one scenario."""

    def __init__(
        self, topics: Mapping[UUID, str], given_ms: int = AT_MS, *, numbers_epochs: bool = False
    ) -> None:
        """`topics`: the ids that are shown as names. `given_ms`: the scenario's time of records.

        `numbers_epochs`: a restart raises the epochs of coordinators, so what counts is their
        order. Those of topics are hidden: here they stay.
        """
        self.topics = topics
        self.given_ms = given_ms
        self._numbers_epochs = numbers_epochs
        self._epochs: dict[int, int] = {}
        self._numbers: dict[str, int] = {}
        self._producers: dict[int, int] = {}
        self._sessions: dict[int, int] = {}

    def text(self, value: str) -> str:
        return _RANDOM_ID.sub(lambda match: self._number(match.group()), value)

    def member_id(self, value: str) -> str:
        if _MADE_BY_BROKER.fullmatch(value):
            return self._number(value)
        return self.text(value)

    def exact_text(self, value: str | None) -> str | None:
        """A text that may name a member, or show an object of Kafka's memory."""
        value = value and _REQUEST_IN_TEXT.sub("The request", value)
        return value and _MEMBER_IN_TEXT.sub(lambda match: self._number(match.group()), value)

    def uuid(self, value: UUID) -> str:
        if value in self.topics:
            return f"id({self.topics[value]})"
        # The first hundred ids are Kafka's reserved ones (zero is "none"); the rest are random.
        return f"id({value.int})" if value.int < 100 else f"id({self._number(str(value))})"

    def producer(self, producer_id: int) -> str:
        """The broker gives any id; what counts is which ones are equal."""
        if producer_id < 0:
            return str(producer_id)
        return f"P{self._nth(self._producers, producer_id)}"

    def leader_epoch(self, epoch: int) -> str:
        """The epoch of the leader of a topic's partition."""
        return "<epoch>" if self._numbers_epochs and epoch >= 0 else str(epoch)

    def coordinator_epoch(self, epoch: int) -> str:
        if epoch < 0 or not self._numbers_epochs:
            return str(epoch)
        return f"E{self._nth(self._epochs, epoch)}"

    def session(self, session_id: int) -> str:
        """Of a fetch; 0 is none."""
        return f"S{self._nth(self._sessions, session_id)}" if session_id > 0 else str(session_id)

    def _nth(self, numbers: dict[int, int], given: int) -> int:
        return numbers.setdefault(given, len(numbers) + 1)

    def _number(self, random_id: str) -> str:
        return f"#{self._numbers.setdefault(random_id, len(self._numbers) + 1)}"


class _Unnumbered(Names):
    """For sorting: random ids look the same, but for producers that have numbers already."""

    def __init__(self, names: Names) -> None:
        super().__init__(names.topics, names.given_ms)
        self._producers = names._producers

    def _number(self, random_id: str) -> str:
        return "#"

    def _nth(self, numbers: dict[int, int], given: int) -> int:
        return numbers.get(given, 0)


def render(message: Struct, version: int, names: Names) -> list[str]:
    """The lines of one message, the first without an indent."""
    return list(_lines(message, version, names, "", ""))


def _lines(struct: Struct, version: int, names: Names, label: str, indent: str) -> Iterator[str]:
    values: list[str] = [label] if label else []
    nested: list[str] = []
    for spec in fields_of(type(struct)):
        if not spec.mark.in_version(version):
            continue
        value = getattr(struct, spec.name)
        if spec.name == "throttle_time_ms":
            if value:  # in full seconds: a part of it has passed
                values.append(f"throttle_time_ms=<{-(-value // 1000)} s>")
            continue
        if isinstance(value, Struct):
            nested += _lines(value, version, names, f".{spec.name}", indent + "  ")
        elif spec.name == "records" and are_shown(value, names):
            nested += [f"{indent}  .batch {line}" for line in shown_batches(value, names)]
        elif _holds_structs(value):
            for element in _in_order(struct, spec.name, value, version, names):
                nested += _lines(element, version, names, f".{spec.name}", indent + "  ")
        else:
            if (type(struct).__name__, spec.name) in UNORDERED and value is not None:
                value = sorted(value)
            if (type(struct).__name__, spec.name) in OFFSETS_OF_THE_METADATA_LOG:
                values.append(f"{spec.name}=<offset>")
            elif spec.name in TEXTS and type(struct).__name__ in EXACT_TEXTS:
                values.append(f"{spec.name}={names.exact_text(value)!r}")
            else:
                values.append(f"{spec.name}={_scalar(spec.name, value, names)}")
    yield (indent + " ".join(values)).rstrip()
    yield from nested


def _in_order(
    struct: Struct, field_name: str, elements: Sequence[Struct], version: int, names: Names
) -> Sequence[Struct]:
    if (type(struct).__name__, field_name) not in UNORDERED:
        return elements
    # Sorted without the numbers of random ids: those are given in the order that results from it.
    unnumbered = _Unnumbered(names)
    return sorted(elements, key=lambda e: list(_lines(e, version, unnumbered, "", "")))


def _holds_structs(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(element, Struct) for element in value)


def _scalar(name: str, value: object, names: Names) -> str:
    if name in FREE_VALUES and value is not None and value != -1:
        return FREE_VALUES[name]
    if name in TEXTS and isinstance(value, str):
        return "<text>" if value else "''"
    if isinstance(value, int) and not isinstance(value, IntEnum | bool):
        if name in PRODUCER_IDS:
            return names.producer(value)
        if name == "leader_epoch":
            return names.leader_epoch(value)
        if name == "coordinator_epoch":
            return names.coordinator_epoch(value)
        if name == "session_id":
            return names.session(value)
        if name in TIMES and value > AT_MS:
            return "<given>" if value == names.given_ms else "<time>"
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, UUID):
        return names.uuid(value)
    if isinstance(value, str):
        return repr(names.member_id(value) if name == "member_id" else names.text(value))
    if isinstance(value, memoryview | bytearray):
        return repr(bytes(value))
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return "[" + ", ".join(_scalar(name, element, names) for element in value) + "]"
    return repr(value)
