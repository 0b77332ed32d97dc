"""Metadata: the nodes, and the partitions of topics; may create missing topics.

One node leads all partitions. A topic that a client names and that does not exist is created at
once, if both the client and `auto.create.topics.enable` allow it, and is in this response.
Kafka differs: it answers UNKNOWN_TOPIC_OR_PARTITION first, while its controller creates the topic.
Kafka's counterpart: `KafkaApis.handleTopicMetadataRequest`, `AutoTopicCreationManager`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, ResourceType
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
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.client_throttle import ClientThrottle
from seams.reply_token import ReplyToken
from seams.topic_names import is_internal, name_fault
from topics.admin_queue import Steps
from topics.authorized_operations import cluster_operations, topic_operations
from topics.cluster import ClusterView
from topics.events import AutoCreationFailed, TopicEvent
from topics.partition import NO_LEADER
from topics.placement import factor_fault
from topics.registry import TopicRegistry
from topics.settings import TopicSettings
from topics.topic import NewTopic, Topic
from topics.topic_rights import NONE_FORBIDDEN, forbidden_topics

FIRST_VERSION_BY_ID: Final = 12
_FORBIDDEN: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
AUTO_CREATION_FAILURES_MAX: Final = 1_000
"""Topics that could not be created automatically and are remembered as logged."""


class ForbiddenTopics(NamedTuple):
    """Topics of a request that the client may not see, and those that it may not create."""

    describe: frozenset[TopicName] = NONE_FORBIDDEN
    create: frozenset[TopicName] = NONE_FORBIDDEN


_NOTHING_FORBIDDEN: Final = ForbiddenTopics()


class MetadataHandler:
    """Answers Metadata; creates missing topics."""

    def __init__(
        self,
        registry: TopicRegistry,
        cluster: ClusterView,
        settings: TopicSettings,
        observe: Callable[[TopicEvent], None],
        authorizer: Authorizer,
        throttle: ClientThrottle,
    ) -> None:
        self._throttle = throttle
        self._registry = registry
        self._cluster = cluster
        self._settings = settings
        self._observe = observe
        self._authorizer = authorizer
        self._logged: set[TopicName] = set()  # topics whose failure was reported

    def forbidden(self, request: MetadataRequest, token: ReplyToken) -> ForbiddenTopics:
        """What the other methods are called with; the client's rights are asked for here."""
        if not self._authorizer.is_enabled or _mixes_ids_and_names(request, token.api_version):
            return _NOTHING_FORBIDDEN
        is_of_all = _is_of_all(request, token.api_version)
        names = self._registry.names() if is_of_all else self._named(request)
        hidden = forbidden_topics(
            self._authorizer, token, AclOperation.DESCRIBE, names, logs_refusals=not is_of_all
        )
        missing: list[TopicName] = []
        if self._may_create(request):
            registry = self._registry
            missing = [n for n in names if n not in hidden and registry.by_name(n) is None]
        return ForbiddenTopics(hidden, self._uncreatable(missing, token))

    def _uncreatable(self, missing: Sequence[TopicName], token: ReplyToken) -> frozenset[TopicName]:
        """CREATE on the cluster is enough for all of them."""
        if not missing or self._authorizer.allows(
            token, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=False
        ):
            return NONE_FORBIDDEN
        return forbidden_topics(self._authorizer, token, AclOperation.CREATE, missing)

    def _named(self, request: MetadataRequest) -> list[TopicName]:
        """The topics that it names, or those with the ids that it names."""
        asked = request.topics or ()
        ids = [topic.topic_id for topic in asked if topic.topic_id != ZERO_TOPIC_ID]
        names = [self._registry.topic_name(i) for i in ids] if ids else [t.name for t in asked]
        return [name for name in dict.fromkeys(names) if name is not None]

    def creates_topics(
        self, request: MetadataRequest, token: ReplyToken, forbidden: ForbiddenTopics
    ) -> bool:
        """Whether it names topics to be created first: `create` is called before `answer`."""
        return not _mixes_ids_and_names(request, token.api_version) and bool(
            self._topics_to_create(request, forbidden)
        )

    def create(
        self, request: MetadataRequest, token: ReplyToken, forbidden: ForbiddenTopics
    ) -> Steps[None]:
        """Create the topics that it names and that still do not exist. In the admin queue.

        Beyond the client's quota of mutations none is created: it asks again.
        """
        for name in self._topics_to_create(request, forbidden):
            if self._throttle.may_mutate(token, self._settings.num_partitions, is_strict=True):
                yield from self._create(name)

    def _topics_to_create(
        self, request: MetadataRequest, forbidden: ForbiddenTopics
    ) -> list[TopicName]:
        # If one topic is named by its id, all are.
        if (
            not self._may_create(request)
            or not request.topics
            or any(t.topic_id != ZERO_TOPIC_ID for t in request.topics)
        ):
            return []
        names = dict.fromkeys(t.name for t in request.topics if t.name is not None)
        return [
            name
            for name in names
            if name not in forbidden.describe
            and name not in forbidden.create
            and self._can_create(name)
        ]

    def _may_create(self, request: MetadataRequest) -> bool:
        return request.allow_auto_topic_creation and self._settings.auto_create_topics_enable

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

    def answer(
        self, request: MetadataRequest, token: ReplyToken, forbidden: ForbiddenTopics
    ) -> MetadataResponse:
        if _mixes_ids_and_names(request, token.api_version):
            return _refused(request)
        node_id, host, port = self._cluster.endpoint(token)
        operations = OPERATIONS_NOT_REQUESTED
        if request.include_cluster_authorized_operations:
            operations = cluster_operations(self._authorizer, token)
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id, host, port, self._cluster.rack)],
            cluster_id=self._cluster.cluster_id,
            controller_id=node_id,
            topics=list(self._topics(request, token, forbidden)),
            cluster_authorized_operations=operations,
        )

    def _topics(
        self, request: MetadataRequest, token: ReplyToken, forbidden: ForbiddenTopics
    ) -> Iterable[MetadataResponseTopic]:
        if _is_of_all(request, token.api_version):
            for name in self._registry.names():
                topic = self._registry.by_name(name)
                assert topic is not None
                if name not in forbidden.describe:
                    yield self._known(topic, self._operations(request, token, name))
            return
        asked = request.topics or ()
        topic_ids = {t.topic_id for t in asked if t.topic_id != ZERO_TOPIC_ID}
        if topic_ids:
            yield from self._by_ids(topic_ids, request, token, forbidden)
            return
        # A repeated name is answered once.
        for name in dict.fromkeys(t.name for t in asked if t.name is not None):
            if name in forbidden.describe:
                yield MetadataResponseTopic(_FORBIDDEN, name)
            elif name in forbidden.create:
                yield MetadataResponseTopic(_FORBIDDEN, name, is_internal=is_internal(name))
            else:
                found = self._registry.by_name(name)
                operations = self._operations(request, token, name)
                yield _unknown(name, operations) if not found else self._known(found, operations)

    def _by_ids(
        self,
        topic_ids: Iterable[TopicId],
        request: MetadataRequest,
        token: ReplyToken,
        forbidden: ForbiddenTopics,
    ) -> Iterable[MetadataResponseTopic]:
        for topic_id in topic_ids:
            topic = self._registry.by_id(topic_id)
            if topic is None:
                yield MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
            elif topic.name in forbidden.describe:
                yield MetadataResponseTopic(_FORBIDDEN, None, topic_id)
            else:
                yield self._known(topic, self._operations(request, token, topic.name))

    def _operations(self, request: MetadataRequest, token: ReplyToken, name: TopicName) -> int:
        if not request.include_topic_authorized_operations:
            return OPERATIONS_NOT_REQUESTED
        return topic_operations(self._authorizer, token, name)

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


def _is_of_all(request: MetadataRequest, api_version: int) -> bool:
    return request.topics is None or (not request.topics and api_version == 0)


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
