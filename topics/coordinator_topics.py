"""Coordinator topics: the configs of `__consumer_offsets` and `__transaction_state`.

They follow from the broker's keys, at each start.
"""

from protocol.names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicName
from topics.configs import INTERNAL_SEGMENT_BYTES
from topics.settings import TopicSettings


def coordinator_topic_configs(settings: TopicSettings) -> dict[TopicName, dict[str, str]]:
    """The configs of the coordinators' topics, by the settings of this start."""
    return {
        OFFSETS_TOPIC: {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            **_segment_bytes(settings.offsets_topic_segment_bytes),
            # Not the broker's key: DescribeConfigs shows what the cleaner uses.
            "min.compaction.lag.ms": str(settings.offsets_history_ms),
        },
        TRANSACTION_STATE_TOPIC: {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings.transaction_state_log_min_isr),
            "unclean.leader.election.enable": "false",
            **_segment_bytes(settings.transaction_state_log_segment_bytes),
        },
    }


def _segment_bytes(size: int) -> dict[str, str]:
    """The broker's key may be smaller than the minimum of a topic's own."""
    return {INTERNAL_SEGMENT_BYTES if size < 1 << 20 else "segment.bytes": str(size)}
