"""Replay orders: a load makes of them what a real Kafka 4.3.1 made of them."""

import json
from uuid import UUID

import msgspec
import pytest

from coordinator.describe_groups import consumer_description
from coordinator.group_types import AnyGroup, group_of_plain, plain_of
from coordinator.records import UnreadableRecord
from coordinator.restore import apply_record
from coordinator.settings import GroupSettings
from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.names import GroupId
from seams.authorizer import ALLOW_ALL
from seams.reply_token import ReplyToken
from storage.api import StoredRecord
from tests.coordinator.consumer.replay_orders import AT_MS, RECORDED, TOPIC, replay_orders
from tests.coordinator.offset_givens import Topics

KAFKA = json.loads(RECORDED.read_text())
TOPIC_ID = UUID(KAFKA["topic_id"])
CASES = replay_orders(TOPIC_ID)


def test_every_case_was_recorded() -> None:
    assert KAFKA["groups"].keys() == CASES.keys()
    failed = [group_id for group_id, group in KAFKA["groups"].items() if group is None]
    assert 5 < len(failed) < len(CASES) - 5


@pytest.mark.parametrize("group_id", CASES)
def test_a_load_gives_the_group_of_kafka_or_fails_as_there(group_id: GroupId) -> None:
    wanted = KAFKA["groups"][group_id]
    groups: dict[GroupId, AnyGroup] = {}
    try:
        for offset, record in enumerate(CASES[group_id]):
            apply_record(groups, StoredRecord(offset, AT_MS, *record))
    except UnreadableRecord:
        assert wanted is None
        return

    topics = Topics({TOPIC: 3}, {TOPIC: TOPIC_ID})
    how = consumer_description(ReplyToken(1, "", ""), ALLOW_ALL, operations=False)
    found = how.describe(group_id, groups.get(group_id), topics, GroupSettings())

    assert in_order(found) == wanted
    if group_id in groups:
        blob = msgspec.msgpack.encode(plain_of(groups[group_id]))
        again = group_of_plain(group_id, msgspec.msgpack.decode(blob))
        assert in_order(how.describe(group_id, again, topics, GroupSettings())) == wanted
        assert msgspec.msgpack.encode(plain_of(again)) == blob


def in_order(group: DescribedConsumerGroup) -> object:
    """As the recorder saw it."""
    plain = msgspec.to_builtins(group)
    plain["members"] = sorted(plain["members"], key=lambda member: member["member_id"])
    return json.loads(json.dumps(plain))
