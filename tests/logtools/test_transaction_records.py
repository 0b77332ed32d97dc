"""Transaction records: `rollcall log dump` and `lint` read `__transaction_state`."""

from pathlib import Path

import pytest

from logtools.dump import Wanted, dump
from logtools.findings import LintCounts
from logtools.layout import place_at
from logtools.lint import findings
from protocol.names import TRANSACTION_STATE_TOPIC, ProducerId, TransactionalId
from storage.api import Record, TopicPartition
from tests.logtools.logs import NOW_MS, batches, write_partition
from transactions.metadata import TransactionMetadata, TransactionState
from transactions.records import tombstone, transaction_record

ID = TransactionalId("t-1-cfb864")

# As a Kafka 4.3.1 wrote it.
EMPTY_V1 = bytes.fromhex(
    "0001000000000000000e00000000ea600000000001a202983b1effffffffffffffff010008000000000000000e"
)


def _ongoing(version: int) -> Record:
    metadata = TransactionMetadata(
        transactional_id=ID,
        producer_id=ProducerId(14),
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        last_update_at_ms=NOW_MS,
        previous_producer_id=ProducerId(14),
        partitions=frozenset({TopicPartition("orders", 0)}),
        started_at_ms=NOW_MS,
        client_transaction_version=2 * version,
    )
    return transaction_record(metadata, version)


def _folder(path: Path, *records: Record) -> Path:
    return write_partition(path, TRANSACTION_STATE_TOPIC, 7, batches([[each] for each in records]))


def test_a_record_is_shown_in_kafkas_words(tmp_path: Path) -> None:
    empty = Record(_ongoing(1).key, EMPTY_V1)
    folder = _folder(tmp_path, empty, _ongoing(1), _ongoing(0), tombstone(ID))
    place = place_at(folder, topic=TRANSACTION_STATE_TOPIC)
    lines = list(dump(place, Wanted(), lambda file, found: pytest.fail(f"{file}: {found}")))
    assert [line["type"] for line in lines] == ["TransactionLog"] * 4
    assert lines[0]["key"] == {"type": 0, "data": {"transactionalId": ID}}
    assert lines[0]["value"] == {
        "version": 1,
        "data": {
            "producerId": 14,
            "previousProducerId": 14,
            "producerEpoch": 0,
            "transactionTimeoutMs": 60_000,
            "transactionStatus": 0,
            "transactionPartitions": None,
            "transactionLastUpdateTimestampMs": 0x1A202983B1E,
            "transactionStartTimestampMs": -1,
        },
    }
    ongoing, old = lines[1]["value"], lines[2]["value"]
    assert isinstance(ongoing, dict)
    assert isinstance(old, dict)
    assert isinstance(ongoing["data"], dict)
    assert isinstance(old["data"], dict)
    assert ongoing["data"]["transactionPartitions"] == [{"topic": "orders", "partitionIds": [0]}]
    assert ongoing["data"]["clientTransactionVersion"] == 2
    assert old["version"] == 0
    assert not {"previousProducerId", "clientTransactionVersion"} & old["data"].keys()
    assert lines[3]["value"] is None
    assert not any("problem" in line for line in lines)


def test_lint_reports_a_record_that_cannot_be_understood(tmp_path: Path) -> None:
    sound = _ongoing(1)
    assert sound.value is not None
    _folder(tmp_path, sound, Record(sound.key, sound.value[:-9]))
    place = place_at(tmp_path, topic=TRANSACTION_STATE_TOPIC)
    found = [finding for finding in findings(place, LintCounts()) if finding.check == "content"]
    assert len(found) == 1
    assert "offset 1: value version 1" in found[0].problem
