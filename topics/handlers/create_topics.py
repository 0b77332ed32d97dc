"""CreateTopics: creates topics, or says for each why not.

Each topic is checked by itself, in Kafka's order: name, existence, configs, then partitions and
replicas. The valid ones are created together, with one save of the catalog.
Kafka's counterpart: `ControllerApis.createTopics`, `ReplicationControlManager.createTopics`.
"""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from protocol.acl_codes import AclOperation, ResourceType
from protocol.config_def import ConfigException
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.names import TRANSACTION_STATE_TOPIC, ErrorCode, TopicName
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.client_throttle import ClientThrottle
from seams.reply_token import ReplyToken
from seams.topic_names import CLUSTER_METADATA_TOPIC, name_fault
from topics.admin_queue import Steps
from topics.api_error import (
    DUPLICATE_TOPIC,
    OVER_MUTATION_QUOTA,
    TOO_MANY_PARTITIONS,
    TOO_MANY_RECORDS,
    ApiError,
    disk_error,
)
from topics.placement import assignment_fault, factor_fault
from topics.registry import TopicRegistry
from topics.settings import MAX_PARTITIONS_PER_REQUEST, MAX_RECORDS_PER_REQUEST, TopicSettings
from topics.topic import NewTopic
from topics.topic_rights import NONE_FORBIDDEN, forbidden_topics

DEFAULT = -1

_STRICT_QUOTA_SINCE = 6

_FORBIDDEN = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


