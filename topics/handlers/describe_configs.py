"""DescribeConfigs: the configs in effect for topics and the broker, with their sources.

The configs of a topic or a group are resolved from its own and the broker's (`configs.py`,
`group_configs.py`); the broker's come from `ClusterView`, those that were changed while it ran and
the subscriptions of client metrics from `BrokerConfigStore`, levels from `LoggerLevels`.
Kafka's counterpart: `ConfigHelper`.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, assert_never

from protocol import java_text
from protocol.acl_codes import AclOperation
from protocol.answer_budget import ANSWER_BYTES_MAX, AnswerBudget
from protocol.config_def import ConfigType
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.names import ConfigSource, ErrorCode, TopicName
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from seams.topic_names import name_fault
from topics.api_error import MALFORMED_BY_CLIENT, ApiError
from topics.broker_config_store import BrokerConfigStore
from topics.client_metrics import SubscriptionEntry, subscription_entries
from topics.cluster import BrokerConfig, ClusterView
from topics.config_resources import ConfigResourceType
from topics.config_rights import config_refusal
from topics.configs import ConfigEntry, displayed_value
from topics.group_config_store import GroupConfigStore
from topics.group_configs import GroupConfigEntry
from topics.handlers.alter_broker_configs import LoggerLevels
from topics.registry import TopicRegistry
from topics.topic import Topic

_RESOURCE_TYPES: Final = frozenset(ConfigResourceType)
_NO_ROOM: Final = ApiError(
    ErrorCode.INVALID_REQUEST, f"The answer would be above {ANSWER_BYTES_MAX} bytes: ask for less."
)

Entries = Iterable[DescribeConfigsResourceResult]
_Shown = tuple[Sequence[DescribeConfigsResourceResult], int]
"""The requested entries, and their approximate size in the answer."""

_ENTRY_BYTES: Final = 20


class _Described(NamedTuple):
    """The state of one answer. Most topics have the same configs, which are described once."""

    room: AnswerBudget
    configs: dict[Hashable, _Shown]


class DescribeConfigsHandler:
    """Answers DescribeConfigs."""

    def __init__(
        self,
        registry: TopicRegistry,
        cluster: ClusterView,
        group_configs: GroupConfigStore,
        broker_configs: BrokerConfigStore,
        loggers: LoggerLevels,
        authorizer: Authorizer,
    ) -> None:
        self._registry = registry
        self._cluster = cluster
        self._group_configs = group_configs
        self._broker_configs = broker_configs
        self._loggers = loggers
        self._authorizer = authorizer

    def answer(self, request: DescribeConfigsRequest, token: ReplyToken) -> DescribeConfigsResponse:
        if any(r.resource_type not in _RESOURCE_TYPES for r in request.resources):
            return DescribeConfigsResponse(
                results=[_refused(resource, MALFORMED_BY_CLIENT) for resource in request.resources]
            )
        described = _Described(AnswerBudget(), {})
        allowed: list[DescribeConfigsResource] = []
        refused: list[DescribeConfigsResult] = []
        for resource in request.resources:
            error = config_refusal(
                self._authorizer,
                token,
                AclOperation.DESCRIBE_CONFIGS,
                resource.resource_type,
                resource.resource_name,
            )
            if error is None:
                allowed.append(resource)
            else:
                refused.append(_refused(resource, error))
        results = [self._result(resource, request, described) for resource in allowed]
        return DescribeConfigsResponse(results=results + refused)

    def _result(
        self,
        resource: DescribeConfigsResource,
        request: DescribeConfigsRequest,
        described: _Described,
    ) -> DescribeConfigsResult:
        entries = self._entries(ConfigResourceType(resource.resource_type), resource.resource_name)
        if isinstance(entries, ApiError):
            return _refused(resource, entries)
        wanted = frozenset(resource.configuration_keys or ())
        key = (self._described_as(resource), wanted)
        known = described.configs.get(key)
        if known is None:
            known = described.configs[key] = _shown(entries, wanted, request)
        configs, size = known
        if not described.room.takes(size + len(resource.resource_name)):
            return _refused(resource, _NO_ROOM)
        return DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    def _described_as(self, resource: DescribeConfigsResource) -> Hashable:
        """Resources for which this is the same have the same description."""
        resource_type, name = resource.resource_type, resource.resource_name
        if resource_type == ConfigResourceType.GROUP:
            return resource_type, frozenset(self._group_configs.configs(name).items())
        if resource_type == ConfigResourceType.TOPIC:
            topic = self._registry.by_name(TopicName(name))
            return resource_type, frozenset(topic.configs.items() if topic is not None else ())
        return resource_type, name

    def _entries(self, resource_type: ConfigResourceType, name: str) -> Entries | ApiError:
        match resource_type:
            case ConfigResourceType.TOPIC:
                return self._topic(name)
            case ConfigResourceType.BROKER:
                return self._broker(name)
            case ConfigResourceType.BROKER_LOGGER:
                return self._logger_levels(name)
            case ConfigResourceType.CLIENT_METRICS:
                return self._client_metrics(name)
            case ConfigResourceType.GROUP:
                return self._group(name)
            case _:
                assert_never(resource_type)

    def _topic(self, name: str) -> Entries | ApiError:
        fault = name_fault(name)
        if fault is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        topic = self._registry.by_name(TopicName(name))
        if topic is None:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return self._topic_entries(topic)

    def _topic_entries(self, topic: Topic) -> Iterator[DescribeConfigsResourceResult]:
        yield from map(self._topic_entry, self._registry.configs.entries(topic.configs))

    def _topic_entry(self, entry: ConfigEntry) -> DescribeConfigsResourceResult:
        value = displayed_value(entry)
        synonyms = [
            DescribeConfigsSynonym(*synonym)
            for synonym in self._registry.configs.broker_synonyms(entry.key)
        ]
        if entry.source is ConfigSource.TOPIC_CONFIG:
            synonyms.insert(0, DescribeConfigsSynonym(entry.key.name, value, entry.source))
        # As Kafka: the source is that of the strongest synonym that is shown.
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        return DescribeConfigsResourceResult(
            entry.key.name,
            value,
            config_source=source,
            synonyms=synonyms,
            config_type=entry.key.type,
            documentation=entry.key.documentation,
        )

    def _group(self, name: str) -> Entries | ApiError:
        """A group need not exist to have configs."""
        if not name:
            return _invalid("Group name must not be empty")
        return map(
            _group_entry, self._group_configs.rules.entries(self._group_configs.configs(name))
        )

    def _broker(self, name: str) -> Entries | ApiError:
        properties = self._broker_configs.properties
        if not name:
            return map(_broker_entry, self._cluster.cluster_configs(properties))
        fault = self._node_fault(name, " or empty string,")
        return fault or map(_broker_entry, self._cluster.broker_configs(properties))

    def _logger_levels(self, name: str) -> Entries | ApiError:
        if not name:
            return _invalid("Broker id must not be empty")
        fault = self._node_fault(name, "")
        return fault or [_logger_entry(*level) for level in self._loggers.levels().items()]

    def _client_metrics(self, name: str) -> Entries | ApiError:
        if not name:
            return _invalid("Client metrics subscription name must not be empty")
        configs = self._broker_configs.subscription(name)
        return map(_subscription_entry, subscription_entries(configs))

    def _node_fault(self, name: str, otherwise: str) -> ApiError | None:
        node_id = java_text.parse_integer(name, java_text.INT_MIN, java_text.INT_MAX)
        if node_id is None or name != java_text.trim(name):  # as Integer.parseInt
            return _invalid(f"Broker id must be an integer, but it is: {name}")
        if node_id == self._cluster.node_id:
            return None
        expected = f"{self._cluster.node_id}{otherwise}"
        return _invalid(f"Unexpected broker id, expected {expected} but received {name}")


def _group_entry(entry: GroupConfigEntry) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        entry.key.name,
        entry.text,
        config_source=entry.synonyms[0][2],
        synonyms=[DescribeConfigsSynonym(*synonym) for synonym in entry.synonyms],
        config_type=entry.key.type,
        documentation=entry.key.documentation,
    )


def _broker_entry(config: BrokerConfig) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        config.name,
        None if config.is_sensitive else config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name, None if config.is_sensitive else text, source)
            for name, text, source in config.synonyms
        ],
        config_type=config.config_type,
        documentation=config.documentation,
    )


def _logger_entry(name: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name,
        level,
        config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
        config_type=ConfigType.UNKNOWN,
        documentation="",  # shown, asked for or not, as by Kafka
    )


def _subscription_entry(entry: SubscriptionEntry) -> DescribeConfigsResourceResult:
    source = entry.synonyms[0].source if entry.synonyms else ConfigSource.DEFAULT_CONFIG
    return DescribeConfigsResourceResult(
        entry.key.name,
        entry.text,
        config_source=source,
        synonyms=[DescribeConfigsSynonym(*synonym) for synonym in entry.synonyms],
        config_type=entry.key.type,
        documentation=None,
    )


def _shown(entries: Entries, wanted: AbstractSet[str], request: DescribeConfigsRequest) -> _Shown:
    configs = [entry for entry in entries if not wanted or entry.name in wanted]
    size = 0
    for entry in configs:
        if not request.include_synonyms:
            entry.synonyms = ()
        if not request.include_documentation and entry.documentation:
            entry.documentation = None
        size += _ENTRY_BYTES + sum(map(len, (entry.name, entry.value or "")))
        size += len(entry.documentation or "")
        size += sum(len(synonym.name) + len(synonym.value or "") for synonym in entry.synonyms)
    return configs, size


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _refused(resource: DescribeConfigsResource, error: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error.error_code, error.message, resource.resource_type, resource.resource_name
    )
