"""Broker config store: a change that a crash cuts short is made or not made."""

import random
from collections.abc import Mapping

import pytest

from config.dynamic_rules import DynamicRules
from config.keys import Config
from storage.atomic_file import StoredFile
from tests.simulator.disk import PowerCut, SimulatedDisk
from topics.admin_queue import run_now
from topics.broker_config_store import BrokerConfigStore

BEFORE: Mapping[str, str] = {"log.roll.ms": "1"}
AFTER: Mapping[str, str] = {"log.roll.ms": "2", "message.max.bytes": "3"}


def store_on(disk: SimulatedDisk) -> BrokerConfigStore:
    file = StoredFile(disk, "/data/rollcall-broker-configs.json")
    return BrokerConfigStore(file, DynamicRules(Config()), {}, lambda _: None)


@pytest.mark.parametrize("loses_power", [False, True], ids=["kill", "power"])
def test_a_change_is_made_or_not_made(*, loses_power: bool) -> None:
    steps, is_answered = 0, False
    while not is_answered:
        disk = SimulatedDisk()
        disk.make_dir("/data")
        disk.sync_dir("/")
        store = store_on(disk)
        run_now(store.change(BEFORE, per_broker=True))
        disk.cut_power_at = disk.operations + steps
        try:
            run_now(store.change(AFTER, per_broker=True))
            is_answered = True
        except PowerCut:
            pass
        left = disk.after_crash(random.Random(steps)) if loses_power else disk.after_kill()
        found = store_on(left).properties.broker
        assert found == AFTER if is_answered else found in (BEFORE, AFTER)
        steps += 1
    assert steps > 3
