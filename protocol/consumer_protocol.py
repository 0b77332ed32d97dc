"""ConsumerProtocol: subscriptions and assignments of consumers, opaque to the coordinator.

A member's subscription is in JoinGroup, its assignment in SyncGroup. There is one exception: in
groups of protocol type "consumer" the coordinator reads the subscribed topics, which all versions
encode alike. The full readers and writers are for the history, tests and
the simulator's clients.

A version newer than ours is read as our newest, because fields are only ever appended.
Version notes: v1 owned_partitions (KIP-429); v2 generation_id (KIP-792); v3 rack_id (KIP-881).
Kafka's counterpart: `ConsumerProtocol`, ConsumerProtocolSubscription.json and -Assignment.json.
"""

import struct
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from protocol.compiler import M, reader, writer
from protocol.names import NO_GENERATION, GenerationId, TopicName
from protocol.primitives import Malformed
from protocol.schema import BYTES, INT32, NEVER, STRING, Message, Struct, array, nullable, since

PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = struct.Struct(">h")


class TopicPartitions(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class ConsumerProtocolSubscription(Message):
    VERSIONS: ClassVar = range(4)
    FLEXIBLE_SINCE: ClassVar = NEVER

    topics: Annotated[Sequence[TopicName], array(STRING)] = ()
    user_data: Annotated[bytes | None, nullable(BYTES)] = None
    owned_partitions: Annotated[
        Sequence[TopicPartitions], since(array(TopicPartitions), 1, ignorable=True)
    ] = ()
    generation_id: Annotated[GenerationId, since(INT32, 2, ignorable=True)] = NO_GENERATION
    rack_id: Annotated[str | None, since(STRING, 3, nullable=True, ignorable=True)] = None


class ConsumerProtocolAssignment(Message):
    VERSIONS: ClassVar = range(4)
    FLEXIBLE_SINCE: ClassVar = NEVER

    assigned_partitions: Annotated[Sequence[TopicPartitions], array(TopicPartitions)] = ()
    user_data: Annotated[bytes | None, nullable(BYTES)] = None


def read_subscription_topics(subscription: bytes) -> tuple[TopicName, ...] | None:
    """The topics of a subscription of any version; None if it cannot be read."""
    try:
        read = reader(ConsumerProtocolSubscription, 0)(
            subscription, _VERSION.size, len(subscription)
        )
    except Malformed:
        return None
    return tuple(read.topics)


def read_subscription(subscription: bytes) -> ConsumerProtocolSubscription:
    """The whole subscription. Raises Malformed."""
    return _read(ConsumerProtocolSubscription, subscription)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """The whole assignment. Raises Malformed."""
    return _read(ConsumerProtocolAssignment, assignment)


def write_subscription(subscription: ConsumerProtocolSubscription, version: int = 3) -> bytes:
    """The bytes that a member sends in JoinGroup."""
    prefix = _VERSION.pack(version)
    return writer(ConsumerProtocolSubscription, version, prefix=prefix)(subscription)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int = 3) -> bytes:
    """The bytes that a leader sends in SyncGroup for one member."""
    prefix = _VERSION.pack(version)
    return writer(ConsumerProtocolAssignment, version, prefix=prefix)(assignment)


def _read(cls: type[M], raw: bytes) -> M:
    if len(raw) < _VERSION.size:
        raise Malformed(f"{cls.__name__} of {len(raw)} bytes")
    version = _VERSION.unpack_from(raw)[0]
    if version < 0:
        raise Malformed(f"{cls.__name__} v{version}")
    newest = cls.VERSIONS.stop - 1
    return reader(cls, min(version, newest))(raw, _VERSION.size, len(raw))
