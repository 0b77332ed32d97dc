"""Log offsets: the first and the last offset of partitions, and those of a time.

Asked of each partition's leader (ListOffsets). Kafka's counterpart: `Admin.listOffsets`.
"""

from collections.abc import Mapping
from typing import Final

from client.cluster import ATTEMPTS, RETRIABLE, Cluster
from client.errors import RequestRefused
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataResponse
from protocol.names import ErrorCode, TopicName

START: Final = -2
END: Final = -1
"""In place of a timestamp, as in ListOffsets."""

_CONSUMER: Final = -1
"""As `replica_id`."""

Place = tuple[str, int]
"""A topic and a partition of it."""


def read_log_offsets(cluster: Cluster, asked: Mapping[Place, int]) -> dict[Place, int | None]:
    """The offset for each timestamp (ms), START or END; None: no record is that young.

    A partition that does not exist is not in the answer. Raises ClusterFault, RequestRefused.
    """
    found: dict[Place, int | None] = {}
    left = dict(asked)
    error = ErrorCode.NONE
    for attempt in range(ATTEMPTS):
        if not left:
            return found
        if attempt:
            cluster.wait()
        leaders, unled = _leaders(cluster, left)
        left = {place: asked[place] for place in unled}
        error = ErrorCode.LEADER_NOT_AVAILABLE
        for (host, port), places in leaders.items():
            answer = _ask_leader(cluster, host, port, {place: asked[place] for place in places})
            for place, (error_code, offset) in answer.items():
                if error_code is ErrorCode.NONE:
                    found[place] = None if offset < 0 else offset
                elif error_code in RETRIABLE:
                    left[place] = asked[place]
                elif error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise RequestRefused(f"offsets of {place[0]}-{place[1]}", error_code)
    if not left:
        return found
    topic, partition = min(left)
    raise RequestRefused(f"offsets of {topic}-{partition}", error)


def _leaders(
    cluster: Cluster, places: Mapping[Place, int]
) -> tuple[dict[tuple[str, int], list[Place]], list[Place]]:
    """The partitions by their leader's address, and those that have none now."""
    metadata = cluster.topics(sorted({topic for topic, _ in places}))
    leaders: dict[tuple[str, int], list[Place]] = {}
    unled: list[Place] = []
    addresses = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
    leader_ids = _leader_ids(metadata)
    for place in places:
        if place not in leader_ids:
            continue
        address = addresses.get(leader_ids[place])
        if address is None:
            unled.append(place)
        else:
            leaders.setdefault(address, []).append(place)
    return leaders, unled


def _leader_ids(metadata: MetadataResponse) -> dict[Place, int]:
    return {
        (topic.name, partition.partition_index): partition.leader_id
        for topic in metadata.topics
        if topic.name is not None
        for partition in topic.partitions
    }


def _ask_leader(
    cluster: Cluster, host: str, port: int, places: Mapping[Place, int]
) -> dict[Place, tuple[ErrorCode, int]]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, partition), timestamp in sorted(places.items()):
        row = ListOffsetsPartition(partition, -1, timestamp)
        topics.setdefault(topic, []).append(row)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        topics=[ListOffsetsTopic(TopicName(name), rows) for name, rows in topics.items()],
        timeout_ms=30_000,
    )
    answer = cluster.connection(host, port).ask(request, ListOffsetsResponse)
    return {
        (topic.name, row.partition_index): (row.error_code, row.offset)
        for topic in answer.topics
        for row in topic.partitions
    }
