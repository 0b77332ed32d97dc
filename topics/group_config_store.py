"""Group config store: the configs that groups have been given, and the file that has them.

The file is written as a whole before a change takes effect: a change that was answered survives a
crash, and one that was not is made or not made. A change is an operation of the admin queue: it
yields its disk work. The coordinator reads the values in effect (`seams/group_configs.py`).
A group need not exist to have configs, and keeps them when it is deleted.
Kafka's counterpart: `ConfigurationControlManager` for the table, `GroupConfigManager` for reading.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from protocol.config_def import ConfigException
from protocol.names import GroupId
from storage.api import Corrupt
from topics.admin_queue import Steps
from topics.broker_properties import BrokerProperties
from topics.catalog import CatalogFile
from topics.checked_json import JsonDocument, dump_checked
from topics.events import (
    GroupConfigCapped,
    GroupConfigsChanged,
    GroupConfigsLost,
    SaveFailed,
    TopicEvent,
)
from topics.group_configs import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    CappedConfig,
    GroupConfigRules,
)
from topics.stored_document import StoredDocument

GROUP_CONFIGS_FORMAT: Final = 1

GROUPS_WITH_CONFIGS_MAX: Final = 10_000
"""Groups that may have configs. The file is written as a whole: that many make about 1 MB."""


class GroupConfigsDamaged(Corrupt):
    """Without the file, groups would silently have the broker's values."""

    remedy = (
        "restore the file from a copy, or start once with --repair, which keeps it as "
        "*.damaged: groups then have the broker's values until their configs are set again"
    )


class _InEffect(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class _Read(NamedTuple):
    """One group of the file."""

    group_id: str
    configs: dict[str, str]
    in_effect: _InEffect
    capped: list[CappedConfig]


class GroupConfigStore:
    """Implements GroupConfigs. A change raises OSError if the disk fails; then nothing changed."""

    def __init__(
        self,
        file: CatalogFile,
        broker_properties: Mapping[str, str],
        observe: Callable[[TopicEvent], None],
        *,
        repair: bool = False,
    ) -> None:
        """Reads the file. With `repair` a damaged one is kept as a copy; then no group has configs.

        Raises Corrupt, NewerFormat, OSError.
        """
        self.rules = GroupConfigRules(broker_properties)
        self.was_repaired = False
        self._file = file
        self._observe = observe
        self._configs: dict[str, dict[str, str]] = {}
        self._in_effect: dict[str, _InEffect] = {}
        self._broker_values = self._values({})
        self._load(repair=repair)

    # What the coordinator reads

    def session_timeout_ms(self, group_id: GroupId, /) -> int:
        return self._in_effect.get(group_id, self._broker_values).session_timeout_ms

    def heartbeat_interval_ms(self, group_id: GroupId, /) -> int:
        return self._in_effect.get(group_id, self._broker_values).heartbeat_interval_ms

    def assignment_interval_ms(self, group_id: GroupId, /) -> int:
        return self._in_effect.get(group_id, self._broker_values).assignment_interval_ms

    def use(self, properties: BrokerProperties) -> None:
        """The broker's properties changed: groups have their values in effect by these."""
        self.rules.use(properties)
        self._broker_values = self._values({})
        for group_id in self._configs:
            self._resolve(group_id)

    # Queries

    def configs(self, group_id: str) -> Mapping[str, str]:
        """The group's own configs."""
        return self._configs.get(group_id, {})

    def groups(self) -> Iterator[str]:
        """The groups that have configs."""
        return iter(self._configs)

    # Changes

    def validate(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Whether the group may have these configs. Raises ConfigException."""
        self.rules.validate(configs)
        is_new = bool(configs) and group_id not in self._configs
        if is_new and len(self._configs) >= GROUPS_WITH_CONFIGS_MAX:
            raise ConfigException(
                f"{GROUPS_WITH_CONFIGS_MAX} groups have configs: no others can be given any."
            )

    def change(self, group_id: str, configs: dict[str, str]) -> Steps[None]:
        """Replace all configs of a group by these, which are valid; none: it has none any more."""
        after = dict(self._configs)
        if configs:
            after[group_id] = configs
        else:
            after.pop(group_id, None)
        if after == self._configs:
            return
        try:
            yield lambda: self._file.save(_dump(after))
        except OSError as fault:
            self._observe(SaveFailed("configs of groups", str(fault)))
            raise
        self._configs = after
        self._resolve(group_id)
        self._observe(GroupConfigsChanged(group_id, dict(configs)))

    def _resolve(self, group_id: str) -> None:
        if group_id in self._configs:
            self._in_effect[group_id] = self._values(self._configs[group_id])
        else:
            self._in_effect.pop(group_id, None)

    def _values(self, configs: Mapping[str, str]) -> _InEffect:
        return _InEffect(
            self.rules.in_effect(SESSION_TIMEOUT, configs),
            self.rules.in_effect(HEARTBEAT_INTERVAL, configs),
            self.rules.in_effect(ASSIGNMENT_INTERVAL, configs),
        )

    # The file

    def _load(self, *, repair: bool) -> None:
        stored = StoredDocument(GROUP_CONFIGS_FORMAT, self._parse, GroupConfigsDamaged)
        if repair:
            found, self.was_repaired = stored.load_or_repair(
                self._file, _dump({}), lambda kept_as: self._observe(GroupConfigsLost(kept_as))
            )
        else:
            found = stored.load(self._file)
        for group_id, configs, in_effect, capped in found or ():
            self._configs[group_id] = configs
            self._in_effect[group_id] = in_effect
            for each in capped:
                self._observe(GroupConfigCapped(group_id, *each))

    def _parse(self, document: JsonDocument) -> list[_Read]:
        """Raises ConfigException, and ValueError and others of `StoredDocument`."""
        return [
            _Read(group_id, configs, self._values(configs), list(self.rules.capped(configs)))
            for group_id, configs in _groups(document)
        ]


def _dump(groups: Mapping[str, Mapping[str, str]]) -> bytes:
    return dump_checked({"groups": groups}, GROUP_CONFIGS_FORMAT)


def _groups(document: Mapping[str, object]) -> Iterator[tuple[str, dict[str, str]]]:
    """Raises ValueError, KeyError. A name that only a later version knows is kept."""
    groups = document["groups"]
    if not isinstance(groups, dict):
        raise ValueError("groups is no object")  # noqa: TRY004 - the file is damaged
    for group_id, configs in groups.items():
        if not group_id or not isinstance(configs, dict) or not configs:
            raise ValueError(f"group {group_id!r} has no configs")
        if not all(isinstance(value, str) for value in configs.values()):
            raise ValueError(f"the configs of group {group_id!r} are no strings")
        yield group_id, configs
