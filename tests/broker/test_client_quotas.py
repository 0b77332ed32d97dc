"""Client quotas of a whole daemon: set by a client, enforced, shown, and there after a restart."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from broker.metrics import client_quotas
from broker.metrics.family import declared
from broker.metrics.rebalance_costs import RebalanceCosts
from broker.metrics.scrape import Metrics, exposition
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.names import ErrorCode, TopicName
from tests.broker.node import Node
from tests.broker.shell import Client


async def set_quota(client: Client, key: str, bound: float) -> None:
    entity = [QuotaEntity("client-id", "limited"), QuotaEntity("user", "ANONYMOUS")]
    request = AlterClientQuotasRequest([QuotaAlteration(entity, [QuotaOperation(key, bound)])])
    answer = await client.call(request)
    assert isinstance(answer, AlterClientQuotasResponse)
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.NONE]


async def limited_client(node: Node) -> Client:
    client = await node.client()
    client.client_id = "limited"
    return client


async def create(client: Client, name: str) -> tuple[ErrorCode, int]:
    request = CreateTopicsRequest([CreatableTopic(TopicName(name), 20, 1)])
    answer = await client.call(request)
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code, answer.throttle_time_ms


async def test_a_quota_of_mutations_holds_at_once_and_after_a_restart(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        await set_quota(await node.client(), "controller_mutation_rate", 1.0)
        rate = QuotaOperation("connection_creation_rate", 1_000.0)
        of_address = QuotaAlteration([QuotaEntity("ip", None)], [rate])
        await (await node.client()).call(AlterClientQuotasRequest([of_address]))
        client = await limited_client(node)

        assert await create(client, "a") == (ErrorCode.NONE, 0)
        error_code, throttle_ms = await create(client, "b")

        assert error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert 5_000 < throttle_ms <= 9_000
        assert node.daemon.server.throttling.muted == 1
        text = "".join(
            filter(
                None,
                exposition(
                    Metrics(node.daemon, RebalanceCosts(), 0.0).portions(), openmetrics=False
                ),
            )
        )
        shown = {
            sample.name: (sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        client_labels = {"user": "ANONYMOUS", "client_id": "limited"}
        labels = {"quota": "controller_mutation_rate", **client_labels}
        assert shown["rollcall_client_quota_throttles_total"] == (labels, 1.0)
        assert shown["rollcall_client_quota_limit"] == (labels, 1.0)
        assert shown["rollcall_client_quota_use"][1] > 1.0
        assert shown["rollcall_client_quota_tokens"][0] == client_labels
        assert shown["rollcall_client_quota_tokens"][1] < 0
        assert shown["rollcall_muted_connections"] == ({}, 1.0)
        assert shown["rollcall_address_connection_throttles_total"][0] == {"address": "127.0.0.1"}
        for family in declared(vars(client_quotas)):
            assert shown[family.name][0].keys() == set(family.labels)
        assert await create(await node.client(), "b") == (ErrorCode.NONE, 0)

    async with Node(tmp_path) as node:
        client = await limited_client(node)
        await create(client, "c")
        assert (await create(client, "d"))[0] is ErrorCode.THROTTLING_QUOTA_EXCEEDED


async def test_a_fetch_over_its_quota_is_empty_and_says_for_how_long(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        other = await node.client()
        assert await create(other, "a") == (ErrorCode.NONE, 0)
        await set_quota(other, "consumer_byte_rate", 1.0)
        topic_id = node.daemon.data_plane.registry.topic_id(TopicName("a"))
        assert topic_id is not None
        asked = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(0)])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=asked)

        throttled = await (await limited_client(node)).call(request)
        served = await other.call(request)

        assert isinstance(throttled, FetchResponse)
        assert isinstance(served, FetchResponse)
        assert list(throttled.responses) == []
        assert throttled.throttle_time_ms > 10_000
        assert (len(served.responses), served.throttle_time_ms) == (1, 0)
