"""Metadata: the nodes, and the partitions of topics; may create missing topics.

One node leads all partitions. A topic that a client names and that does not exist is created at
once, if both the client and `auto.create.topics.enable` allow it, and is in this response.
Kafka differs: it answers UNKNOWN_TOPIC_OR_PARTITION first, while its controller creates the topic.
Kafka's counterpart: `KafkaApis.handleTopicMetadataRequest`, `AutoTopicCreationManager`.
"""

from collections.abc import Callable, Iterable
from typing import Final

from protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    ErrorCode,
    TopicId,
    TopicName,
)
from seams.reply_token import ReplyToken
from seams.topic_names import is_internal, name_fault
from topics.admin_queue import Steps
from topics.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from topics.cluster import ClusterView
from topics.events import AutoCreationFailed, TopicEvent
from topics.partition import NO_LEADER
from topics.placement import factor_fault
from topics.registry import NewTopic, Topic, TopicRegistry
from topics.settings import TopicSettings

FIRST_VERSION_BY_ID: Final = 12
AUTO_CREATION_FAILURES_MAX: Final = 1_000
"""Topics that could not be created automatically and are remembered as logged."""


class MetadataHandler:
    """Answers Metadata; creates missing topics."""

    def __init__(
        self,
        registry: TopicRegistry,
        cluster: ClusterView,
        settings: TopicSettings,
        observe: Callable[[TopicEvent], None],
    ) -> None:
        self._registry = registry
        self._cluster = cluster
        self._settings = settings
        self._observe = observe
        self._logged: set[TopicName] = set()  # topics whose failure was reported

    def creates_topics(self, request: MetadataRequest, token: ReplyToken) -> bool:
        """Whether it names topics to be created first: `create` is called before `answer`."""
        return not _mixes_ids_and_names(request, token.api_version) and bool(
            self._topics_to_create(request)
        )

    def create(self, request: MetadataRequest) -> Steps[None]:
        """Create the topics that it names and that still do not exist. In the admin queue."""
        for name in self._topics_to_create(request):
            yield from self._create(name)

    def _topics_to_create(self, request: MetadataRequest) -> list[TopicName]:
        if not (request.allow_auto_topic_creation and self._settings.auto_create_topics_enable):
            return []
        # If one topic is named by its id, all are.
        if not request.topics or any(t.topic_id != ZERO_TOPIC_ID for t in request.topics):
            return []
        names = dict.fromkeys(t.name for t in request.topics if t.name is not None)
        return [name for name in names if self._can_create(name)]

    def _can_create(self, name: TopicName) -> bool:
        if self._registry.by_name(name) is not None or name_fault(name) is not None:
            return False
        if name == TRANSACTION_STATE_TOPIC:
            return True
        if is_internal(name):
            return False  # created by their coordinators, or not at all
        fault = factor_fault(self._settings.default_replication_factor)
        colliding = self._registry.colliding(name)
        if colliding is not None:
            self._report_failure(name, f"it collides with {colliding}")
        elif fault is not None:
            self._report_failure(name, f"default.replication.factor: {fault.message}")
        return colliding is None and fault is None

    def answer(self, request: MetadataRequest, token: ReplyToken) -> MetadataResponse:
        if _mixes_ids_and_names(request, token.api_version):
            return _refused(request)
        node_id, host, port = self._cluster.endpoint(token)
        operations = OPERATIONS_NOT_REQUESTED
        if request.include_cluster_authorized_operations:
            operations = CLUSTER_OPERATIONS
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id, host, port, self._cluster.rack)],
            cluster_id=self._cluster.cluster_id,
            controller_id=node_id,
            topics=list(self._topics(request, token.api_version)),
            cluster_authorized_operations=operations,
        )

    def _topics(
        self, request: MetadataRequest, api_version: int
    ) -> Iterable[MetadataResponseTopic]:
        operations = OPERATIONS_NOT_REQUESTED
        if request.include_topic_authorized_operations:
            operations = TOPIC_OPERATIONS
        if request.topics is None or (not request.topics and api_version == 0):
            for name in self._registry.names():
                topic = self._registry.by_name(name)
                assert topic is not None
                yield self._known(topic, operations)
            return
        topic_ids = {t.topic_id for t in request.topics if t.topic_id != ZERO_TOPIC_ID}
        if topic_ids:
            yield from self._by_ids(topic_ids, operations)
            return
        # A repeated name is answered once.
        for name in dict.fromkeys(t.name for t in request.topics if t.name is not None):
            found = self._registry.by_name(name)
            if found is None:
                yield _unknown(name, operations)
            else:
                yield self._known(found, operations)

    def _by_ids(
        self, topic_ids: Iterable[TopicId], operations: int
    ) -> Iterable[MetadataResponseTopic]:
        for topic_id in topic_ids:
            topic = self._registry.by_id(topic_id)
            if topic is None:
                yield MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
            else:
                yield self._known(topic, operations)

    def _create(self, name: TopicName) -> Steps[None]:
        if not self._can_create(name):
            return  # it exists or collides meanwhile
        fresh = (
            self._registry.transaction_state_topic()
            if name == TRANSACTION_STATE_TOPIC
            else NewTopic(name, self._registry.new_topic_id(), self._settings.num_partitions)
        )
        try:
            yield from self._registry.create([fresh], automatic=True)
        except OSError as refusal:
            self._report_failure(name, str(refusal))

    def _report_failure(self, name: TopicName, reason: str) -> None:
        """Report it once: a client retries every few hundred milliseconds."""
        if name not in self._logged and len(self._logged) < AUTO_CREATION_FAILURES_MAX:
            self._logged.add(name)
            self._observe(AutoCreationFailed(name, reason))

    def _known(self, topic: Topic, operations: int) -> MetadataResponseTopic:
        node = (self._cluster.node_id,)
        return MetadataResponseTopic(
            ErrorCode.NONE,
            topic.name,
            topic.topic_id,
            topic.is_internal,
            [
                MetadataResponsePartition(
                    ErrorCode.LEADER_NOT_AVAILABLE, index, NO_LEADER, -1, node, (), node
                )
                if partition.offline
                else MetadataResponsePartition(
                    ErrorCode.NONE, index, node[0], partition.leader_epoch, node, node
                )
                for index, partition in enumerate(topic.partitions)
            ],
            operations,
        )


def _mixes_ids_and_names(request: MetadataRequest, api_version: int) -> bool:
    """Versions 10 and 11 have ids in the response only; later ones need a name or an id."""
    return any(
        (topic.name is None and topic.topic_id == ZERO_TOPIC_ID)
        or (api_version < FIRST_VERSION_BY_ID and topic.topic_id != ZERO_TOPIC_ID)
        for topic in request.topics or ()
    )


def _refused(request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                ErrorCode.INVALID_REQUEST, topic.name or TopicName(""), topic.topic_id
            )
            for topic in request.topics or ()
        ],
        error_code=ErrorCode.INVALID_REQUEST,
    )


def _unknown(name: TopicName, operations: int) -> MetadataResponseTopic:
    error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name_fault(name) is not None:
        error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(
        error_code, name, is_internal=is_internal(name), topic_authorized_operations=operations
    )
