"""Refusals in the audit log: for the same requests the lines are those of Kafka."""

import asyncio
from pathlib import Path

import pytest

from broker.audit.entry import AuditEntry
from broker.audit.folding import AuditFolding
from security.acls.authorizer import STANDARD_AUTHORIZER
from tests.broker.node import Node
from tests.compare.refusals import REFUSALS, recorded, refusals
from tests.compare.script import perform
from tests.compare.servers import Broker
from tests.compare.warm_up import until_serving

SETTINGS = {
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "allow_everyone_if_no_acl_found": True,
    "offsets_topic_num_partitions": 3,
    "transaction_state_log_num_partitions": 3,
}


async def test_the_lines_are_those_of_kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []

    def take(_folding: AuditFolding, entry: AuditEntry, _now_ms: int) -> None:
        """Each one: written is only the first of the same client and resource."""
        lines.append(entry.message)

    monkeypatch.setattr(AuditFolding, "take", take)
    async with Node(tmp_path, SETTINGS) as node:
        broker = Broker(lambda _: node.listener.port, lambda: None, node.listener.port)
        await asyncio.to_thread(until_serving, broker.port, transactions=True)
        await asyncio.to_thread(perform, REFUSALS, broker)
    ours = refusals(lines)
    assert ours <= recorded()
    # Of all topics, as of Metadata: what a list leaves out is no refusal here (docs/audit-log.md).
    missing = recorded() - ours
    assert all(line.endswith("for request = DescribeTopicPartitions") for line in missing)
