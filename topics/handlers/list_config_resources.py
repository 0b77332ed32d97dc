"""ListConfigResources: the resources that may have configs, by type.

Topics, the broker and its loggers are listed as they exist, groups and client metrics if they have
configs.
Kafka's counterpart: `KafkaApis.handleListConfigResources`.
"""

from collections.abc import Iterable

from protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from protocol.names import ErrorCode
from topics.broker_config_store import BrokerConfigStore
from topics.config_resources import ConfigResourceType
from topics.group_config_store import GroupConfigStore
from topics.registry import TopicRegistry

CLIENT_METRICS_ONLY_VERSION = 0


def answer_list_config_resources(
    request: ListConfigResourcesRequest,
    version: int,
    registry: TopicRegistry,
    group_configs: GroupConfigStore,
    broker_configs: BrokerConfigStore,
    node_id: int,
) -> ListConfigResourcesResponse:
    if version == CLIENT_METRICS_ONLY_VERSION:
        wanted: set[int] = {ConfigResourceType.CLIENT_METRICS}
    else:
        wanted = set(request.resource_types) or set(ConfigResourceType)
    if not wanted <= set(ConfigResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names: dict[ConfigResourceType, Iterable[str]] = {
        ConfigResourceType.GROUP: group_configs.groups(),
        ConfigResourceType.CLIENT_METRICS: broker_configs.subscriptions(),
        ConfigResourceType.BROKER_LOGGER: (str(node_id),),
        ConfigResourceType.BROKER: (str(node_id),),
        ConfigResourceType.TOPIC: registry.names(),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, resource_type)
            for resource_type, resources in names.items()
            if resource_type in wanted
            for name in resources
        ]
    )
