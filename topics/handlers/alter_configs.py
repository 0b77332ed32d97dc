"""AlterConfigs and IncrementalAlterConfigs: change the configs of topics, groups and the broker.

Each resource of a request is changed, or refused, by itself. Both requests become edits of the
configs that a resource has now. Those of the broker, its loggers and client metrics are in
`alter_broker_configs.py`.
Kafka's counterpart: `ConfigAdminManager` and `ConfigurationControlManager`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from protocol.acl_codes import AclOperation
from protocol.config_def import ConfigException, ConfigType
from protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from protocol.names import ErrorCode, TopicName
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from seams.topic_names import name_fault
from topics.admin_queue import Steps
from topics.api_error import ApiError, disk_error, internal_topic_error
from topics.config_edits import (
    ConfigChange,
    ConfigEdit,
    edited_list,
    invalid_config,
    invalid_request,
)
from topics.config_resources import ConfigOperation, ConfigResourceType
from topics.config_rights import config_refusal
from topics.configs import KEYS as TOPIC_KEYS
from topics.configs import TopicConfigKey
from topics.group_config_store import GroupConfigStore
from topics.group_configs import GROUP_CONFIG_KEYS, GroupConfigKey
from topics.handlers.alter_broker_configs import BrokerConfigChanges
from topics.registry import TopicRegistry

_DONE: Final = ApiError(ErrorCode.NONE)
_OPERATIONS: Final = frozenset(ConfigOperation)
_RESOURCE_TYPES: Final = frozenset(ConfigResourceType)
_Key = TopicConfigKey | GroupConfigKey


class AlterConfigsHandler:
    """Answers both requests. An answer is an operation of the admin queue."""

    def __init__(
        self,
        registry: TopicRegistry,
        group_configs: GroupConfigStore,
        others: BrokerConfigChanges,
        authorizer: Authorizer,
    ) -> None:
        self._registry = registry
        self._groups = group_configs
        self._others = others
        self._authorizer = authorizer

    def answer(
        self, request: AlterConfigsRequest, token: ReplyToken
    ) -> Steps[AlterConfigsResponse]:
        changes = [_replacement(resource) for resource in request.resources]
        responses = yield from self._responses(changes, token, validate_only=request.validate_only)
        return AlterConfigsResponse(responses=responses)

    def answer_incremental(
        self, request: IncrementalAlterConfigsRequest, token: ReplyToken
    ) -> Steps[IncrementalAlterConfigsResponse]:
        changes = [_increment(resource) for resource in request.resources]
        responses = yield from self._responses(changes, token, validate_only=request.validate_only)
        return IncrementalAlterConfigsResponse(responses=responses)

    def _responses(
        self, changes: Sequence[ConfigChange], token: ReplyToken, *, validate_only: bool
    ) -> Steps[Sequence[AlterConfigsResourceResponse]]:
        times = Counter(change.resource for change in changes)
        responses = []
        for change in changes:
            error = (
                invalid_request("Each resource must appear at most once.")
                if times[change.resource] > 1
                else _fault(change)
            )
            if error is None:
                error = yield from self._change(change, token, validate_only=validate_only)
            responses.append(AlterConfigsResourceResponse(*error, *change.resource))
        return responses

    def _change(
        self, change: ConfigChange, token: ReplyToken, *, validate_only: bool
    ) -> Steps[ApiError]:
        def refusal() -> ApiError | None:
            return config_refusal(
                self._authorizer, token, AclOperation.ALTER_CONFIGS, *change.resource
            )

        resource_type = change.resource_type
        if resource_type == ConfigResourceType.BROKER:
            # As Kafka: the broker checks the values before the controller checks the right.
            return (yield from self._others.broker(change, refusal, validate_only=validate_only))
        is_known = resource_type in _RESOURCE_TYPES
        if resource_type == ConfigResourceType.BROKER_LOGGER:
            is_known = not change.replaces  # AlterConfigs does not know loggers
        refused = refusal() if is_known else None
        if refused is not None and resource_type == ConfigResourceType.BROKER_LOGGER:
            return ApiError(refused.error_code)  # without a message, as Kafka
        return refused or (yield from self._permitted(change, validate_only=validate_only))

    def _permitted(self, change: ConfigChange, *, validate_only: bool) -> Steps[ApiError]:
        match change.resource_type:
            case ConfigResourceType.TOPIC:
                return (yield from self._topic(change, validate_only=validate_only))
            case ConfigResourceType.GROUP:
                return (yield from self._group(change, validate_only=validate_only))
            case ConfigResourceType.BROKER_LOGGER if not change.replaces:
                return self._others.logger(change, validate_only=validate_only)
            case ConfigResourceType.CLIENT_METRICS:
                return (yield from self._others.client_metrics(change, validate_only=validate_only))
            case unknown:
                return invalid_request(f"Unknown resource type {unknown}")

    def _topic(self, change: ConfigChange, *, validate_only: bool) -> Steps[ApiError]:
        name = TopicName(change.resource_name)
        if not name:
            return invalid_request("Default topic resources are not allowed.")
        fault = name_fault(name)
        if fault is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        topic = self._registry.by_name(name)
        if topic is None:
            text = f"The topic '{name}' does not exist."
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        if topic.is_internal:
            # They follow from the broker's keys, at each start.
            return internal_topic_error(name, "given configs")
        return (
            yield from _apply(
                change,
                topic.configs,
                TOPIC_KEYS,
                self._registry.configs.validate,
                partial(self._registry.change_configs, topic),
                validate_only=validate_only,
            )
        )

    def _group(self, change: ConfigChange, *, validate_only: bool) -> Steps[ApiError]:
        group_id = change.resource_name
        if not group_id:
            return invalid_request("Default group resources are not allowed.")
        return (
            yield from _apply(
                change,
                self._groups.configs(group_id),
                GROUP_CONFIG_KEYS,
                partial(self._groups.validate, group_id),
                partial(self._groups.change, group_id),
                validate_only=validate_only,
            )
        )


def _increment(resource: IncrementalAlterConfigsResource) -> ConfigChange:
    edits = [ConfigEdit(c.name, c.config_operation, c.value) for c in resource.configs]
    return ConfigChange(resource.resource_type, resource.resource_name, edits, replaces=False)


def _replacement(resource: AlterConfigsResource) -> ConfigChange:
    edits = [ConfigEdit(c.name, ConfigOperation.SET, c.value) for c in resource.configs]
    return ConfigChange(resource.resource_type, resource.resource_name, edits, replaces=True)


def _fault(change: ConfigChange) -> ApiError | None:
    """What is wrong with a change of any resource."""
    names = [edit.name for edit in change.edits]
    if len(set(names)) < len(names):
        return invalid_request("Error due to duplicate config keys")
    nulls = [
        edit.name
        for edit in change.edits
        if edit.value is None and edit.operation != ConfigOperation.DELETE
    ]
    if nulls:
        return invalid_request(f"Null value not supported for : {', '.join(nulls)}")
    return None


def _apply(
    change: ConfigChange,
    present: Mapping[str, str],
    keys: Mapping[str, _Key],
    validate: Callable[[Mapping[str, str]], None],
    save: Callable[[dict[str, str]], Steps[None]],
    *,
    validate_only: bool,
) -> Steps[ApiError]:
    """Edit the configs that a resource has, check them as a whole, and save them."""
    if any(edit.operation not in _OPERATIONS for edit in change.edits):
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    configs = {} if change.replaces else dict(present)
    try:
        for edit in change.edits:
            _edit(configs, edit, keys.get(edit.name))
        validate(configs)
    except ConfigException as refused:
        return invalid_config(str(refused))
    if validate_only:
        return _DONE
    try:
        yield from save(configs)
    except OSError as fault:
        return disk_error(fault)
    return _DONE


def _edit(configs: dict[str, str], edit: ConfigEdit, key: _Key | None) -> None:
    """Raises ConfigException."""
    if edit.operation == ConfigOperation.DELETE:
        configs.pop(edit.name, None)
        return
    assert edit.value is not None, "checked before"
    if edit.operation == ConfigOperation.SET:
        configs[edit.name] = edit.value
        return
    operation = ConfigOperation(edit.operation)
    if key is None or key.type is not ConfigType.LIST:
        raise ConfigException(
            f"Can't {operation.name} to key {edit.name} because its type is not LIST."
        )
    # Where there is none: Kafka's default, not the broker's, as Kafka's controller takes it.
    present = configs.get(edit.name, key.default or "")
    configs[edit.name] = edited_list(present, operation, edit.value)
