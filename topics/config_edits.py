"""Config edits: the operations of AlterConfigs and IncrementalAlterConfigs on one resource.

Both requests become edits of the configs that a resource has.
"""

from collections.abc import Sequence
from typing import NamedTuple

from protocol.names import ErrorCode
from topics.api_error import ApiError
from topics.config_resources import ConfigOperation


class ConfigEdit(NamedTuple):
    """One operation on one config. `operation` may be none that exists."""

    name: str
    operation: int
    value: str | None


class ConfigChange(NamedTuple):
    """What is asked for one resource. `replaces`: configs that are not named are removed."""

    resource_type: int
    resource_name: str
    edits: Sequence[ConfigEdit]
    replaces: bool

    @property
    def resource(self) -> tuple[int, str]:
        return self.resource_type, self.resource_name


def edited_list(present: str, operation: ConfigOperation, value: str) -> str:
    """A list after APPEND or SUBTRACT."""
    words = _split(present) if present else []
    given = _split(value)
    if operation is ConfigOperation.APPEND:
        words += [word for word in given if word not in words]
    else:
        words = [word for word in words if word not in given]
    return ",".join(words)


def _split(text: str) -> list[str]:
    """As Java's `split(",")`: words as they are, without the empty ones at the end."""
    words = text.split(",")
    while len(words) > 1 and not words[-1]:
        words.pop()
    return words


def invalid_request(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def invalid_config(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, message)