class CreateTopicsHandler:
    """Answers CreateTopics."""

    def __init__(
        self,
        registry: TopicRegistry,
        node_id: int,
        settings: TopicSettings,
        authorizer: Authorizer,
        throttle: ClientThrottle,
    ) -> None:
        self._throttle = throttle
        self._registry = registry
        self._node_id = node_id
        self._settings = settings
        self._authorizer = authorizer

    def answer(
        self, request: CreateTopicsRequest, token: ReplyToken
    ) -> Steps[CreateTopicsResponse]:
        times = Counter(topic.name for topic in request.topics)
        prohibited = TopicName(CLUSTER_METADATA_TOPIC)
        named = [name for name, n in times.items() if n == 1 and name != prohibited]
        forbidden = self._forbidden(named, token)
        hidden = forbidden_topics(
            self._authorizer, token, AclOperation.DESCRIBE_CONFIGS, named, logs_refusals=False
        )
        permitted = set(named) - forbidden
        requested = [topic for topic in request.topics if topic.name in permitted]
        if sum(map(self._requested_partitions, requested)) > MAX_PARTITIONS_PER_REQUEST:
            return _all_refused(request, TOO_MANY_PARTITIONS)
        results_by_name = [(topic.name, self._permit(topic, token)) for topic in requested]
        valid = [result for _, result in results_by_name if isinstance(result, NewTopic)]
        records = sum(1 + topic.partitions + len(topic.configs) for topic in valid)
        if records > MAX_RECORDS_PER_REQUEST:
            return _all_refused(request, TOO_MANY_RECORDS)
        disk: ApiError | None = None
        if valid and not request.validate_only:
            try:
                yield from self._registry.create(valid)
            except OSError as fault:
                disk = disk_error(fault)
        results = [
            _refusal(name, result)
            if isinstance(result, ApiError)
            else self._created(result, disk, hidden)
            for name, result in results_by_name
        ]
        results += [_refusal(name, DUPLICATE_TOPIC) for name, n in times.items() if n > 1]
        results += [_refusal(name, _FORBIDDEN) for name in named if name in forbidden]
        if times[prohibited] == 1:
            text = f"Creation of internal topic {prohibited} is prohibited."
            results.append(_refusal(prohibited, ApiError(ErrorCode.INVALID_REQUEST, text)))
        return CreateTopicsResponse(topics=results)

    def _forbidden(self, names: Sequence[TopicName], token: ReplyToken) -> AbstractSet[TopicName]:
        """CREATE on the cluster is enough for all of them."""
        authorizer = self._authorizer
        if not authorizer.is_enabled or authorizer.allows(
            token, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=False
        ):
            return NONE_FORBIDDEN
        return forbidden_topics(authorizer, token, AclOperation.CREATE, names)

    def _requested_partitions(self, topic: CreatableTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        if topic.num_partitions == DEFAULT:
            return self._settings.num_partitions
        return max(topic.num_partitions, 0)

    def _permit(self, topic: CreatableTopic, token: ReplyToken) -> NewTopic | ApiError:
        """As in Kafka, what is only to be validated counts as well."""
        new = self._validate(topic)
        is_strict = token.api_version >= _STRICT_QUOTA_SINCE
        if isinstance(new, ApiError) or self._throttle.may_mutate(
            token, new.partitions, is_strict=is_strict
        ):
            return new
        return OVER_MUTATION_QUOTA

    def _validate(self, topic: CreatableTopic) -> NewTopic | ApiError:
        """The topic to create, or the first error."""
        fault = self._name_fault(topic.name) or self._configs_fault(topic)
        if fault is not None:
            return fault
        partitions = self._place(topic)
        if isinstance(partitions, ApiError):
            return partitions
        if topic.name == TRANSACTION_STATE_TOPIC:
            return self._transaction_state_topic(partitions)
        configs = {c.name: c.value for c in topic.configs if c.value is not None}
        return NewTopic(topic.name, self._registry.new_topic_id(), partitions, configs)

    def _transaction_state_topic(self, partitions: int) -> NewTopic | ApiError:
        """As its coordinator creates it. Kafka differs: it takes another number, and then answers
        NOT_COORDINATOR for some transactional ids until a restart."""
        new = self._registry.transaction_state_topic()
        if partitions == new.partitions:
            return new
        text = f"{new.name} gets transaction.state.log.num.partitions, {new.partitions}."
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)

    def _name_fault(self, name: TopicName) -> ApiError | None:
        if self._registry.by_name(name) is not None:
            return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        fault = name_fault(name)
        if fault is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        other = self._registry.colliding(name)
        if other is not None:
            text = f"Topic '{name}' collides with existing topic: {other}"
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        return None

    def _configs_fault(self, topic: CreatableTopic) -> ApiError | None:
        nulls = [config.name for config in topic.configs if config.value is None]
        if nulls:
            text = f"Null value not supported for topic configs: {','.join(nulls)}"
            return ApiError(ErrorCode.INVALID_CONFIG, text)
        try:
            self._registry.configs.validate(
                {c.name: c.value for c in topic.configs if c.value is not None}
            )
        except ConfigException as fault:
            return ApiError(ErrorCode.INVALID_CONFIG, str(fault))
        return None

    def _place(self, topic: CreatableTopic) -> int | ApiError:
        """The number of partitions, all of them on this node."""
        if topic.assignments:
            return self._place_manually(topic)
        if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
            return ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
            return ApiError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        factor = topic.replication_factor
        if factor == DEFAULT:
            factor = self._settings.default_replication_factor
        return factor_fault(factor) or self._requested_partitions(topic)

    def _place_manually(self, topic: CreatableTopic) -> int | ApiError:
        for value, name in (
            (topic.replication_factor, "replication factor"),
            (topic.num_partitions, "numPartitions"),
        ):
            if value != DEFAULT:
                text = f"A manual partition assignment was specified, but {name} was not set to -1."
                return ApiError(ErrorCode.INVALID_REQUEST, text)
        return self._assigned(topic.assignments)

    def _assigned(self, assignments: Sequence[CreatableReplicaAssignment]) -> int | ApiError:
        seen: set[int] = set()
        for assignment in assignments:
            index = assignment.partition_index
            if index in seen:
                return ApiError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Found multiple manual partition assignments for partition {index}",
                )
            fault = assignment_fault(assignment.broker_ids, self._node_id)
            if fault is not None:
                return fault
            seen.add(index)
        if seen != set(range(len(seen))):
            return ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "partitions should be a consecutive 0-based integer sequence",
            )
        return len(seen)

    def _created(
        self, topic: NewTopic, disk: ApiError | None, hidden: AbstractSet[TopicName]
    ) -> CreatableTopicResult:
        """The configs, and with them the counts, are only for clients that may describe them."""
        if disk is not None:
            return _refusal(topic.name, disk)
        if topic.name in hidden:
            return CreatableTopicResult(
                topic.name,
                topic.topic_id,
                error_message=None,
                topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
        return CreatableTopicResult(
            topic.name,
            topic.topic_id,
            error_message=None,
            num_partitions=topic.partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfigs(entry.key.name, entry.text, config_source=entry.source)
                for entry in self._registry.configs.entries(topic.configs)
            ],
        )


def _all_refused(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    """One as often as it is named, as in Kafka: the request failed, and not its topics."""
    return CreateTopicsResponse(topics=[_refusal(topic.name, error) for topic in request.topics])


def _refusal(name: TopicName, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=error.error_code, error_message=error.message)
