"""Stores: the small files of the data plane, which are written as a whole.

The configs of groups, the dynamic configs of the broker, the quotas of clients, the credentials of
SCRAM users. They are read when they are made: a damaged one stops the start, unless it is a repair.
"""

from msgspec import Struct

from broker.loop.ids import new_secret
from broker.observe.observer import Observer
from config.dynamic_rules import DynamicRules
from config.keys import Config
from config.storage_settings import topic_settings
from storage.open import Storage
from topics.broker_config_store import BrokerConfigStore
from topics.client_quota_store import ClientQuotaStore
from topics.group_config_store import GroupConfigStore
from topics.scram_store import ScramStore


class Stores(Struct, frozen=True):
    """All of them."""

    group_configs: GroupConfigStore
    broker_configs: BrokerConfigStore
    client_quotas: ClientQuotaStore
    scram: ScramStore

    @property
    def was_repaired(self) -> bool:
        parts = (self.group_configs, self.broker_configs, self.client_quotas, self.scram)
        return any(part.was_repaired for part in parts)


def open_stores(
    config: Config, rules: DynamicRules, storage: Storage, observer: Observer, *, repair: bool
) -> Stores:
    """Raises Corrupt, NewerFormat, OSError."""
    properties = topic_settings(config).broker_properties
    return Stores(
        GroupConfigStore(storage.group_configs_file, properties, observer, repair=repair),
        BrokerConfigStore(storage.broker_configs_file, rules, properties, observer, repair=repair),
        ClientQuotaStore(
            storage.client_quotas_file, config.rollcall_client_quotas_max, observer, repair=repair
        ),
        ScramStore(storage.scram_file, observer, new_secret, repair=repair),
    )
