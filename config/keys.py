"""Configuration keys: every key with its default, range and meaning, in one frozen `Config`.

A key is declared in one line: the field's name with its underscores as dots is the name that users
write, Kafka's wherever Kafka has one; then default, meaning and range. Own keys begin `rollcall_`.
Adding a key is adding that line and using the field. `sources.py` fills a Config in;
`rollcall config` and docs/configuration.md print this table. Durations are in ms and sizes in bytes
unless the name says otherwise. `settings.py` makes the settings of each part from it. Kafka's
counterpart: AbstractKafkaConfig.CONFIG_DEF.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, field

from config.admin_keys import AdminKeys
from config.crash_steps import NO_CRASH, Step
from config.limits import ListenerLimits
from config.listeners import Listener, parse_host_port, resolve_listeners
from config.types import (
    BrokerKey,
    Definition,
    KeyTable,
    boolean,
    double,
    integer,
    optional_integer,
    short,
    string,
    valid_list,
    valid_string,
    valid_string_of_any_case,
)
from protocol import java_text
from protocol.config_def import ConfigValue
from protocol.java_text import INT_MAX, LONG_MAX, split_list, trim
from seams.principal import Principal
from security.acls.authorizer import STANDARD_AUTHORIZER, parse_super_users
from topics.settings import TOPIC_PARTITIONS_MAX

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


class Origin(Struct, frozen=True):
    """Where a value came from: default, file, environment or command line, and which of them."""

    source: str = "default"
    place: str = ""
    provider: str = ""
    """The config provider that had the value."""

    def __str__(self) -> str:
        provider = f", provider {self.provider}" if self.provider else ""
        return f"{self.source} {self.place}".rstrip() + provider


class Config(AdminKeys, frozen=True, metaclass=KeyTable):
    """All keys that Rollcall serves, with their values. `Config()` holds the defaults."""

    DEFINITIONS: ClassVar[Mapping[str, Definition]]

    # Who we are, where we listen, where the data is.
    node_id: int = integer(1, "This node's id. Clients and tools see it.", at_least=0)
    broker_rack: str = string("", "The rack of this node, as clients see it.")
    listeners: tuple[str, ...] = valid_list(
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses to listen on, each NAME://HOST:PORT. An empty HOST means all addresses; port "
        "0 picks a free port. The default is this machine only; Kafka's is all addresses.",
    )
    advertised_listeners: tuple[str, ...] = valid_list(
        (), "Addresses for clients, by listener name. Default: the listener's own."
    )
    listener_security_protocol_map: str = string(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    controller_listener_names: tuple[str, ...] = valid_list(
        (), "Listeners of a KRaft controller: not opened, as Rollcall has none."
    )
    rollcall_admin_listener: str = string(
        "127.0.0.1:9180", "HOST:PORT of the admin port (/metrics, /livez, /readyz). Empty: none."
    )
    log_dirs: tuple[str, ...] = valid_list(
        (), "The data directory: exactly one. Overrides log.dir."
    )
    log_dir: tuple[str, ...] = valid_list(
        ("rollcall-data",), "The data directory, if log.dirs is not set."
    )
    rollcall_audit_log: str = string(
        "",
        "File for the audit log: refused and administrative actions, failed authentications, one "
        "JSON object per line. Default: they are lines of the log.",
    )
    rollcall_log_format: str = valid_string(
        "human",
        "Format of log lines: human, or one JSON object per line.",
        "human",
        "json",
    )
    rollcall_log_join_linger_ms: int = integer(
        10,
        "How long the log lines of a member that joins wait for those of others, which are then "
        "written together. A kill loses those that wait. 0: each is written at once.",
        at_least=0,
        at_most=1_000,
    )
    rollcall_log_level: str = valid_string(
        "info",
        "The lowest level of log lines that are written.",
        "debug",
        "info",
        "warning",
        "error",
    )

    # Who may do what.
    authorizer_class_name: str = valid_string(
        "",
        "Whether ACLs decide who may do what: the class of Kafka's authorizer selects the built-in "
        "one. Empty: every client may do everything. Any other class prevents the start.",
        "",
        STANDARD_AUTHORIZER,
    )
    super_users: str = string(
        "", "Principals that may do everything, whatever ACLs say: User:NAME;User:NAME;…"
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        "Whether everyone may use a resource that no ACL is about.", default=False
    )
    rollcall_acls_max: int = integer(
        10_000,
        "ACL entries at most. They are kept in memory, and every change writes all of them to a "
        "file.",
        at_least=1,
        at_most=100_000,
    )

    # What a client may cost us.
    socket_request_max_bytes: int = integer(
        104_857_600, "Largest request. A larger one closes its connection.", at_least=1
    )
    rollcall_request_max_bytes: int = integer(
        33_554_432,
        "Largest request other than Produce. A larger one closes its connection.",
        at_least=1,
    )
    socket_listen_backlog_size: int = integer(
        50,
        "Connections that wait until they are accepted, or closed for their address. The kernel "
        "queues at least 4,096 (up to net.core.somaxconn).",
        at_least=1,
    )
    socket_send_buffer_bytes: int = integer(
        102_400, "The kernel's send buffer per connection. -1: the system's default."
    )
    socket_receive_buffer_bytes: int = integer(
        102_400, "The kernel's receive buffer per connection. -1: the system's default."
    )
    connections_max_idle_ms: int = integer(
        600_000,
        "A connection that is idle for this long is closed. A connection with a pending request "
        "is not idle. Negative: never.",
        long=True,
    )
    max_connections: int = integer(
        2_147_483_647, "Connections at one time. Further ones are not accepted.", at_least=0
    )
    max_connections_per_ip: int = integer(
        2_147_483_647, "Connections from one address. Further ones are closed.", at_least=0
    )
    max_connections_per_ip_overrides: str = string(
        "", "Limits for single addresses instead of max.connections.per.ip: ADDRESS:NUMBER,…"
    )
    max_connection_creation_rate: int = integer(
        2_147_483_647,
        "New connections per second, as an average over 10 s. Further ones wait. One listener has "
        "its own as listener.name.NAME.max.connection.creation.rate, and its own "
        "max.connections as listener.name.NAME.max.connections, with NAME in lower case.",
        at_least=0,
    )
    queued_max_request_bytes: int = integer(
        -1,
        "Bytes of requests read and not answered yet, over all connections. At the limit no "
        "more are read. Requests waiting for members or records do not count. -1: no limit.",
        long=True,
    )
    rollcall_connection_unsent_max_bytes: int = integer(
        16_777_216,
        "Bytes of answers kept for one client that does not read them. At the limit no more of "
        "its requests are read, so that one stuck client cannot fill the memory. A Fetch answer "
        "has at most so many bytes of records, or one batch.",
        at_least=1,
    )
    rollcall_connections_unsent_max_bytes: int = integer(
        268_435_456,
        "Bytes of unread answers kept for all clients together. At the limit, requests of the "
        "clients with the most unread answers wait first. The less room is left, the fewer batches "
        "a Fetch answer has.",
        at_least=1,
        long=True,
    )
    quota_window_num: int = integer(
        11, "Windows in which the use of client quotas is counted.", at_least=1
    )
    quota_window_size_seconds: int = integer(
        1, "Length of such a window. No request_percentage throttles for longer.", at_least=1
    )
    controller_quota_window_num: int = integer(
        11, "Windows of controller_mutation_rate whose permits can be used at once.", at_least=1
    )
    controller_quota_window_size_seconds: int = integer(
        1, "Length of a window of controller_mutation_rate.", at_least=1
    )
    rollcall_client_quotas_max: int = integer(
        10_000, "Users, client ids and addresses that may have quotas.", at_least=0
    )
    rollcall_client_quota_measures_max: int = integer(
        10_000,
        "Clients whose use is kept in memory, for each kind of quota; the least recently active "
        "ones are forgotten.",
        at_least=1,
    )

    # Groups and their offsets.
    group_min_session_timeout_ms: int = integer(
        6_000, "Shortest session timeout of a member: shorter ones end at every pause.", at_least=0
    )
    group_max_session_timeout_ms: int = integer(
        1_800_000,
        "Longest session timeout of a member: a dead member is noticed by then.",
        at_least=0,
    )
    group_initial_rebalance_delay_ms: int = integer(
        3_000,
        "How long an empty group waits for more members before its first assignment.",
        at_least=0,
    )
    group_max_size: int = integer(
        2_147_483_647, "Members that a group may have. Further ones are refused.", at_least=1
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = valid_list(
        ("classic", "consumer", "streams"),
        "The group protocols that clients may use. classic cannot be left out. Of the others only "
        "consumer is served so far.",
        "consumer",
        "classic",
        "share",
        "streams",
        non_empty=True,
    )
    group_consumer_session_timeout_ms: int = integer(
        45_000, "Session timeout of members of consumer groups, unless set by group.", at_least=1
    )
    group_consumer_min_session_timeout_ms: int = integer(
        45_000, "Smallest session timeout that a consumer group may be given.", at_least=1
    )
    group_consumer_max_session_timeout_ms: int = integer(
        60_000, "Largest session timeout that a consumer group may be given.", at_least=1
    )
    group_consumer_heartbeat_interval_ms: int = integer(
        5_000,
        "How often members of consumer groups send heartbeats, unless set by group.",
        at_least=1,
    )
    group_consumer_min_heartbeat_interval_ms: int = integer(
        5_000, "Smallest heartbeat interval that a consumer group may be given.", at_least=1
    )
    group_consumer_max_heartbeat_interval_ms: int = integer(
        15_000, "Largest heartbeat interval that a consumer group may be given.", at_least=1
    )
    group_consumer_assignment_interval_ms: int = integer(
        1_000,
        "Time between two assignments of a consumer group, so that members who join together are "
        "assigned together, unless set by group. 0: at every change.",
        at_least=0,
    )
    group_consumer_min_assignment_interval_ms: int = integer(
        0, "Smallest assignment interval that a consumer group may be given.", at_least=0
    )
    group_consumer_max_assignment_interval_ms: int = integer(
        15_000, "Largest assignment interval that a consumer group may be given.", at_least=0
    )
    group_consumer_max_size: int = integer(
        2_147_483_647, "Members that a consumer group may have.", at_least=1
    )
    group_consumer_assignors: tuple[str, ...] = valid_list(
        ("uniform", "range"),
        "Server-side assignors of consumer groups. The first one is the default.",
        non_empty=True,
    )
    group_consumer_migration_policy: str = valid_string_of_any_case(
        "bidirectional",
        "Which groups are converted while they have members. upgrade: a classic group when a "
        "member joins with the consumer protocol. downgrade: a consumer group when its last such "
        "member leaves and classic members remain. bidirectional: both. disabled: neither.",
        "DISABLED",
        "DOWNGRADE",
        "UPGRADE",
        "BIDIRECTIONAL",
    )
    group_consumer_regex_refresh_interval_ms: int = integer(
        600_000,
        "How often the topics of a subscribed regular expression are looked up again.",
        at_least=10_000,
    )
    offset_metadata_max_bytes: int = integer(
        4_096, "Longest metadata text that may be committed with an offset."
    )
    offsets_retention_minutes: int = integer(
        10_080, "Minutes for which offsets are kept after their group became empty.", at_least=1
    )
    offsets_commit_timeout_ms: int = integer(
        5_000,
        "How long an answer waits for the disk. After that the client gets "
        "COORDINATOR_NOT_AVAILABLE; the request may still be stored.",
        at_least=1,
    )
    offsets_retention_check_interval_ms: int = integer(
        600_000, "How often expired offsets are removed.", at_least=1, long=True
    )
    offsets_topic_num_partitions: int = integer(
        50,
        "Partitions of __consumer_offsets. Never change it once there is data.",
        at_least=1,
        at_most=TOPIC_PARTITIONS_MAX,
    )
    offsets_topic_segment_bytes: int = integer(
        104_857_600, "Size at which a segment of __consumer_offsets is closed.", at_least=1
    )
    rollcall_offsets_history_ms: int = integer(
        86_400_000,
        "min.compaction.lag.ms of __consumer_offsets. Every commit is kept for this long, for "
        "analysis (Kafka: log.cleaner.min.compaction.lag.ms, 0).",
        at_least=0,
        long=True,
    )
    rollcall_offsets_history_bytes: int = integer(
        268_435_456,
        "At most this much of a partition of __consumer_offsets is kept uncompacted for "
        "rollcall.offsets.history.ms. -1: no limit.",
        at_least=-1,
        long=True,
    )
    rollcall_pipeline_keep_ms: int = integer(
        604_800_000,
        "How long the cleaner leaves sealed segments of __consumer_offsets to a pipeline that "
        "has acknowledged before and has not read them yet. -1: no limit.",
        at_least=-1,
        long=True,
    )
    rollcall_pipeline_keep_bytes: int = integer(
        1_073_741_824,
        "At most this much of a partition of __consumer_offsets is kept uncompacted for the "
        "pipeline. -1: no limit.",
        at_least=-1,
        long=True,
    )
    offsets_topic_replication_factor: int = short(
        1, "Replicas of __consumer_offsets. One node has one; Kafka's default is 3.", at_least=1
    )
    rollcall_offsets_value_version: int = integer(
        4,
        "Version of the value schema of committed offsets. Use 3 for older readers such as Burrow.",
        at_least=3,
        at_most=4,
    )
    group_consumer_assignor_offload_enable: bool = boolean(
        "Compute large assignments of consumer groups in a thread, so that other groups do not "
        "wait for them. rollcall.consumer.assignor.inline.max says which are large.",
        default=True,
    )
    rollcall_consumer_assignor_inline_max: int = integer(
        500_000,
        "Members times subscribed partitions of a consumer group up to which its assignment is "
        "computed and stored at once, which takes up to some 10 ms. A larger one is computed in a "
        "thread; its members get it with their next heartbeats.",
        at_least=0,
    )
    rollcall_groups_max: int = integer(
        200_000, "Groups that may exist. Further ones are refused (Kafka: no limit).", at_least=1
    )
    rollcall_group_pending_members_max: int = integer(
        10_000,
        "Member ids that a group hands out before it forgets the oldest unused one (Kafka: no "
        "limit).",
        at_least=1,
    )
    rollcall_generation_records: bool = boolean(
        "A generation is stored before its joins are answered, so that its members can continue "
        "with it after a restart (Kafka: false).",
        default=True,
    )
    rollcall_forgive_slow_member: bool = boolean(
        "A member whose session has expired stays in the group if it sends a request before "
        "another member is informed (Kafka: false).",
        default=True,
    )
    rollcall_forgive_max_ms: int = integer(
        60_000,
        "The longest time that rollcall.forgive.slow.member keeps an expired member, so that "
        "one member cannot block its group.",
        at_least=0,
    )
    rollcall_rebalance_on_partition_change: bool = boolean(
        "The coordinator itself starts a rebalance when a subscribed topic's partitions change "
        "(Kafka: the clients detect it).",
        default=False,
    )
    rollcall_partition_change_delay_ms: int = integer(
        1_000,
        "How long rollcall.rebalance.on.partition.change waits for further changes before it "
        "starts a rebalance.",
        at_least=0,
    )

    # What "stored" means.
    rollcall_flush: str = valid_string(
        "commit",
        "commit: an offset is acknowledged after fsync. os: after it is in the page cache, "
        "which is the guarantee of a single Kafka broker.",
        "commit",
        "os",
    )
    group_coordinator_append_linger_ms: int = integer(
        -1,
        "How long commits are collected before a flush. -1: until a pass over all sockets "
        "brings nothing more, 2 ms at most. 0: no waiting.",
        at_least=-1,
    )
    rollcall_journal_bytes: int = integer(
        67_108_864,
        "Size of the two preallocated journal files together. While one takes commits, a "
        "checkpoint syncs the segments that the other one covers. One flush must fit into each.",
        at_least=36_582_208,
    )
    rollcall_checkpoint_bytes: int = integer(
        8_388_608,
        "A checkpoint starts at this size of a journal file. It bounds what a start reads again.",
        at_least=65_536,
    )
    rollcall_checkpoint_idle_ms: int = integer(
        5_000, "A checkpoint also starts after this time without a commit.", at_least=1
    )
    rollcall_disk_reserve_bytes: int = integer(
        16_777_216,
        "If less than this is free on the data directory's disk, commits and produced records "
        "are refused before anything is half written. 0: no reserve.",
        at_least=0,
        long=True,
    )
    rollcall_snapshot_bytes: int = integer(
        1_048_576,
        "A partition of __consumer_offsets gets a new snapshot when its log has grown by this "
        "much. A start reads the snapshot and the log after it. When all partitions together have "
        "grown by 16 times as much, those with smaller growths get one too.",
        at_least=4_096,
        long=True,
    )
    rollcall_disk_full_retry_ms: int = integer(
        1_000, "How often a full disk is checked for free space.", at_least=1
    )
    rollcall_flush_stalled_ms: int = integer(
        5_000,
        "If a flush of the journal takes longer than this, the log reports it, and /readyz "
        "returns 503 until the flush ends.",
        at_least=1,
    )
    rollcall_journal_queue_max_bytes: int = integer(
        16_777_216,
        "Bytes of records that wait for the disk. At the limit commits get "
        "COORDINATOR_NOT_AVAILABLE, which clients retry.",
        at_least=65_536,
    )

    # What /metrics shows.
    rollcall_metrics_groups_max: int = integer(
        10_000,
        "Groups with their own series in /metrics, those with the most lag first. The others "
        "are summed.",
        at_least=0,
    )
    rollcall_metrics_partitions_max: int = integer(
        50_000,
        "Partitions of groups, and partitions of topics, with their own series in /metrics.",
        at_least=0,
    )
    rollcall_metrics_aliases: tuple[str, ...] = valid_list(
        ("kafka_exporter", "kafka-lag-exporter"),
        "Exporters whose metric names and labels /metrics also has, for existing dashboards. "
        "Empty: none.",
        "kafka_exporter",
        "kafka-lag-exporter",
    )
    rollcall_metrics_cluster_name: str = string(
        "", "The label cluster_name of kafka-lag-exporter's metrics. Empty: the cluster id."
    )

    # What is remembered of groups: __group_history.
    rollcall_history_enable: bool = boolean(
        "Events of groups and their causes are kept for `rollcall why`.", default=True
    )
    rollcall_history_retention_ms: int = integer(
        2_592_000_000,
        "How long __group_history is kept, by whole segments. -1: forever.",
        long=True,
    )
    rollcall_history_retention_bytes: int = integer(
        1_073_741_824,
        "Size of a partition of __group_history above which old segments are deleted. -1: none.",
        long=True,
    )
    rollcall_history_segment_bytes: int = integer(
        67_108_864, "Size at which a segment of __group_history is closed.", at_least=1_048_576
    )
    rollcall_history_topic_num_partitions: int = integer(
        1,
        "Partitions of __group_history. One keeps the order over all groups. The number must "
        "not be reduced.",
        at_least=1,
        at_most=TOPIC_PARTITIONS_MAX,
    )
    rollcall_history_memory_rebalances: int = integer(
        20_000,
        "Rebalances kept in memory. Older ones are read from __group_history.",
        at_least=1,
    )
    rollcall_history_memory_bytes: int = integer(
        32 << 20,
        "Memory for rebalances: about 2 KB for one of two members, 80 KB for one of a hundred.",
        at_least=1 << 16,
    )
    rollcall_history_memory_rebalances_per_group: int = integer(
        20, "Rebalances of one group kept in memory.", at_least=1
    )
    rollcall_history_members_max: int = integer(
        200,
        "Members listed in one history record, the slowest first; others are counted.",
        at_least=1,
    )

    # Lag, and live trouble.
    rollcall_lag_interval_ms: int = integer(
        15_000,
        "How often the lag of every group is sampled. Dashboards commonly query this often.",
        at_least=100,
    )
    rollcall_lag_window_commits: int = integer(
        20,
        "Commits of a partition that its status is derived from, at most one per sample. With "
        "the default interval: five minutes of a consumer that commits all the time.",
        at_least=2,
        at_most=1_000,
    )
    rollcall_lag_partitions_max: int = integer(
        200_000,
        "Partitions of groups whose lag is followed over time, with at most about a kilobyte of "
        "memory each. The lag of further ones is reported without rates and status.",
        at_least=0,
    )
    rollcall_lag_record_times_max: int = integer(
        2_000,
        "Records per sample whose time is read from the log, for the lag in seconds. The others "
        "are estimated. A query for a single group reads them all.",
        at_least=0,
    )
    rollcall_lag_keepalive_ms: int = integer(
        600_000,
        "How often the whole windows of a group are written to __group_lag. A start reads back "
        "twice this time.",
        at_least=1_000,
    )
    rollcall_lag_tail_max_bytes: int = integer(
        67_108_864, "At most this much of __group_lag is read at a start.", at_least=65_536
    )
    rollcall_lag_retention_ms: int = integer(
        604_800_000, "How long samples are kept in __group_lag. -1: forever.", long=True
    )
    rollcall_lag_retention_bytes: int = integer(
        1_073_741_824,
        "Size of __group_lag above which old segments are deleted. -1: no limit.",
        long=True,
    )

    rollcall_trouble_window_ms: int = integer(
        600_000,
        "How long an event of a group counts for verdicts: two of Kafka's longest waits "
        "(max.poll.interval.ms) in a row.",
        at_least=1_000,
    )
    rollcall_trouble_flapping_returns: int = integer(
        3,
        "Returns of one member within rollcall.trouble.window.ms that make it flapping. A "
        "restart and one repetition are two.",
        at_least=1,
    )
    rollcall_trouble_loop_rebalances: int = integer(
        5,
        "Rebalances in rollcall.trouble.window.ms without progress that make a loop.",
        at_least=2,
    )
    rollcall_trouble_slow_join_ms: int = integer(
        10_000,
        "How long a member may keep a rebalance waiting before it is a slow joiner. A poll loop "
        "rarely takes longer.",
        at_least=1,
    )
    rollcall_trouble_stuck_ms: int = integer(
        15_000,
        "How long a group may be between two generations before it is stuck; in a consumer group, "
        "between two target assignments, and how long a member may keep partitions that it is to "
        "give back.",
        at_least=1,
    )
    rollcall_trouble_settle_ms: int = integer(
        60_000,
        "How long members may differ (a rollout), or partitions may have no owner (a "
        "cooperative rebalance), before there is a verdict.",
        at_least=0,
    )
    rollcall_trouble_no_progress_ms: int = integer(
        120_000,
        "How long a member may have records to read without a new commit before there is a "
        "verdict, or twice its usual pause between commits if that is longer.",
        at_least=1,
    )
    rollcall_trouble_open_transaction_ms: int = integer(
        120_000,
        "How long an open transaction may keep the last stable offset of a partition from moving "
        "before there is a verdict on its producer.",
        at_least=1,
    )
    rollcall_trouble_commits_per_second: int = integer(
        100,
        "Commits of one client that make a storm. A commit per poll is far below.",
        at_least=1,
    )
    rollcall_trouble_skew_percent: int = integer(
        200,
        "A member's partitions, in percent of an even share, from which its assignment is skewed.",
        at_least=101,
    )
    rollcall_trouble_groups_max: int = integer(
        10_000,
        "Groups whose recent past is kept for verdicts, some kilobytes each. At the limit, the "
        "group whose last event is oldest is forgotten.",
        at_least=1,
    )

    # For drills.
    rollcall_crash_at: str = valid_string(
        NO_CRASH,
        "For drills: the daemon kills itself (SIGKILL) at this step of the next rebalance.",
        NO_CRASH,
        *Step,
    )
    rollcall_drill_faults: str = string(
        "",
        "For `rollcall drill`, which sets it for the daemon that it starts: a file that says which "
        "faults the disk has, and at which step the daemon kills itself. Empty: no faults.",
    )

    # Topics: defaults for those that set nothing themselves, and what requests may ask.
    auto_create_topics_enable: bool = boolean(
        "A topic that a client requests and that does not exist is created.", default=True
    )
    delete_topic_enable: bool = boolean("Topics may be deleted.", default=True)
    num_partitions: int = integer(
        1,
        "Partitions of a topic created without a number.",
        at_least=1,
        at_most=TOPIC_PARTITIONS_MAX,
    )
    default_replication_factor: int = integer(1, "Replicas of a new topic. One node has one.")
    min_insync_replicas: int = integer(
        1, "Replicas that acks=all waits for. One node has one.", at_least=1
    )
    message_max_bytes: int = integer(1_048_588, "Largest record batch accepted.", at_least=0)
    fetch_max_bytes: int = integer(57_671_680, "Largest answer to one Fetch.", at_least=1_024)
    max_incremental_fetch_session_cache_slots: int = integer(
        1_000,
        "Fetch sessions at one time. Clients without one name all their partitions in every Fetch. "
        "0: no sessions.",
        at_least=0,
    )
    rollcall_fetch_session_partitions_max: int = integer(
        250_000,
        "Partitions of all fetch sessions together, at about 400 bytes each. A client for which "
        "there is no room gets no session.",
        at_least=0,
    )
    compression_type: str = valid_string(
        "producer",
        "Compression of stored batches. producer: each batch is stored as received.",
        "uncompressed",
        "zstd",
        "lz4",
        "snappy",
        "gzip",
        "producer",
    )
    compression_gzip_level: int = integer(
        -1,
        "Level for compression.type=gzip. -1: the library's default.",
        at_least=1,
        at_most=9,
        other=-1,
    )
    compression_lz4_level: int = integer(
        9, "Level for compression.type=lz4.", at_least=1, at_most=17
    )
    compression_zstd_level: int = integer(
        3, "Level for compression.type=zstd.", at_least=-131_072, at_most=22
    )
    log_cleanup_policy: tuple[str, ...] = valid_list(
        ("delete",), "What happens to old records.", "compact", "delete"
    )
    log_segment_bytes: int = integer(
        1_073_741_824, "Size at which a topic's segment is closed.", at_least=1_048_576
    )
    log_roll_ms: int | None = optional_integer(
        "Age at which a topic's segment is closed. Overrides log.roll.hours.", at_least=1, long=True
    )
    log_roll_hours: int = integer(168, "log.roll.ms in hours.", at_least=1)
    log_roll_jitter_ms: int | None = optional_integer(
        "At most this much earlier a topic's segment is closed for its age, so that not all are "
        "closed at once. Overrides log.roll.jitter.hours.",
        at_least=0,
        long=True,
    )
    log_roll_jitter_hours: int = integer(0, "log.roll.jitter.ms in hours.", at_least=0)
    log_retention_ms: int | None = optional_integer(
        "Age at which records may be deleted. -1: never. Overrides log.retention.minutes and "
        "log.retention.hours.",
        long=True,
    )
    log_retention_minutes: int | None = optional_integer("log.retention.ms in minutes.")
    log_retention_hours: int = integer(168, "log.retention.ms in hours.")
    log_retention_bytes: int = integer(
        -1, "Size of a partition above which old segments are deleted. -1: no limit.", long=True
    )
    log_retention_check_interval_ms: int = integer(
        300_000, "How often segments are checked for deletion.", at_least=1, long=True
    )
    log_segment_delete_delay_ms: int = integer(
        60_000,
        "How long a segment replaced by compaction stays on disk. Others are removed at once.",
        at_least=0,
        long=True,
    )
    log_flush_offset_checkpoint_interval_ms: int = integer(
        60_000,
        "How often the recovery points of topics are written. A start after a kill scans the "
        "segments above them. Sealed segments are synced within a second.",
        at_least=0,
    )
    log_cleaner_enable: bool = boolean("Compacted topics are compacted.", default=True)
    log_cleaner_backoff_ms: int = integer(
        15_000, "How often the cleaner looks for logs to clean.", at_least=0, long=True
    )
    log_cleaner_io_max_bytes_per_second: float = double(
        1.7976931348623157e308,
        "Bytes that the cleaner may read and write per second, on average.",
        at_least=1.0,
    )
    log_cleaner_dedupe_buffer_size: int = integer(
        134_217_728,
        "Memory for the map of newest offsets. When it is full, the pass ends there. A key "
        "takes its length plus 220 bytes (Kafka: 24).",
        at_least=1_048_576,
        long=True,
    )
    log_cleaner_min_cleanable_ratio: float = double(
        0.5, "Share of uncompacted bytes above which a log is cleaned.", at_least=0.0, at_most=1.0
    )
    log_cleaner_delete_retention_ms: int = integer(
        86_400_000, "How long compaction keeps tombstones.", at_least=0, long=True
    )
    log_cleaner_min_compaction_lag_ms: int = integer(
        0, "Age before which a record is not compacted.", at_least=0, long=True
    )
    log_cleaner_max_compaction_lag_ms: int = integer(
        LONG_MAX, "Age at which a record is compacted, whatever the ratio.", at_least=1, long=True
    )
    log_index_interval_bytes: int = integer(
        4_096, "Bytes of a segment between two entries of its index.", at_least=0
    )
    log_index_size_max_bytes: int = integer(
        10_485_760, "Largest index. A full one closes its segment.", at_least=4
    )
    log_flush_interval_messages: int = integer(
        LONG_MAX, "Records after which a topic's partition is fsynced.", at_least=1, long=True
    )
    log_flush_interval_ms: int | None = optional_integer(
        "Time after which records that wait for it are fsynced. Overrides "
        "log.flush.scheduler.interval.ms.",
        at_least=0,
        long=True,
    )
    log_flush_scheduler_interval_ms: int = integer(
        LONG_MAX, "log.flush.interval.ms, if that is not set.", at_least=0, long=True
    )
    log_message_timestamp_type: str = valid_string(
        "CreateTime",
        "Timestamp of a record: the producer's (CreateTime) or the broker's (LogAppendTime).",
        "CreateTime",
        "LogAppendTime",
    )
    log_message_timestamp_before_max_ms: int = integer(
        LONG_MAX, "How far a producer's time may be in our past.", at_least=0, long=True
    )
    log_message_timestamp_after_max_ms: int = integer(
        3_600_000, "How far a producer's time may be in our future.", at_least=0, long=True
    )
    producer_id_expiration_ms: int = integer(
        86_400_000, "How long the sequence numbers of an idle producer are kept.", at_least=1
    )
    producer_id_expiration_check_interval_ms: int = integer(
        600_000, "How often expired producers are removed.", at_least=1
    )
    transaction_state_log_num_partitions: int = integer(
        50,
        "Partitions of __transaction_state, which is created when the first client asks for a "
        "coordinator of transactions. Never change it once there is data.",
        at_least=1,
        at_most=TOPIC_PARTITIONS_MAX,
    )
    transaction_state_log_segment_bytes: int = integer(
        104_857_600, "Size at which a segment of __transaction_state is closed.", at_least=1
    )
    transaction_state_log_replication_factor: int = short(
        1, "Replicas of __transaction_state. One node has one; Kafka's default is 3.", at_least=1
    )
    transaction_state_log_min_isr: int = integer(
        1,
        "min.insync.replicas of __transaction_state. One node has one; Kafka's default is 2.",
        at_least=1,
    )
    transaction_partition_verification_enable: bool = boolean(
        "Ask the transaction coordinator, before a batch is appended, whether its partition was "
        "added to the transaction. Producers that add it with the batch itself are not concerned.",
        default=True,
    )
    transaction_max_timeout_ms: int = integer(
        900_000,
        "Largest transaction.timeout.ms that a producer may ask for. A larger one gets "
        "INVALID_TRANSACTION_TIMEOUT.",
        at_least=1,
    )
    transactional_id_expiration_ms: int = integer(
        604_800_000,
        "A transactional id that had no transaction for this long is forgotten.",
        at_least=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        10_000, "How often transactions that have timed out are aborted.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        3_600_000, "How often expired transactional ids are removed.", at_least=1
    )
    rollcall_transaction_version: int = integer(
        2,
        "Level of the feature transaction.version, as kafka-features shows it. 2: a new producer "
        "epoch for each transaction (KIP-890). 1: as in Kafka 3. 0: records in "
        "__transaction_state that a Kafka before 4.0 can read.",
        at_least=0,
        at_most=2,
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = integer(
        100,
        "How long the first Produce of a transaction waits while the one before it is being "
        "completed. Then its client gets CONCURRENT_TRANSACTIONS.",
        at_least=0,
    )
    rollcall_transactional_ids_max: int = integer(
        200_000,
        "Transactional ids that are kept, some 0.9 KB of memory each. A new one beyond that is "
        "refused until others expire. Kafka has no limit.",
        at_least=1,
    )
    rollcall_producer_snapshot_interval_ms: int = integer(
        60_000,
        "How often the producers' sequence numbers are saved. A start after kill -9 reads the "
        "batches since then again.",
        at_least=1,
    )
    max_request_partition_size_limit: int = integer(
        2_000, "Partitions in one answer to DescribeTopicPartitions.", at_least=1
    )

    # What a client may cost us before it is authenticated.
    connection_failed_authentication_delay_ms: int = integer(
        100,
        "How long the answer to a failed authentication is held back. It must be less than "
        "connections.max.idle.ms.",
        at_least=0,
    )
    rollcall_authentication_timeout_ms: int = integer(
        30_000,
        "How long a client may take for its TLS handshake and its authentication. Then its "
        "connection is closed. Kafka waits for connections.max.idle.ms.",
        at_least=1,
    )

    # Not keys of the table: what single listeners have of their own.
    listener_limits: Mapping[str, ListenerLimits] = field(default_factory=dict)
    """`listener.name.NAME.max.connections` and the rate, by listener."""
    security_overrides: Mapping[str, ConfigValue] = field(default_factory=dict)
    """Security keys with a prefix, by whole name: `listener.name.NAME.[MECHANISM.]KEY`."""

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
            number = java_text.parse_integer(text, 0, INT_MAX)
            if not trim(address) or number is None:
                raise ValueError(
                    f"{entry!r} is not of the form ADDRESS:NUMBER, with a number up to {INT_MAX}"
                )
            limits[trim(address)] = number
        return limits

    @property
    def super_user_principals(self) -> frozenset[Principal]:
        """super.users, taken apart; ValueError if it cannot be."""
        return parse_super_users(self.super_users)

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

    def value(self, key: BrokerKey) -> ConfigValue | None:
        value: ConfigValue | None = getattr(self, key.field)
        return value

    def origin(self, key: BrokerKey) -> Origin:
        return self.origins.get(key.name, _DEFAULT_ORIGIN)


_DEFAULT_ORIGIN = Origin()


@cache
def keys() -> Mapping[str, BrokerKey]:
    """The table: every key that is served, by its name, in the order of the declarations."""
    table: dict[str, BrokerKey] = {}
    defaults = Config()
    for field_name, definition in Config.DEFINITIONS.items():
        name = field_name.replace("_", ".")
        default: ConfigValue | None = getattr(defaults, field_name)
        table[name] = BrokerKey(
            name,
            definition.type,
            definition.documentation,
            definition.validator,
            field_name,
            default,
        )
    return table
