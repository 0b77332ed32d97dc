"""Broker config changes: AlterConfigs of the broker, its loggers and client metrics.

A change of the broker's configs is for this broker (its id is the name of the resource) or for the
whole cluster (""). Both levels are kept, and the broker's own is the stronger one. A change of a
logger's level lasts until the restart. `alter_configs.py` has the rest of both requests.
Kafka's counterpart: `ConfigAdminManager`, `ClientMetricsConfigs`.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from protocol import java_text
from protocol.config_def import ConfigException
from protocol.names import ErrorCode
from topics.admin_queue import Steps
from topics.api_error import ApiError, disk_error
from topics.broker_config_store import BROKER_CONFIGS_MAX, BrokerConfigStore, check_lengths
from topics.client_metrics import UnknownSubscriptionConfig
from topics.config_edits import (
    ConfigChange,
    ConfigEdit,
    edited_list,
    invalid_config,
    invalid_request,
)
from topics.config_resources import ConfigOperation

_DONE: Final = ApiError(ErrorCode.NONE)
_OPERATIONS: Final = frozenset(ConfigOperation)
_LIST_OPERATIONS: Final = (ConfigOperation.APPEND, ConfigOperation.SUBTRACT)

ROOT_LOGGER: Final = "root"
LOG_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


class LoggerLevels(Protocol):
    """The loggers of this process; `broker/observe/logger_levels.py` implements it."""

    def levels(self) -> Mapping[str, str]:
        """Every logger with its level in effect, one of LOG_LEVELS."""

    def set_level(self, logger: str, level: str | None) -> None:
        """None: the root's. The logger exists."""


class BrokerConfigChanges:
    """Answers for one resource each."""

    def __init__(self, store: BrokerConfigStore, loggers: LoggerLevels, node_id: int) -> None:
        self._store = store
        self._loggers = loggers
        self._node_id = node_id

    # The broker

    def broker(
        self,
        change: ConfigChange,
        refusal: Callable[[], ApiError | None],
        *,
        validate_only: bool,
    ) -> Steps[ApiError]:
        """`refusal` is asked for last; None: the client may change it."""
        per_broker = bool(change.resource_name)
        if per_broker:
            other = self._other_node(change, "Unexpected broker id, expected {}, but received {}")
            if other is not None:
                return other
        present = {} if change.replaces else dict(self._store.configs(per_broker=per_broker))
        for edit in change.edits:
            error = self._edit(present, edit)
            if error is not None:
                return error
        try:
            self._store.validate(present, per_broker=per_broker)
        except ConfigException as refused:
            return invalid_request(str(refused))
        forbidden = refusal()
        if forbidden is not None:
            return forbidden
        try:
            _check_size(present)
        except ConfigException as refused:
            return invalid_config(str(refused))
        if validate_only:
            return _DONE
        try:
            yield from self._store.change(present, per_broker=per_broker)
        except OSError as fault:
            return disk_error(fault)
        return _DONE

    def _edit(self, configs: dict[str, str], edit: ConfigEdit) -> ApiError | None:
        match edit.operation:
            case ConfigOperation.DELETE:
                configs.pop(edit.name, None)
                return None
            case ConfigOperation.SET:
                assert edit.value is not None, "checked before"
                configs[edit.name] = edit.value
                return None
            case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
                return self._edit_list(configs, edit)
            case unknown:
                return invalid_request(f"Unknown operations type {unknown}")

    def _edit_list(self, configs: dict[str, str], edit: ConfigEdit) -> ApiError | None:
        try:
            default = self._store.rules.list_default(edit.name)
        except KeyError:
            return invalid_config(f"Unknown config name: {edit.name}")
        operation = ConfigOperation(edit.operation)
        if default is None:
            verb = operation.name.lower()
            return invalid_config(f"Config value {verb} is not allowed for config key: {edit.name}")
        assert edit.value is not None, "checked before"
        present = configs.get(edit.name, default)
        configs[edit.name] = edited_list(present, operation, edit.value)
        return None

    # Loggers

    def logger(self, change: ConfigChange, *, validate_only: bool) -> ApiError:
        other = self._other_node(change, "Unexpected node id. Expected {}, but received {}")
        if other is not None:
            return other
        for edit in change.edits:
            error = self._logger_fault(edit)
            if error is not None:
                return error
        if not validate_only:
            for edit in change.edits:
                deleted = edit.operation == ConfigOperation.DELETE
                self._loggers.set_level(edit.name, None if deleted else edit.value)
        return _DONE

    def _logger_fault(self, edit: ConfigEdit) -> ApiError | None:
        if edit.operation not in _OPERATIONS:
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if edit.operation in _LIST_OPERATIONS:
            operation = ConfigOperation(edit.operation).name
            return invalid_request(
                f"{operation} operation is not allowed for the BROKER_LOGGER resource"
            )
        if edit.name not in self._loggers.levels():
            return invalid_config(f"Logger {edit.name} does not exist!")
        if edit.operation == ConfigOperation.DELETE:
            if edit.name == ROOT_LOGGER:
                return invalid_request("Removing the log level of the root logger is not allowed")
            return None
        if edit.value not in LOG_LEVELS:
            return invalid_config(
                f"Cannot set the log level of {edit.name} to {edit.value} as it is not a supported "
                f"log level. Valid log levels are {', '.join(LOG_LEVELS)}"
            )
        return None

    # Client metrics

    def client_metrics(self, change: ConfigChange, *, validate_only: bool) -> Steps[ApiError]:
        name = change.resource_name
        if not name:
            return invalid_request("Subscription name can't be empty")
        configs = {} if change.replaces else dict(self._store.subscription(name))
        for edit in change.edits:
            error = _edit_subscription(configs, edit)
            if error is not None:
                return error
        try:
            self._store.validate_subscription(name, configs)
        except UnknownSubscriptionConfig as refused:
            return invalid_request(str(refused))
        except ConfigException as refused:
            return invalid_config(str(refused))
        if validate_only:
            return _DONE
        try:
            yield from self._store.change_subscription(name, configs)
        except OSError as fault:
            return disk_error(fault)
        return _DONE

    def _other_node(self, change: ConfigChange, text: str) -> ApiError | None:
        name = change.resource_name
        node_id = java_text.parse_integer(name, java_text.INT_MIN, java_text.INT_MAX)
        if node_id is None or name != java_text.trim(name):  # as Integer.parseInt
            return invalid_request(f"Node id must be an integer, but it is: {name}")
        if node_id != self._node_id:
            return invalid_request(text.format(self._node_id, name))
        return None


def _edit_subscription(configs: dict[str, str], edit: ConfigEdit) -> ApiError | None:
    match edit.operation:
        case ConfigOperation.DELETE:
            configs.pop(edit.name, None)
        case ConfigOperation.SET:
            assert edit.value is not None, "checked before"
            configs[edit.name] = edit.value
        case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
            # Kafka's controller does not know which of these keys are lists.
            operation = ConfigOperation(edit.operation).name
            return invalid_config(
                f"Can't {operation} to key {edit.name} because its type is not LIST."
            )
        case _:
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


def _check_size(configs: Mapping[str, str]) -> None:
    """Raises ConfigException."""
    check_lengths(configs)
    if len(configs) > BROKER_CONFIGS_MAX:
        raise ConfigException(f"A broker can have at most {BROKER_CONFIGS_MAX} dynamic configs.")
