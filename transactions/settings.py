"""Transaction settings: the limits and intervals of the transaction coordinator, named as in Kafka.

`config/keys.py` fills this in from the configuration; the defaults are Kafka 4.3.1's. Durations
are in ms.
"""

from msgspec import Struct


class TransactionSettings(Struct, frozen=True):
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    add_partitions_to_txn_retry_backoff_max_ms: int = 100
    offsets_topic_num_partitions: int = 50  # of the topic that is there
    max_batch_bytes: int = 1_048_588  # the max.message.bytes of __transaction_state
    # Kafka has no such limit; docs/differences.md says what happens at it.
    transactional_ids_max: int = 200_000  # rollcall.transactional.ids.max: some 0.9 KB each
