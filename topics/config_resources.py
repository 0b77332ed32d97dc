"""Config resources: what can have configs, and the operations that change them.

Kafka's counterpart: `ConfigResource.Type`, `AlterConfigOp.OpType`.
"""

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """The `resource_type` of the requests about configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    """The `config_operation` of IncrementalAlterConfigs. The last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
