"""Listing: a message's declaration as text, one field a line, to compare ours with Kafka's.

    HeartbeatRequest 0-4, flexible 4-4
      group_id string 0-4 default=''
      group_instance_id string 3-4 null=3-4 default=None

Versions are those of the message that have the field, and the field's parent. Whether a field is
ignorable matters, and is shown, only if a version lacks it.
"""

from collections.abc import Iterator, Sequence

from protocol.names import ErrorCode
from protocol.schema import ArrayOf, FieldSpec, Message, Struct, StructOf, WireType, fields_of

# Parts whose names in Kafka's JSON are those of parts of other messages too.
_KAFKA_NAMES = {
    "HeartbeatTopicPartitions": "TopicPartitions",
    "HeartbeatAssignment": "Assignment",
    "DescribedTopicPartitions": "TopicPartitions",
    "DescribedAssignment": "Assignment",
    "DescribedConsumerMember": "Member",
    "DescribedConsumerGroup": "DescribedGroup",
    "IncrementalAlterConfigsResource": "AlterConfigsResource",
    "IncrementalAlterableConfig": "AlterableConfig",
    "QuotaAlteration": "EntryData",
    "QuotaEntity": "EntityData",
    "QuotaOperation": "OpData",
    "QuotaAlterationResult": "EntryData",
    "QuotaFilterComponent": "ComponentData",
    "QuotaEntry": "EntryData",
    "QuotaValue": "ValueData",
    "QuorumTopic": "TopicData",
    "QuorumPartition": "PartitionData",
    "DescribedQuorumTopic": "TopicData",
    "DescribedQuorumPartition": "PartitionData",
    "QuorumReplica": "ReplicaState",
    "QuorumListener": "Listener",
    "QuorumNode": "Node",
    "RaftVoterListener": "Listener",
    "ElectLeadersTopic": "TopicPartitions",
    "ElectedPartition": "PartitionResult",
    "ListedTransaction": "TransactionState",
    "DescribedTransaction": "TransactionState",
    "TransactionTopic": "TopicData",
    "DescribeProducersTopic": "TopicRequest",
    "DescribedProducersTopic": "TopicResponse",
    "DescribedProducersPartition": "PartitionResponse",
    "DescribedProducer": "ProducerState",
}


def render(cls: type[Message]) -> str:
    """The lines of one of our declarations."""
    versions = range(cls.VERSIONS.start, cls.VERSIONS.stop)
    flexible = range(max(cls.FLEXIBLE_SINCE, versions.start), versions.stop)
    return "\n".join([header(cls.__name__, versions, flexible), *_fields(cls, versions, "  ")])


def header(name: str, versions: Sequence[int], flexible: Sequence[int]) -> str:
    return f"{name} {span(versions)}, flexible {span(flexible)}"


def line(
    name: str,
    wire: str,
    versions: Sequence[int],
    *,
    nullable: Sequence[int],
    default: object,
    tag: int | None,
    ignorable: bool,
) -> str:
    words = [name, wire, span(versions)]
    if nullable:
        words.append(f"null={span(nullable)}")
    if tag is not None:
        words.append(f"tag={tag}")
    if ignorable:
        words.append("ignorable")
    if not wire[0].isupper():
        words.append(f"default={default!r}")
    return " ".join(words)


def span(versions: Sequence[int]) -> str:
    return f"{versions[0]}-{versions[-1]}" if versions else "none"


def _fields(cls: type[Struct], versions: Sequence[int], indent: str) -> Iterator[str]:
    for field in fields_of(cls):
        present = [version for version in versions if field.mark.in_version(version)]
        yield indent + _line(field, present, versions)
        wire = field.mark.wire
        element = wire.element if isinstance(wire, ArrayOf) else wire
        if isinstance(element, StructOf):
            yield from _fields(element.cls, present, indent + "  ")


def _line(field: FieldSpec, present: Sequence[int], versions: Sequence[int]) -> str:
    return line(
        field.name,
        _wire_name(field.mark.wire),
        present,
        nullable=[version for version in present if field.mark.nullable_in(version)],
        default=int(field.default) if isinstance(field.default, ErrorCode) else field.default,
        tag=field.mark.tag,
        ignorable=field.mark.ignorable and len(present) < len(versions),
    )


def _wire_name(wire: WireType) -> str:
    match wire:
        case ArrayOf(element):
            return f"[]{_wire_name(element)}"
        case StructOf(cls):
            return _KAFKA_NAMES.get(cls.__name__, cls.__name__)
        case _:
            return "int16" if wire.name == "error_code" else wire.name
