"""Codec: what does it cost to decode a request and to encode its response? Best µs of several runs.

    .venv/bin/python bench/codec.py [--repeats N]

Whole frames with headers, as broker/net/connection.py handles them: the most frequent messages in
the versions that current clients send, and a few large ones. One core, no I/O.
"""

import argparse
from collections.abc import Callable
from functools import partial
from timeit import repeat
from uuid import UUID

from protocol.codec import RequestHeader, decode_request, encode_request, encode_response
from protocol.messages import Request, Response
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.names import GenerationId, GroupId, MemberId, TopicName

RUNS_S = 0.05
GROUP = GroupId("orders-service")
MEMBER = MemberId("consumer-orders-service-1-0b6d4a5e-6c1f-4a53-9a44-5f1d1a4c9d10")
GENERATION = GenerationId(7)
TOPIC = TopicName("orders")
TOPIC_ID = UUID(int=77)


def commit(partitions: int) -> tuple[Request, Response]:
    return (
        OffsetCommitRequest(
            GROUP,
            GENERATION,
            MEMBER,
            topics=(
                OffsetCommitRequestTopic(
                    TOPIC,
                    partitions=tuple(
                        OffsetCommitRequestPartition(i, 1_000_000 + i, 3, "")
                        for i in range(partitions)
                    ),
                ),
            ),
        ),
        OffsetCommitResponse(
            topics=(
                OffsetCommitResponseTopic(
                    TOPIC,
                    partitions=tuple(OffsetCommitResponsePartition(i) for i in range(partitions)),
                ),
            )
        ),
    )


def join(members: int) -> tuple[Request, Response]:
    protocols = (JoinGroupRequestProtocol("range", b"s" * 60),)
    return (
        JoinGroupRequest(GROUP, 45_000, 300_000, MEMBER, None, "consumer", protocols),
        JoinGroupResponse(
            generation_id=GENERATION,
            protocol_type="consumer",
            protocol_name="range",
            leader=MEMBER,
            member_id=MEMBER,
            members=tuple(
                JoinGroupResponseMember(MemberId(f"{MEMBER}-{i}"), None, b"s" * 60)
                for i in range(members)
            ),
        ),
    )


def fetch(size: int) -> tuple[Request, Response]:
    return (
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(FetchPartition(0),)),),
        ),
        FetchResponse(
            responses=(
                FetchableTopicResponse(
                    topic_id=TOPIC_ID, partitions=(PartitionData(records=b"r" * size),)
                ),
            )
        ),
    )


CASES: list[tuple[str, int, tuple[Request, Response]]] = [
    ("heartbeat", 4, (HeartbeatRequest(GROUP, GENERATION, MEMBER), HeartbeatResponse())),
    ("heartbeat", 0, (HeartbeatRequest(GROUP, GENERATION, MEMBER), HeartbeatResponse())),
    ("commit of 1", 8, commit(1)),
    ("commit of 1", 2, commit(1)),
    ("commit of 10", 8, commit(10)),
    ("join, 1 member", 9, join(1)),
    ("join, 1,000 members", 9, join(1_000)),
    ("fetch, 100 bytes", 13, fetch(100)),
    ("fetch, 1 MB", 13, fetch(1_000_000)),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="µs to read a request and to write its answer")
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    print(f"{'':22}{'version':>8}{'read':>10}{'write':>10}   µs")
    for name, version, (request, response) in CASES:
        api_key = request.API_KEY
        frame = encode_request(RequestHeader(api_key, version, 7, "orders-1"), request)
        read = best_us(partial(decode_request, frame, 4, len(frame)), repeats)
        write = best_us(partial(encode_response, api_key, version, 7, response), repeats)
        print(f"{name:22}{version:>8}{read:>10.2f}{write:>10.2f}")


def best_us(call: Callable[[], object], repeats: int) -> float:
    """The shortest time of a call: its cost without other load."""
    once = max(min(repeat(call, number=3, repeat=3)) / 3, 1e-7)
    number = max(1, int(RUNS_S / once))
    return min(repeat(call, number=number, repeat=repeats)) / number * 1e6


if __name__ == "__main__":
    main()
