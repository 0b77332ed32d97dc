"""Which values does this daemon run with? One frozen `Config`: every key, its limit and its reason.

A key is declared in one line: the field's name with its underscores as dots is the name that users
write, Kafka's wherever Kafka has one; then default, meaning and range. Own keys begin `rollcall_`.
Adding a key is adding that line and using the field. `config_sources.py` fills a Config in;
`rollcall config` and docs/configuration.md print this table. Durations are in ms and sizes in bytes
unless the name says otherwise. Kafka's counterpart: AbstractKafkaConfig.CONFIG_DEF.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, field

from broker.config_key import (
    Key,
    Rule,
    Table,
    Value,
    as_text,
    boolean,
    integer,
    one_of,
    optional_integer,
    real,
    text,
    words,
)
from broker.listeners import Listener, parse_host_port, resolve_listeners
from broker.steps import NEVER, Step
from coordinator.settings import GroupSettings
from protocol import java_text
from protocol.java_text import INT_MAX, LONG_MAX, split_list, trim
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, TopicName
from storage.api import JOURNALED_BATCH_BYTES_MAX, LogSettings
from topics.settings import PARTITIONS_MAX, InternalTopic, TopicSettings

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_DAY_MS = 24 * _HOUR_MS


class Origin(Struct, frozen=True):
    """Where a value came from: default, file, environment or command line, and which of them."""

    source: str = "default"
    place: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.place}".rstrip()


class Config(Struct, frozen=True, metaclass=Table):
    """All keys that Rollcall serves, with their values. `Config()` holds the defaults."""

    RULES: ClassVar[Mapping[str, Rule]]

    # Who we are, where we listen, where the data is.
    node_id: int = integer(1, "This node's id, as clients and tools see it.", at_least=0)
    broker_rack: str = text("", "The rack that clients are told this node stands in.")
    listeners: tuple[str, ...] = words(
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses to listen on, each NAME://HOST:PORT. An empty HOST is every address; port 0 is "
        "a free one. The default is this machine only; Kafka's is every address.",
    )
    advertised_listeners: tuple[str, ...] = words(
        (), "Addresses that clients are told, by listener name; a listener's own if not listed."
    )
    listener_security_protocol_map: str = text(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The protocol of each listener name. Only PLAINTEXT is served so far.",
    )
    controller_listener_names: tuple[str, ...] = words(
        (), "Names in listeners that are a KRaft controller's: not opened, for there is none here."
    )
    rollcall_admin_listener: str = text(
        "127.0.0.1:9180", "HOST:PORT of /metrics, /livez and /readyz; empty opens none."
    )
    log_dirs: tuple[str, ...] = words((), "The data directory: exactly one. Beats log.dir.")
    log_dir: tuple[str, ...] = words(
        ("rollcall-data",), "The data directory, where log.dirs is not set."
    )
    rollcall_log_format: str = one_of(
        "human",
        "How log lines are written: for people, or one JSON object a line.",
        "human",
        "json",
    )
    rollcall_log_level: str = one_of(
        "info",
        "The least important log lines that are written.",
        "debug",
        "info",
        "warning",
        "error",
    )

    # What a client may cost us.
    socket_request_max_bytes: int = integer(
        104_857_600, "Largest request; a longer one closes its connection.", at_least=1
    )
    rollcall_request_max_bytes: int = integer(
        33_554_432,
        "Largest request that is no Produce; a longer one closes its connection.",
        at_least=1,
    )
    socket_listen_backlog_size: int = integer(
        50, "Connections the kernel holds until we accept them.", at_least=1
    )
    socket_send_buffer_bytes: int = integer(
        102_400, "The kernel's send buffer of a connection; -1 leaves the system's."
    )
    socket_receive_buffer_bytes: int = integer(
        102_400, "The kernel's receive buffer of a connection; -1 leaves the system's."
    )
    connections_max_idle_ms: int = integer(
        600_000,
        "A connection silent for so long is closed; one with a request that waits is not silent. "
        "Negative: never.",
        long=True,
    )
    max_connections: int = integer(
        2_147_483_647, "Connections at one time; more are not accepted until one ends.", at_least=0
    )
    max_connections_per_ip: int = integer(
        2_147_483_647, "Connections from one address at one time; more are closed.", at_least=0
    )
    max_connections_per_ip_overrides: str = text(
        "", "Other numbers for some addresses: ADDRESS:NUMBER,…"
    )
    queued_max_request_bytes: int = integer(
        -1,
        "Bytes of requests that were read and are not answered yet, all connections together; "
        "beyond it no more is read. What waits for members or records is not counted. -1: none.",
        long=True,
    )
    rollcall_connection_unsent_max_bytes: int = integer(
        16_777_216,
        "Answers kept for a client that does not read them; beyond it no more of its requests are "
        "read, so that one stuck client cannot fill the memory.",
        at_least=1,
    )
    rollcall_connections_unsent_max_bytes: int = integer(
        268_435_456,
        "The same for all clients together; those with the most unread answers wait first.",
        at_least=1,
        long=True,
    )

    # Groups and their offsets.
    group_min_session_timeout_ms: int = integer(
        6_000, "Shortest session a member may ask for: shorter ones end at every pause.", at_least=0
    )
    group_max_session_timeout_ms: int = integer(
        1_800_000,
        "Longest session a member may ask for: a dead member is noticed by then.",
        at_least=0,
    )
    group_initial_rebalance_delay_ms: int = integer(
        3_000,
        "How long an empty group waits for more members before its first assignment.",
        at_least=0,
    )
    group_max_size: int = integer(
        2_147_483_647, "Members a group may have; one more is refused.", at_least=1
    )
    offset_metadata_max_bytes: int = integer(
        4_096, "Longest text that may be committed with an offset."
    )
    offsets_retention_minutes: int = integer(
        10_080, "Minutes that offsets are kept once their group is empty.", at_least=1
    )
    offsets_commit_timeout_ms: int = integer(
        5_000,
        "How long an answer waits for the disk; then it is COORDINATOR_NOT_AVAILABLE, and what was "
        "asked may be stored all the same.",
        at_least=1,
    )
    offsets_retention_check_interval_ms: int = integer(
        600_000, "How often expired offsets are looked for.", at_least=1, long=True
    )
    offsets_topic_num_partitions: int = integer(
        50,
        "Partitions of __consumer_offsets. Never change it once there is data.",
        at_least=1,
        at_most=PARTITIONS_MAX,
    )
    offsets_topic_segment_bytes: int = integer(
        104_857_600, "Size at which a file of __consumer_offsets is closed.", at_least=1
    )
    rollcall_offsets_history_ms: int = integer(
        86_400_000,
        "min.compaction.lag.ms of __consumer_offsets: for so long every commit is kept, for "
        "whoever asks how things were (Kafka: log.cleaner.min.compaction.lag.ms, 0).",
        at_least=0,
        long=True,
    )
    rollcall_offsets_history_bytes: int = integer(
        268_435_456,
        "The most that is kept for that in one partition; -1: no limit.",
        at_least=-1,
        long=True,
    )
    rollcall_pipeline_keep_ms: int = integer(
        604_800_000,
        "How long sealed segments of __consumer_offsets are kept from the cleaner for a pipeline "
        "that has acknowledged something, and has not read them; -1: no limit.",
        at_least=-1,
        long=True,
    )
    rollcall_pipeline_keep_bytes: int = integer(
        1_073_741_824,
        "The most that is kept for that in one partition; -1: no limit.",
        at_least=-1,
        long=True,
    )
    offsets_topic_replication_factor: int = integer(
        1, "Copies of __consumer_offsets: one node has one. Kafka's default is 3.", at_least=1
    )
    rollcall_offsets_value_version: int = integer(
        4,
        "Version of committed offsets' values: 3 for older readers such as Burrow.",
        at_least=3,
        at_most=4,
    )
    rollcall_groups_max: int = integer(
        200_000, "How many groups there may be; one more is refused (Kafka: no limit).", at_least=1
    )
    rollcall_group_pending_members_max: int = integer(
        10_000,
        "How many member ids a group hands out before it forgets the oldest unused one "
        "(Kafka: no limit).",
        at_least=1,
    )
    rollcall_generation_records: bool = boolean(
        "A generation is written down before its joins are answered, so that its members can go "
        "on with it after a restart (Kafka: false).",
        default=True,
    )
    rollcall_forgive_slow_member: bool = boolean(
        "A member whose session ran out is taken back if it is heard from before another member "
        "is told (Kafka: false).",
        default=True,
    )
    rollcall_forgive_max_ms: int = integer(
        60_000,
        "The longest such forgiveness, so that one member cannot hold up its group.",
        at_least=0,
    )
    rollcall_rebalance_on_partition_change: bool = boolean(
        "The coordinator itself starts a rebalance when a subscribed topic's partitions "
        "change (Kafka: the clients notice).",
        default=False,
    )
    rollcall_partition_change_delay_ms: int = integer(
        1_000, "How long it waits for further changes before it does.", at_least=0
    )

    # What "stored" means.
    rollcall_flush: str = one_of(
        "commit",
        "commit: an offset is acknowledged after fsync. os: after it reached the page "
        "cache, which is what Kafka promises of one broker.",
        "commit",
        "os",
    )
    group_coordinator_append_linger_ms: int = integer(
        -1,
        "How long commits gather before a flush. -1: until a pass over all sockets brings nothing "
        "more, 2 ms at most. 0: not at all.",
        at_least=-1,
    )
    rollcall_journal_bytes: int = integer(
        67_108_864,
        "Size of the two preallocated journal files together: while one takes commits, a "
        "checkpoint syncs what the other one has promised. One flush must fit into each.",
        at_least=36_582_208,
    )
    rollcall_checkpoint_bytes: int = integer(
        8_388_608,
        "So much in a journal file, then a checkpoint; it bounds what a start has to read again.",
        at_least=65_536,
    )
    rollcall_checkpoint_idle_ms: int = integer(
        5_000, "Without a commit for so long, then a checkpoint.", at_least=1
    )
    rollcall_disk_reserve_bytes: int = integer(
        16_777_216,
        "While less than this is free on the data directory's disk, commits and produced records "
        "are refused, early and with nothing half written; 0 keeps no reserve.",
        at_least=0,
        long=True,
    )
    rollcall_snapshot_bytes: int = integer(
        1_048_576,
        "A partition of __consumer_offsets whose log has grown by so much gets a new snapshot: a "
        "start reads the snapshot and what came after it.",
        at_least=4_096,
        long=True,
    )
    rollcall_disk_full_retry_ms: int = integer(
        1_000, "A disk that was full is looked at again after this, and served on.", at_least=1
    )
    rollcall_flush_stalled_ms: int = integer(
        5_000,
        "A flush of the journal that takes longer is told in the log, and /readyz says 503 until "
        "it has ended.",
        at_least=1,
    )
    rollcall_journal_queue_max_bytes: int = integer(
        16_777_216,
        "Records that wait for the disk; beyond it commits get "
        "COORDINATOR_NOT_AVAILABLE, which clients retry.",
        at_least=65_536,
    )

    # What /metrics shows.
    rollcall_metrics_groups_max: int = integer(
        10_000,
        "Groups that have series of their own in /metrics; those that lag most come first, the "
        "others are summed.",
        at_least=0,
    )
    rollcall_metrics_partitions_max: int = integer(
        50_000,
        "Partitions of groups, and of topics, that have series of their own in /metrics.",
        at_least=0,
    )
    rollcall_metrics_aliases: tuple[str, ...] = words(
        ("kafka_exporter", "kafka-lag-exporter"),
        "Exporters whose names and labels /metrics has too, for dashboards that were made for "
        "them; empty: none.",
        "kafka_exporter",
        "kafka-lag-exporter",
    )
    rollcall_metrics_cluster_name: str = text(
        "", "The label cluster_name of kafka-lag-exporter's names; empty: the cluster's id."
    )

    # What is remembered of groups: __group_history.
    rollcall_history_enable: bool = boolean(
        "What happens to groups is kept, with its cause: `rollcall why` tells it.", default=True
    )
    rollcall_history_retention_ms: int = integer(
        2_592_000_000, "How long it is kept, by whole files; -1: for ever.", long=True
    )
    rollcall_history_retention_bytes: int = integer(
        1_073_741_824,
        "Size of a partition of it beyond which its oldest files are deleted; -1: no limit.",
        long=True,
    )
    rollcall_history_segment_bytes: int = integer(
        67_108_864, "Size at which a file of it is closed.", at_least=1_048_576
    )
    rollcall_history_topic_num_partitions: int = integer(
        1,
        "Partitions of __group_history. One keeps the order of all groups; never fewer than "
        "before.",
        at_least=1,
        at_most=PARTITIONS_MAX,
    )
    rollcall_history_memory_rebalances: int = integer(
        20_000,
        "Rebalances kept in memory; older ones are read from the topic.",
        at_least=1,
    )
    rollcall_history_memory_bytes: int = integer(
        32 << 20,
        "Bytes that these may take, about: one of two members takes 2 KB, one of a hundred 80 KB.",
        at_least=1 << 16,
    )
    rollcall_history_memory_rebalances_per_group: int = integer(
        20, "The same of one group.", at_least=1
    )
    rollcall_history_members_max: int = integer(
        200, "Members named in one record, the slowest first; the rest are counted.", at_least=1
    )

    # Lag, and live trouble.
    rollcall_lag_interval_ms: int = integer(
        15_000,
        "How often every group's lag is sampled: as often as dashboards commonly ask.",
        at_least=100,
    )
    rollcall_lag_window_commits: int = integer(
        20,
        "Commits of a partition that a lag verdict looks at, one for each sample: with the "
        "interval above, five minutes of a consumer that commits all the time.",
        at_least=2,
        at_most=1_000,
    )
    rollcall_lag_partitions_max: int = integer(
        200_000,
        "Partitions of groups whose lag is followed over time, at most about a kilobyte of memory "
        "each; the lag of more is still told, without rate and verdict.",
        at_least=0,
    )
    rollcall_lag_record_times_max: int = integer(
        2_000,
        "Records whose time is read from the log in one sample, for the lag in seconds; the "
        "others are estimated. Who asks for a group gets them all.",
        at_least=0,
    )
    rollcall_lag_keepalive_ms: int = integer(
        600_000,
        "How often all of a group's window is written to __group_lag: twice so much of it is read "
        "back at a start.",
        at_least=1_000,
    )
    rollcall_lag_tail_max_bytes: int = integer(
        67_108_864, "The most that is read back of __group_lag at a start.", at_least=65_536
    )
    rollcall_lag_retention_ms: int = integer(
        604_800_000, "How long samples are kept in __group_lag; -1: for ever.", long=True
    )
    rollcall_lag_retention_bytes: int = integer(
        1_073_741_824, "Size beyond which the oldest are deleted; -1: no limit.", long=True
    )

    rollcall_trouble_window_ms: int = integer(
        600_000,
        "How long what happened to a group counts for verdicts on live trouble: two of Kafka's "
        "longest waits (max.poll.interval.ms) in a row.",
        at_least=1_000,
    )
    rollcall_trouble_flapping_returns: int = integer(
        3,
        "Returns of one member within that window that make it a flapping one: a restart and its "
        "repetition are two.",
        at_least=1,
    )
    rollcall_trouble_loop_rebalances: int = integer(
        5,
        "Rebalances within that window without an offset moving that make a loop.",
        at_least=2,
    )
    rollcall_trouble_slow_join_ms: int = integer(
        10_000,
        "So long a member may keep the others waiting in a rebalance: a poll loop rarely takes "
        "longer.",
        at_least=1,
    )
    rollcall_trouble_stuck_ms: int = integer(
        15_000, "So long a group may be between two generations.", at_least=1
    )
    rollcall_trouble_settle_ms: int = integer(
        60_000,
        "So long members may differ (a rollout) or partitions may have no owner (a cooperative "
        "rebalance) before it is trouble.",
        at_least=0,
    )
    rollcall_trouble_no_progress_ms: int = integer(
        120_000,
        "So long a member may have records to read and commit nothing new; twice its usual "
        "pause between commits if that is longer.",
        at_least=1,
    )
    rollcall_trouble_commits_per_second: int = integer(
        100,
        "Commits of one client that are a storm: a commit for each poll is well below.",
        at_least=1,
    )
    rollcall_trouble_skew_percent: int = integer(
        200,
        "A member's share, in percent of an even one, from which on it is skewed.",
        at_least=101,
    )
    rollcall_trouble_groups_max: int = integer(
        10_000,
        "Groups whose recent past is remembered for verdicts, some kilobytes each; beyond it the "
        "one with the oldest news is forgotten.",
        at_least=1,
    )

    # For drills.
    rollcall_crash_at: str = one_of(
        NEVER,
        "For drills: the daemon kills itself (SIGKILL) at this step of the next rebalance.",
        NEVER,
        *Step,
    )

    # Topics: defaults for those that set nothing themselves, and what requests may ask.
    auto_create_topics_enable: bool = boolean(
        "A topic that a client asks for and nobody created is created.", default=True
    )
    delete_topic_enable: bool = boolean("Topics may be deleted.", default=True)
    num_partitions: int = integer(
        1, "Partitions of a topic created without a number.", at_least=1, at_most=PARTITIONS_MAX
    )
    default_replication_factor: int = integer(1, "Copies of a new topic: one node has one.")
    min_insync_replicas: int = integer(
        1, "Copies acks=all waits for: one node has one.", at_least=1
    )
    message_max_bytes: int = integer(1_048_588, "Largest record batch that is taken.", at_least=0)
    fetch_max_bytes: int = integer(57_671_680, "Most that one Fetch answers.", at_least=1_024)
    compression_type: str = one_of(
        "producer",
        "Compression of stored batches; producer keeps each batch as it came.",
        "producer",
        "uncompressed",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    )
    compression_gzip_level: int = integer(
        -1,
        "Level where compression.type is gzip; -1: the library's.",
        at_least=1,
        at_most=9,
        besides=-1,
    )
    compression_lz4_level: int = integer(
        9, "Level where compression.type is lz4.", at_least=1, at_most=17
    )
    compression_zstd_level: int = integer(
        3, "Level where compression.type is zstd.", at_least=-131_072, at_most=22
    )
    log_cleanup_policy: tuple[str, ...] = words(
        ("delete",), "What happens to old records.", "delete", "compact"
    )
    log_segment_bytes: int = integer(
        1_073_741_824, "Size at which a topic's file is closed.", at_least=1_048_576
    )
    log_roll_ms: int | None = optional_integer(
        "Age at which a topic's file is closed. Beats log.roll.hours.", at_least=1, long=True
    )
    log_roll_hours: int = integer(168, "The same in hours.", at_least=1)
    log_retention_ms: int | None = optional_integer(
        "Age at which records may be deleted; -1: never. "
        "Wins over log.retention.minutes and log.retention.hours.",
        long=True,
    )
    log_retention_minutes: int | None = optional_integer("The same in minutes.")
    log_retention_hours: int = integer(168, "The same in hours.")
    log_retention_bytes: int = integer(
        -1, "Size of a partition beyond which its oldest files are deleted; -1: none.", long=True
    )
    log_retention_check_interval_ms: int = integer(
        300_000, "How often files to delete are looked for.", at_least=1, long=True
    )
    log_segment_delete_delay_ms: int = integer(
        60_000,
        "How long a file that compaction has replaced stays on the disk; others go at once.",
        at_least=0,
        long=True,
    )
    log_flush_offset_checkpoint_interval_ms: int = integer(
        60_000,
        "How often it is written down up to where topics are synced: a start after a kill scans "
        "what lies above. Sealed segments are synced within a second.",
        at_least=0,
    )
    log_cleaner_enable: bool = boolean("Compacted topics are compacted.", default=True)
    log_cleaner_backoff_ms: int = integer(
        15_000, "How often logs to clean are looked for.", at_least=0, long=True
    )
    log_cleaner_io_max_bytes_per_second: float = real(
        1.7976931348623157e308,
        "How much the cleaner may read and write in a second, on average.",
        at_least=1.0,
    )
    log_cleaner_dedupe_buffer_size: int = integer(
        134_217_728,
        "Memory for the map of newest offsets; where it is full, a pass ends there. A key takes "
        "its length and 220 bytes (Kafka: 24).",
        at_least=1_048_576,
        long=True,
    )
    log_cleaner_min_cleanable_ratio: float = real(
        0.5, "Share of uncompacted bytes above which a log is cleaned.", at_least=0.0, at_most=1.0
    )
    log_cleaner_delete_retention_ms: int = integer(
        86_400_000, "How long compaction keeps tombstones.", at_least=0, long=True
    )
    log_cleaner_min_compaction_lag_ms: int = integer(
        0, "A record is not compacted before it has this age.", at_least=0, long=True
    )
    log_cleaner_max_compaction_lag_ms: int = integer(
        LONG_MAX, "A record is compacted, whatever the ratio, at this age.", at_least=1, long=True
    )
    log_index_interval_bytes: int = integer(
        4_096, "Bytes of a file between two entries of its index.", at_least=0
    )
    log_index_size_max_bytes: int = integer(
        10_485_760, "Largest index; a full one closes its file.", at_least=4
    )
    log_flush_interval_messages: int = integer(
        LONG_MAX, "Records after which a topic's partition is fsynced.", at_least=1, long=True
    )
    log_message_timestamp_type: str = one_of(
        "CreateTime",
        "Whose time a record has: its producer's or ours.",
        "CreateTime",
        "LogAppendTime",
    )
    log_message_timestamp_before_max_ms: int = integer(
        LONG_MAX, "How far a producer's time may lie in our past.", at_least=0, long=True
    )
    log_message_timestamp_after_max_ms: int = integer(
        3_600_000, "How far a producer's time may lie in our future.", at_least=0, long=True
    )
    producer_id_expiration_ms: int = integer(
        86_400_000, "How long an idle producer's sequence numbers are remembered.", at_least=1
    )
    producer_id_expiration_check_interval_ms: int = integer(
        600_000, "How often producers to forget are looked for.", at_least=1
    )
    rollcall_producer_snapshot_interval_ms: int = integer(
        60_000,
        "How often the producers' sequence numbers are kept: a start after kill -9 reads the "
        "batches since then again.",
        at_least=1,
    )
    max_request_partition_size_limit: int = integer(
        2_000, "Partitions in one answer to DescribeTopicPartitions.", at_least=1
    )

    # Not keys: how the values came about.
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """By name, for every key that some source set; all others have their default."""
    warnings: tuple[str, ...] = ()
    """One line each, for the log."""

    @property
    def data_dir(self) -> Path:
        return Path((self.log_dirs or self.log_dir)[0])

    @property
    def data_dir_key(self) -> str:
        """The name that the data directory was given under, for messages."""
        return "log.dirs" if self.log_dirs else "log.dir"

    @property
    def endpoints(self) -> tuple[Listener, ...]:
        """The listeners to open for clients; raises BadListeners."""
        return resolve_listeners(
            self.listeners,
            self.advertised_listeners,
            self.listener_security_protocol_map,
            self.controller_listener_names,
        )

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Where the admin port listens; None for nowhere."""
        if not self.rollcall_admin_listener:
            return None
        return parse_host_port(self.rollcall_admin_listener)

    @property
    def connections_by_address(self) -> dict[str, int]:
        """max.connections.per.ip.overrides, taken apart; ValueError if it cannot be."""
        limits: dict[str, int] = {}
        for entry in filter(None, split_list(self.max_connections_per_ip_overrides)):
            address, _, text = entry.rpartition(":")
            number = java_text.integer(text, 0, INT_MAX)
            if not trim(address) or number is None:
                raise ValueError(
                    f"{entry!r} is not of the form ADDRESS:NUMBER, with a number up to {INT_MAX}"
                )
            limits[trim(address)] = number
        return limits

    @property
    def retention_ms(self) -> int:
        """Of the three keys the finest that is set; -1 without a limit."""
        if self.log_retention_ms is not None:
            retention_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            retention_ms = self.log_retention_minutes * _MINUTE_MS
        else:
            retention_ms = self.log_retention_hours * _HOUR_MS
        return -1 if retention_ms < 0 else retention_ms

    @property
    def roll_ms(self) -> int:
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    def group_settings(self) -> GroupSettings:
        return GroupSettings(
            offsets_topic_num_partitions=self.offsets_topic_num_partitions,
            group_min_session_timeout_ms=self.group_min_session_timeout_ms,
            group_max_session_timeout_ms=self.group_max_session_timeout_ms,
            group_initial_rebalance_delay_ms=self.group_initial_rebalance_delay_ms,
            group_max_size=self.group_max_size,
            offset_metadata_max_bytes=self.offset_metadata_max_bytes,
            offsets_retention_minutes=self.offsets_retention_minutes,
            offsets_retention_check_interval_ms=self.offsets_retention_check_interval_ms,
            offsets_commit_timeout_ms=self.offsets_commit_timeout_ms,
            offsets_value_version=self.rollcall_offsets_value_version,
            max_batch_bytes=min(self.message_max_bytes, JOURNALED_BATCH_BYTES_MAX),
            groups_max=self.rollcall_groups_max,
            pending_members_max=self.rollcall_group_pending_members_max,
            generation_records=self.rollcall_generation_records,
            forgive_slow_member=self.rollcall_forgive_slow_member,
            forgive_max_ms=self.rollcall_forgive_max_ms,
            rebalance_on_partition_change=self.rollcall_rebalance_on_partition_change,
            partition_change_delay_ms=self.rollcall_partition_change_delay_ms,
        )

    def topic_settings(self) -> TopicSettings:
        return TopicSettings(
            auto_create_topics_enable=self.auto_create_topics_enable,
            delete_topic_enable=self.delete_topic_enable,
            num_partitions=self.num_partitions,
            default_replication_factor=self.default_replication_factor,
            offsets_topic_num_partitions=self.offsets_topic_num_partitions,
            offsets_topic_segment_bytes=self.offsets_topic_segment_bytes,
            offsets_history_ms=self.rollcall_offsets_history_ms,
            fetch_max_bytes=self.fetch_max_bytes,
            max_request_partition_size_limit=self.max_request_partition_size_limit,
            log_retention_check_interval_ms=self.log_retention_check_interval_ms,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            producer_id_expiration_check_interval_ms=self.producer_id_expiration_check_interval_ms,
            producer_snapshot_interval_ms=self.rollcall_producer_snapshot_interval_ms,
            internal_topics=self._internal_topics,
            broker_properties={
                key.name: as_text(self.value(key))
                for key in keys().values()
                if key.name in self.origins
            },
        )

    @property
    def _internal_topics(self) -> dict[TopicName, InternalTopic]:
        topics = {LAG_TOPIC: InternalTopic(1, self._lag_topic)}
        if self.rollcall_history_enable:
            partitions = self.rollcall_history_topic_num_partitions
            topics[HISTORY_TOPIC] = InternalTopic(partitions, self._history_topic)
        return topics

    @property
    def _history_topic(self) -> dict[str, str]:
        # Whole files are deleted: they have to be closed more often than that.
        roll_ms = _DAY_MS
        if self.rollcall_history_retention_ms >= 0:
            roll_ms = max(min(_DAY_MS, self.rollcall_history_retention_ms // 4), 1_000)
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(max(self.rollcall_history_retention_ms, -1)),
            "retention.bytes": str(max(self.rollcall_history_retention_bytes, -1)),
            "segment.bytes": str(self.rollcall_history_segment_bytes),
            "segment.ms": str(roll_ms),
        }

    @property
    def _lag_topic(self) -> dict[str, str]:
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.rollcall_lag_retention_ms),
            "retention.bytes": str(self.rollcall_lag_retention_bytes),
            "segment.bytes": "67108864",
        }

    def offsets_log_settings(self) -> LogSettings:
        """How the files of __consumer_offsets are cut."""
        return LogSettings(
            segment_bytes=self.offsets_topic_segment_bytes,
            # What is not rolled cannot be compacted.
            segment_ms=min(self.roll_ms, self.log_cleaner_max_compaction_lag_ms),
            segment_index_bytes=self.log_index_size_max_bytes,
            index_interval_bytes=self.log_index_interval_bytes,
            cleanup_delete=False,
            cleanup_compact=True,
            min_cleanable_dirty_ratio=self.log_cleaner_min_cleanable_ratio,
            min_compaction_lag_ms=self.rollcall_offsets_history_ms,
            min_compaction_lag_max_bytes=self.rollcall_offsets_history_bytes,
            max_compaction_lag_ms=self.log_cleaner_max_compaction_lag_ms,
            delete_retention_ms=self.log_cleaner_delete_retention_ms,
            file_delete_delay_ms=self.log_segment_delete_delay_ms,
        )

    def value(self, key: Key) -> Value:
        value: Value = getattr(self, key.field)
        return value

    def origin(self, key: Key) -> Origin:
        return self.origins.get(key.name, _DEFAULT_ORIGIN)


_DEFAULT_ORIGIN = Origin()


@cache
def keys() -> Mapping[str, Key]:
    """The table: every key that is served, by its name, in the order of the declarations."""
    table: dict[str, Key] = {}
    defaults = Config()
    for field_name, rule in Config.RULES.items():
        name = field_name.replace("_", ".")
        default: Value = getattr(defaults, field_name)
        table[name] = Key(name, field_name, default, rule)
    return table
