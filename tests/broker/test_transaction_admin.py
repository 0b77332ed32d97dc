"""Transaction administration: requests of kafka-transactions about partitions of coordinators."""

from pathlib import Path

from protocol.messages.describe_producers import (
    DescribedProducersPartition,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, ErrorCode, TopicName
from tests.broker.shell import Client
from tests.broker.test_transactions import given_producer, given_topic, running
from tests.broker.transactional_client import asked, stable_offset

ONE_PARTITION = {"offsets_topic_num_partitions": 1}


async def described(client: Client, topic: TopicName) -> DescribedProducersPartition:
    request = DescribeProducersRequest([DescribeProducersTopic(topic, [0])])
    answer = await asked(client, request, 0, DescribeProducersResponse)
    return answer.topics[0].partitions[0]


async def test_open_offsets_are_found_and_aborted(tmp_path: Path) -> None:
    async with running(tmp_path, ONE_PARTITION) as (_, client):
        await given_topic(client)
        producer = await given_producer(client)
        assert await producer.commit_offset(7) is ErrorCode.NONE
        found = await described(client, OFFSETS_TOPIC)
        (known,) = found.active_producers
        assert found.error_code is ErrorCode.NONE
        assert known.producer_id == producer.producer_id
        assert known.current_txn_start_offset >= 0

        marker = WritableTxnMarker(
            known.producer_id,
            known.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(OFFSETS_TOPIC, [0])],
        )
        written = await asked(client, WriteTxnMarkersRequest([marker]), 1, WriteTxnMarkersResponse)
        assert written.markers[0].topics[0].partitions[0].error_code is ErrorCode.NONE
        (known,) = (await described(client, OFFSETS_TOPIC)).active_producers
        assert known.current_txn_start_offset == -1
        assert await stable_offset(client) == -1


async def test_topics_of_coordinators_without_producers_are_described(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await given_topic(client)
        await given_producer(client)
        found = await described(client, TRANSACTION_STATE_TOPIC)
        assert (found.error_code, list(found.active_producers)) == (ErrorCode.NONE, [])
