"""Transactions on the whole daemon: real sockets, real files, both transaction versions."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from logtools.dump import Wanted, dump
from logtools.layout import place_at
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import TRANSACTION_STATE_TOPIC, CoordinatorType, ErrorCode, ProducerId
from storage.boot_record import BOOT_FILE, BootRecord
from tests.broker.faulty_disk import FaultyDisk, broken_disk
from tests.broker.node import Node
from tests.broker.shell import WAIT_S, Client
from tests.broker.transactional_client import (
    GROUP,
    TOPIC,
    TransactionalProducer,
    asked,
    committed_offset,
    committed_values,
    fetched,
    stable,
    stable_offset,
)

__all__ = ["broken_disk"]

SETTINGS: Mapping[str, int | str | bool] = {
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 3,
}
BOTH = pytest.mark.parametrize("is_old", [False, True], ids=["version 2", "version 1"])


@asynccontextmanager
async def running(
    folder: Path, settings: Mapping[str, int | str | bool] | None = None
) -> AsyncIterator[tuple[Node, Client]]:
    async with Node(folder, {**SETTINGS, **(settings or {})}) as node:
        client = await node.client()
        yield node, client
        client.close()


async def given_topic(client: Client, partitions: int = 2) -> None:
    request = CreateTopicsRequest([CreatableTopic(TOPIC, partitions, 1)])
    created = await asked(client, request, 7, CreateTopicsResponse)
    assert created.topics[0].error_code is ErrorCode.NONE
    find = FindCoordinatorRequest(key_type=CoordinatorType.GROUP, coordinator_keys=[GROUP])
    await asked(client, find, 5, FindCoordinatorResponse)


async def given_producer(client: Client, *, is_old: bool = False) -> TransactionalProducer:
    producer = TransactionalProducer(client, is_old=is_old)
    await producer.init()
    return producer


def folders(path: Path) -> list[str]:
    return sorted(found.name for found in (path / "data").glob(f"{TRANSACTION_STATE_TOPIC}-*"))


@BOTH
async def test_a_transaction_is_seen_whole_or_not_at_all(tmp_path: Path, is_old: bool) -> None:
    async with running(tmp_path) as (_, client):
        await given_topic(client)
        producer = await given_producer(client, is_old=is_old)
        assert await producer.send(b"a", b"b") is ErrorCode.NONE
        assert await producer.send(b"c", partition=1) is ErrorCode.NONE
        assert await committed_values(client) == []
        assert (await fetched(client, committed=False)).values(committed=False) == [b"a", b"b"]
        assert await producer.end(commit=True) is ErrorCode.NONE
        await stable(client, (0, 1))
        assert await committed_values(client) == [b"a", b"b"]
        assert await committed_values(client, 1) == [b"c"]
        assert await producer.send(b"d") is ErrorCode.NONE
        assert await producer.end(commit=False) is ErrorCode.NONE
        await stable(client)
        assert await committed_values(client) == [b"a", b"b"]
        assert await producer.send(b"e") is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        await stable(client)
        assert await committed_values(client) == [b"a", b"b", b"e"]


@BOTH
async def test_offsets_are_committed_with_the_transaction(tmp_path: Path, is_old: bool) -> None:
    async with running(tmp_path) as (_, client):
        await given_topic(client)
        producer = await given_producer(client, is_old=is_old)
        assert await producer.send(b"out", partition=1) is ErrorCode.NONE
        assert await producer.commit_offset(5) is ErrorCode.NONE
        assert await committed_offset(client) is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert await stable_offset(client) == 5
        assert await producer.commit_offset(9) is ErrorCode.NONE
        assert await producer.end(commit=False) is ErrorCode.NONE
        assert await stable_offset(client) == 5


@BOTH
async def test_a_new_producer_of_the_id_fences_the_old_one_and_aborts_what_it_left(
    tmp_path: Path, is_old: bool
) -> None:
    async with running(tmp_path) as (_, client):
        await given_topic(client)
        zombie = await given_producer(client, is_old=is_old)
        assert await zombie.send(b"lost") is ErrorCode.NONE
        successor = await given_producer(client, is_old=is_old)
        await stable(client)
        assert await zombie.produce(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await zombie.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert await successor.send(b"kept") is ErrorCode.NONE
        assert await successor.end(commit=True) is ErrorCode.NONE
        await stable(client)
        assert await committed_values(client) == [b"kept"]


async def test_records_outside_of_a_transaction_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await given_topic(client)
        producer = await given_producer(client, is_old=True)
        assert await producer.produce(b"x") is ErrorCode.INVALID_TXN_STATE
        assert (await fetched(client)).partition.high_watermark == 0


async def test_verification_may_be_turned_off(tmp_path: Path) -> None:
    settings = {"transaction_partition_verification_enable": False}
    async with running(tmp_path, settings) as (_, client):
        await given_topic(client)
        producer = await given_producer(client, is_old=True)
        assert await producer.produce(b"x") is ErrorCode.NONE


async def test_the_topic_is_created_by_the_first_who_asks_for_a_coordinator(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (node, client):
        assert folders(tmp_path) == []
        assert "transaction_partitions" not in node.daemon.health.report()
        producer = TransactionalProducer(client)
        request = InitProducerIdRequest(producer.name, 60_000)
        answer = await asked(client, request, 5, InitProducerIdResponse)
        assert answer.error_code is ErrorCode.NOT_COORDINATOR  # which does not create it
        assert folders(tmp_path) == []
        assert await producer.found() is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await producer.init()
        assert len(folders(tmp_path)) == 3
        assert node.daemon.health.ready
        report = node.daemon.health.report()
        assert report["transaction_partitions"] == {
            "total": 3,
            "owned": 3,
            "loading": 0,
            "failed": {},
        }
        assert json.dumps(report)
        assert node.daemon.transactions.partition_count == 3
    async with running(tmp_path, {"transaction_state_log_num_partitions": 7}) as (node, client):
        assert node.daemon.transactions.partition_count == 3  # as Kafka: of the topic that is there
        successor = await given_producer(client)
        assert (successor.producer_id, successor.epoch) == (producer.producer_id, 1)


async def test_an_idempotent_producer_needs_no_topic_and_no_coordinator(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        request = InitProducerIdRequest(None, 60_000)
        answers = [await asked(client, request, 5, InitProducerIdResponse) for _ in range(3)]
        assert [(each.producer_id, each.producer_epoch) for each in answers] == [
            (0, 0),
            (1, 0),
            (2, 0),
        ]
        assert folders(tmp_path) == []


@BOTH
async def test_an_open_transaction_goes_on_after_a_restart(tmp_path: Path, is_old: bool) -> None:
    async with running(tmp_path) as (_, client):
        await given_topic(client)
        producer = await given_producer(client, is_old=is_old)
        assert await producer.send(b"before") is ErrorCode.NONE
        assert await producer.commit_offset(3) is ErrorCode.NONE
    async with running(tmp_path) as (node, client):
        producer.client = client
        assert await committed_offset(client) is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert [each.transactional_id for each in node.daemon.transactions.open_transactions()] == [
            producer.name
        ]
        assert await producer.send(b"after") is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        await stable(client)
        assert await committed_values(client) == [b"before", b"after"]
        assert await stable_offset(client) == 3


async def test_a_transaction_that_takes_too_long_is_aborted(tmp_path: Path) -> None:
    settings = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 20}
    async with running(tmp_path, settings) as (node, client):
        await given_topic(client)
        producer = TransactionalProducer(client)
        producer.timeout_ms = 50
        await producer.init()
        assert await producer.send(b"late") is ErrorCode.NONE
        await stable(client)
        assert await committed_values(client) == []
        assert "due to timeout" in node.log.getvalue()
        assert node.daemon.observer.counters.transactions_aborted == {"timeout": 1}


@pytest.mark.parametrize(
    ("boot", "flush", "values"),
    [
        ("another", "commit", []),
        ("another", "os", [b"sent"]),
        (None, "commit", [b"sent"]),
    ],
)
async def test_after_a_loss_of_unsynced_data_open_transactions_are_aborted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    boot: str | None,
    flush: str,
    values: list[bytes],
) -> None:
    """`boot`: the system that used the directory last, if it was not this one."""
    settings = {"rollcall_flush": flush}
    async with running(tmp_path, settings) as (_node, client):
        await given_topic(client)
        producer = await given_producer(client)
        assert await producer.send(b"sent") is ErrorCode.NONE
        monkeypatch.setattr(BootRecord, "clear", _keep)  # as a kill would
    monkeypatch.undo()
    record = tmp_path / "data" / BOOT_FILE
    assert record.exists()
    if boot is not None:
        record.write_text(f"{boot}\n")
    async with running(tmp_path, settings) as (_, client):
        producer.client = client
        expected = ErrorCode.NONE if values else ErrorCode.INVALID_TXN_STATE
        assert await producer.end(commit=True) is expected
        await stable(client)
        assert await committed_values(client) == values
        async with asyncio.timeout(WAIT_S):
            while record.read_text().strip() == boot:  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.01)
    assert not record.exists()


def _keep(_record: BootRecord, *, is_resolved: bool) -> None:
    pass


async def test_a_full_disk_stops_transactions_and_room_lets_them_go_on(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with running(tmp_path, {"rollcall_disk_full_retry_ms": 20}) as (node, client):
        await given_topic(client)
        producer = await given_producer(client)
        assert await producer.send(b"a") is ErrorCode.NONE
        broken_disk.full_for = "/"
        other = TransactionalProducer(client, "other")
        request = InitProducerIdRequest(other.name, 60_000)
        refused = await asked(client, request, 5, InitProducerIdResponse)
        assert refused.error_code is not ErrorCode.NONE
        broken_disk.full_for = ""
        async with asyncio.timeout(WAIT_S):
            while not node.daemon.health.ready:  # noqa: ASYNC110 - a number tells nobody
                await asyncio.sleep(0.01)
        await other.init()
        assert await producer.end(commit=True) is ErrorCode.NONE
        await stable(client)
        assert await committed_values(client) == [b"a"]


async def test_the_log_of_transactions_is_readable_by_the_tools(tmp_path: Path) -> None:
    async with running(tmp_path) as (node, client):
        await given_topic(client)
        producer = await given_producer(client)
        assert await producer.send(b"a") is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        await stable(client)
        partition = node.daemon.transactions.partition_for(producer.name)
    folder = tmp_path / "data" / f"{TRANSACTION_STATE_TOPIC}-{partition}"
    place = place_at(folder, topic=TRANSACTION_STATE_TOPIC)
    lines = list(dump(place, Wanted(), lambda file, found: pytest.fail(f"{file}: {found}")))
    states = [line["value"]["data"]["transactionStatus"] for line in lines]  # type: ignore[index,call-overload]
    assert states == [0, 1, 2, 4]
    assert ProducerId(-1) != producer.producer_id
