"""Data plane: topics, partitions and their records; the facade for the broker.

Route: dispatch -> `handlers` -> the file of that API -> reply. Every request is answered exactly
once: at once, or, for a Fetch that waits, when records arrive, its time is up, or the daemon stops.
The broker calls `tick` at `next_deadline_ms`, and `disconnected` when a client has left.
Kafka's counterpart: `KafkaApis` and `ReplicaManager`, as far as they serve topics.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from protocol.acl_codes import AclOperation
from protocol.messages import Request, Response
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.create_partitions import CreatePartitionsRequest
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from protocol.names import TRANSACTION_STATE_TOPIC, ApiKey, TopicId
from purgatory.op import DelayedOp
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.client_throttle import NO_THROTTLE, ClientThrottle
from seams.handler import Handler
from seams.io_executor import INLINE, IoExecutor
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.transactions import TransactionVerifier
from storage.api import LogStore, TopicLog, TopicPartition
from topics.acl_store import AclStore
from topics.admin_queue import AdminQueue, Steps
from topics.broker_config_store import BrokerConfigStore
from topics.catalog import CatalogFile
from topics.client_quota_store import ClientQuotaStore
from topics.cluster import ClusterView
from topics.cluster_admin import ClusterAdmin
from topics.events import TopicChange, TopicDeleted, TopicEvent
from topics.fetch_session_cache import FetchSessionCache
from topics.group_config_store import GroupConfigStore
from topics.handlers.acls import AclRequests
from topics.handlers.alter_broker_configs import BrokerConfigChanges, LoggerLevels
from topics.handlers.alter_configs import AlterConfigsHandler
from topics.handlers.cluster_rights import with_cluster_rights
from topics.handlers.create_partitions import answer_create_partitions
from topics.handlers.create_topics import CreateTopicsHandler
from topics.handlers.delete_records import DeleteRecordsHandler
from topics.handlers.delete_topics import answer_delete_topics
from topics.handlers.describe_cluster import answer_describe_cluster
from topics.handlers.describe_configs import DescribeConfigsHandler
from topics.handlers.describe_topic_partitions import answer_describe_topic_partitions
from topics.handlers.fetch import FetchHandler
from topics.handlers.list_config_resources import answer_list_config_resources
from topics.handlers.list_offsets import (
    answer_list_offsets,
    committed_partitions,
    reads_nothing,
)
from topics.handlers.metadata import ForbiddenTopics, MetadataHandler
from topics.handlers.offset_for_leader_epoch import (
    answer_offset_for_leader_epoch,
    forbidden_epochs,
)
from topics.handlers.produce import ProduceHandler
from topics.handlers.user_scram_credentials import UserScramCredentials
from topics.maintenance import TopicMaintenance
from topics.markers import TransactionMarkers
from topics.producer_ids import ProducerIdQueue, ProducerIds
from topics.producer_recovery import ProducerRecovery
from topics.producer_snapshot import ProducerFile, ProducerSnapshots
from topics.registry import TopicRegistry
from topics.scram_store import ScramStore
from topics.settings import FLUSH_COMMIT, TopicSettings
from topics.topic_ids import random_topic_id
from topics.topic_rights import forbidden_topics
from topics.transaction_admin import TransactionAdmin
from topics.transaction_verification import TransactionVerification


class DataPlane:
    """Not thread-safe: used on one thread. `reply(token, None)` ends a Produce with acks=0.

    `hang_up` closes the connection of a refused Produce with acks=0, as Kafka does, or of a client
    that a bug left without an answer. `fetch_answer_max_bytes` is asked for each Fetch, in the
    reader's thread too. Without `producer_snapshot` the producer states are read from
    the whole log after a restart.

    `appender` changes the logs: appends, flushes, retention, producer states. `checker` runs the
    slow checks of a Produce before the append. `reader` reads segments whose files must be opened.
    `admin` creates and deletes topics and saves the small files. By default everything runs at
    once, in the caller's thread. Without `acls`, requests about ACLs are refused.
    """

    def __init__(
        self,
        store: LogStore,
        catalog: CatalogFile,
        settings: TopicSettings,
        *,
        cluster: ClusterView,
        group_configs: GroupConfigStore,
        broker_configs: BrokerConfigStore,
        scram: ScramStore,
        client_quotas: ClientQuotaStore,
        loggers: LoggerLevels,
        reply: Callable[[ReplyToken, Response | None], None],
        observe: Callable[[TopicEvent], None],
        hang_up: Callable[[ReplyToken], None] | None = None,
        fetch_answer_max_bytes: Callable[[], int] | None = None,
        producer_snapshot: ProducerFile | None = None,
        new_topic_id: Callable[[], TopicId] = random_topic_id,
        appender: IoExecutor = INLINE,
        checker: IoExecutor = INLINE,
        reader: IoExecutor = INLINE,
        admin: IoExecutor = INLINE,
        authorizer: Authorizer = ALLOW_ALL,
        acls: AclStore | None = None,
        throttle: ClientThrottle = NO_THROTTLE,
        repair: bool = False,
    ) -> None:
        self.authorizer, self._throttle = authorizer, throttle
        self.client_quotas, self.scram = client_quotas, scram
        self.appender = appender
        self._reader = reader
        snapshots = ProducerSnapshots(producer_snapshot, settings.producer_id_expiration_ms)
        self.registry = TopicRegistry(
            store,
            catalog,
            settings,
            observe,
            new_topic_id,
            greatest_producer_id=snapshots.greatest_producer_id,
            repair=repair,
        )
        self._queue = AdminQueue(admin)
        self._is_creating = False  # `__transaction_state`
        self._hang_up = hang_up or (lambda token: reply(token, None))
        self.registry.subscribe(self._changed)
        self._settings = settings
        self._cluster = cluster
        self.cluster_id = cluster.cluster_id
        self._reply, self._observe = reply, observe
        self._maintenance = TopicMaintenance(
            self.registry, snapshots, settings, observe, appender=appender, snapshot_writer=admin
        )
        self._maintenance.start()
        self.producer_ids = ProducerIdQueue(ProducerIds(self.registry, observe), self._queue)
        self._recovery = ProducerRecovery(
            snapshots, appender=appender, checker=checker, observe=observe
        )
        self._fetching = self._fetch_handler(fetch_answer_max_bytes)
        self.is_awaited: Callable[[TopicPartition], bool] = self._fetching.purgatory.watching
        self._verification = TransactionVerification(
            is_enabled=settings.transaction_partition_verification_enable
        )
        self._producing = self._produce_handler(snapshots, checker)
        self.markers = self._transaction_markers()
        self.transaction_admin = TransactionAdmin(
            self.registry, self._recovery, self.markers, reply, authorizer
        )
        self._serve_topics()
        self._serve_configs(group_configs, broker_configs, loggers)
        self.handlers: Mapping[ApiKey, Handler] = self._handlers(acls)

    def _serve_topics(self) -> None:
        cluster, settings = self._cluster, self._settings
        authorizer, throttle = self.authorizer, self._throttle
        self._metadata = MetadataHandler(
            self.registry, cluster, settings, self._observe, authorizer, throttle
        )
        self._creation = CreateTopicsHandler(
            self.registry, cluster.node_id, settings, authorizer, throttle
        )

    def _serve_configs(
        self, groups: GroupConfigStore, broker: BrokerConfigStore, loggers: LoggerLevels
    ) -> None:
        self.group_configs = groups
        self.broker_configs = broker
        cluster = self._cluster
        self._configs = DescribeConfigsHandler(
            self.registry, cluster, groups, broker, loggers, self.authorizer
        )
        changes = BrokerConfigChanges(broker, loggers, cluster.node_id)
        self._altering = AlterConfigsHandler(self.registry, groups, changes, self.authorizer)
        broker.subscribe(self.registry.use)
        broker.subscribe(groups.use)

    def _produce_handler(self, snapshots: ProducerSnapshots, checker: IoExecutor) -> ProduceHandler:
        return ProduceHandler(
            self.registry,
            snapshots,
            self._maintenance,
            self._recovery,
            self._verification,
            self.authorizer,
            appender=self.appender,
            checker=checker,
            reply=self._reply,
            hang_up=self._hang_up,
            readable=self._fetching.readable,
            observe=self._observe,
        )

    def _fetch_handler(self, answer_max_bytes: Callable[[], int] | None) -> FetchHandler:
        return FetchHandler(
            self.registry,
            self._cluster,
            self._settings,
            self._recovery,
            self.authorizer,
            self._throttle,
            reply=self._reply,
            hang_up=self._hang_up,
            answer_max_bytes=answer_max_bytes,
            observe=self._observe,
            reader=self._reader,
        )

    def _transaction_markers(self) -> TransactionMarkers:
        return TransactionMarkers(
            self.registry,
            self._recovery,
            appender=self.appender,
            must_flush=self._settings.flush == FLUSH_COMMIT,
            readable=self._fetching.readable,
            observe=self._observe,
        )

    def _handlers(self, acls: AclStore | None) -> Mapping[ApiKey, Handler]:
        deletion = DeleteRecordsHandler(
            self.registry,
            self._maintenance,
            self._recovery,
            self.authorizer,
            appender=self.appender,
            reply=self._reply,
            hang_up=self._hang_up,
            readable=self._fetching.readable,
            observe=self._observe,
        )
        cluster_admin = ClusterAdmin(
            self.registry,
            self._cluster,
            self.authorizer,
            UserScramCredentials(self.scram),
            self.client_quotas,
            reply=self._reply,
            answer_in_reader=lambda token, answer: self._answer_from_logs(
                token, answer, self._reader
            ),
            answer_in_queue=self._run_in_queue,
        )
        handlers: Mapping[ApiKey, Handler] = {
            ApiKey.PRODUCE: self._producing.handle,
            ApiKey.FETCH: self._fetching.handle,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.DELETE_RECORDS: deletion.handle,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._offset_for_leader_epoch,
            ApiKey.METADATA: self._topic_metadata,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: self._describe_topic_partitions,
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            ApiKey.DESCRIBE_CONFIGS: self._describe_configs,
            ApiKey.LIST_CONFIG_RESOURCES: self._list_config_resources,
            ApiKey.ALTER_CONFIGS: self._alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._incremental_alter_configs,
            ApiKey.CREATE_TOPICS: self._create_topics,
            ApiKey.DELETE_TOPICS: self._delete_topics,
            ApiKey.CREATE_PARTITIONS: self._create_partitions,
            **AclRequests(
                acls, reply=self._reply, hang_up=self._hang_up, run_in_queue=self._run_in_queue
            ).handlers,
            **cluster_admin.handlers,
            **self.transaction_admin.handlers,
        }
        return with_cluster_rights(handlers, self.authorizer, self._reply)

    # Requests that read logs

    def _list_offsets(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, ListOffsetsRequest)
        executor = INLINE if reads_nothing(request) else self._reader
        names = (topic.name for topic in request.topics)
        forbidden = forbidden_topics(self.authorizer, token, AclOperation.DESCRIBE, names)
        version, registry = token.api_version, self.registry

        def restored() -> None:
            self._answer_from_logs(
                token,
                lambda: answer_list_offsets(request, version, registry, forbidden),
                executor,
            )

        self._recovery.ensure(committed_partitions(request, registry, forbidden), now, restored)

    def _offset_for_leader_epoch(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, OffsetForLeaderEpochRequest)
        forbidden = forbidden_epochs(request, token, self.authorizer)
        self._answer_from_logs(
            token,
            lambda: answer_offset_for_leader_epoch(request, self.registry, forbidden),
            self._reader,
        )

    def _answer_from_logs(
        self, token: ReplyToken, answer: Callable[[], Response], executor: IoExecutor
    ) -> None:
        def done(response: Response | Exception) -> None:
            if isinstance(response, Exception):
                self._hang_up(token)
                raise response
            self._reply(token, response)

        executor.submit(answer, done)

    # Requests that read the table

    def _topic_metadata(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, MetadataRequest)
        forbidden = self._metadata.forbidden(request, token)
        if self._metadata.creates_topics(request, token, forbidden):
            self._run_in_queue(token, lambda: self._create_and_answer(request, token, forbidden))
        else:
            self._reply(token, self._metadata.answer(request, token, forbidden))

    def _create_and_answer(
        self, request: MetadataRequest, token: ReplyToken, forbidden: ForbiddenTopics
    ) -> Steps[Response]:
        yield from self._metadata.create(request, token, forbidden)
        return self._metadata.answer(request, token, forbidden)

    def _describe_topic_partitions(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DescribeTopicPartitionsRequest)
        limit = self._settings.max_request_partition_size_limit
        node_id = self._cluster.node_id
        answer = answer_describe_topic_partitions(
            request, token, self.registry, self.authorizer, node_id, limit
        )
        self._reply(token, answer)

    def _describe_cluster(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DescribeClusterRequest)
        self._reply(token, answer_describe_cluster(request, token, self._cluster, self.authorizer))

    def _describe_configs(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DescribeConfigsRequest)
        self._reply(token, self._configs.answer(request, token))

    def _list_config_resources(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, ListConfigResourcesRequest)
        answer = answer_list_config_resources(
            request,
            token.api_version,
            self.registry,
            self.group_configs,
            self.broker_configs,
            self._cluster.node_id,
        )
        self._reply(token, answer)

    # Requests that change topics and configs

    def _alter_configs(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, AlterConfigsRequest)
        self._run_in_queue(token, lambda: self._altering.answer(request, token))

    def _incremental_alter_configs(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        self._run_in_queue(token, lambda: self._altering.answer_incremental(request, token))

    def _create_topics(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, CreateTopicsRequest)
        self._run_in_queue(token, lambda: self._creation.answer(request, token))

    def _delete_topics(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DeleteTopicsRequest)
        enabled = self._settings.delete_topic_enable
        self._run_in_queue(
            token,
            lambda: answer_delete_topics(
                request, token, self.registry, self.authorizer, self._throttle, enabled=enabled
            ),
        )

    def _create_partitions(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, CreatePartitionsRequest)
        node_id = self._cluster.node_id
        self._run_in_queue(
            token,
            lambda: answer_create_partitions(
                request, token, self.registry, self.authorizer, self._throttle, node_id
            ),
        )

    def create_transaction_state_topic(self) -> None:
        """Create `__transaction_state`, unless it exists when its turn comes."""

        def steps() -> Steps[None]:
            try:
                if self.registry.by_name(TRANSACTION_STATE_TOPIC) is None:
                    new = self.registry.transaction_state_topic()
                    with suppress(OSError):  # reported; the client asks again
                        yield from self.registry.create([new], automatic=True)
            finally:
                self._is_creating = False

        if not self._is_creating:
            self._is_creating = True
            self._queue.run(steps, lambda: None)

    def _run_in_queue(self, token: ReplyToken, answer: Callable[[], Steps[Response]]) -> None:
        """Run the operation in the admin queue, and answer with its result."""

        def steps() -> Steps[None]:
            self._reply(token, (yield from answer()))

        self._queue.run(steps, lambda: self._hang_up(token))

    @property
    def verifies_transactions(self) -> bool:
        return self._verification.is_enabled

    def verify_transactions(self, is_enabled: bool) -> None:  # noqa: FBT001 - a value of a config
        """`transaction.partition.verification.enable` was changed."""
        self._verification.is_enabled = is_enabled

    def expire_producers_after(self, expiration_ms: int) -> None:
        """`producer.id.expiration.ms` was changed."""
        self._maintenance.expire_producers_after(expiration_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        parked_ms = self._fetching.purgatory.next_deadline_ms
        maintenance_ms = self._maintenance.next_deadline_ms
        return maintenance_ms if parked_ms is None else min(parked_ms, maintenance_ms)

    def watch_deadline(self, on_earlier: Callable[[], None]) -> None:
        """`on_earlier` is called whenever a fetch is parked or a flush is due earlier."""
        self._fetching.on_earlier = self._maintenance.on_earlier = on_earlier

    def tick(self, now: Now) -> None:
        """Answer the fetches whose time is up; run the maintenance that is due."""
        self._fetching.expire(now)
        if self._maintenance.next_deadline_ms <= now.mono_ms:
            self._maintenance.tick(now)

    def disconnected(self, token: ReplyToken, now: Now) -> None:  # noqa: ARG002 - as of every core
        """The client left: cancel its fetch."""
        self._fetching.disconnected(token)

    def attach(self, log: TopicLog) -> None:
        """Serve reads of a log that the coordinator writes: a partition of the offsets topic."""
        self.registry.attach(log)

    def set_verifier(self, verifier: TransactionVerifier) -> None:
        """The transaction coordinator; without it transactional batches are refused."""
        self._verification.verifier = verifier

    def set_first_unstable(self, topic_partition: TopicPartition, offset: int | None) -> None:
        """Where the oldest open transaction begins in an attached log; None: there is none."""
        partition = self.registry.partition(*topic_partition)
        if partition is not None:
            if offset is not None:
                partition.begin_transaction(offset)
            partition.set_first_unstable(offset)

    def advanced(self, topic_partition: TopicPartition, now: Now) -> None:  # noqa: ARG002
        """The high watermark of an attached log moved."""
        self._fetching.readable(topic_partition)

    @property
    def fetch_sessions(self) -> FetchSessionCache:
        return self._fetching.sessions

    @property
    def delayed_fetches(self) -> int:
        """Delayed fetches (Kafka's NumDelayedOperations of Fetch)."""
        return self._fetching.purgatory.delayed

    @property
    def watched_fetches(self) -> int:
        """Watched (partition, fetch) pairs (Kafka's PurgatorySize of Fetch)."""
        purgatory = self._fetching.purgatory
        return purgatory.watched - purgatory.delayed  # each is watched by its token as well

    def fetch_operations(self) -> Sequence[DelayedOp[object]]:
        """Those that wait now."""
        return self._fetching.purgatory.operations()

    def answer_all(self) -> None:
        """The daemon stops and takes no more requests: answer the delayed fetches."""
        self._fetching.answer_all()

    def close(self) -> None:
        """When nothing is pending any more: flush records and save the producer states."""
        self._queue.close()
        self._maintenance.close()

    def _changed(self, change: TopicChange) -> None:
        if isinstance(change, TopicDeleted):
            for index in range(change.partitions):
                self._fetching.readable(TopicPartition(change.name, index))
