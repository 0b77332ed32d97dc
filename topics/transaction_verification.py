"""Transaction verification: is the partition of a transactional batch in the open transaction?

A batch whose producer has an open transaction in its partition needs no question. Otherwise the
transaction coordinator is asked, once for all partitions of a request: to add them (Produce v12 and
later) or whether they were added (before that). Its errors become those that clients of the version
retry or abort at.

The answer may be late: the transaction may have ended before the batch is appended. So the producer
states keep a `Verification` from the question to the append, and a marker removes it.
Kafka's counterparts: `ReplicaManager.handleProduceAppend`, `AddPartitionsToTxnManager`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.names import ErrorCode, ProducerId, TransactionalId
from seams.now import Now
from seams.transactions import PartitionErrors, TransactionVerifier
from topics.append import AppendJob
from topics.batch_check import RejectedBatch
from topics.producers import ProducerStates

FIRST_VERSION_THAT_ADDS: Final = 12
FIRST_VERSION_WITH_ABORTABLE: Final = 11

_RETRIED_AS_REPLICAS: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors that producers do not expect of a Produce; they retry NOT_ENOUGH_REPLICAS."""

TRANSACTION_UNKNOWN: Final = RejectedBatch(
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    "there is no transaction coordinator",
    has_log_start=False,
)
SEVERAL_PRODUCERS: Final = RejectedBatch(
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    "transactional batches of more than one producer",
    "Transactional batches of one request must have one producer id and epoch",
    has_log_start=False,
)
TRANSACTION_UNNAMED: Final = RejectedBatch(
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "a transactional batch without a transactional id",
    has_log_start=False,
)


class TransactionVerification:
    """Asks the transaction coordinator about batches."""

    def __init__(self, *, is_enabled: bool) -> None:
        """`is_enabled`: transaction.partition.verification.enable. Adding is not optional."""
        self.is_enabled = is_enabled
        self.verifier: TransactionVerifier | None = None  # set once there is a coordinator

    def verify(
        self,
        transactional_id: TransactionalId,
        jobs: Sequence[AppendJob],
        api_version: int,
        now: Now,
        done: Callable[[dict[int, RejectedBatch]], None],
    ) -> None:
        """`done` with what is refused, by position; the producer states must be restored."""
        adds = api_version >= FIRST_VERSION_THAT_ADDS
        refused: dict[int, RejectedBatch] = {}
        asked: list[int] = []
        for number, job in enumerate(jobs):
            producers = job.partition.producers
            assert producers is not None, "restored before"
            outdated = _outdated(job, producers)
            if outdated is not None:
                refused[number] = outdated
                continue
            job.must_verify = self.is_enabled
            job.verification = producers.verification(job.header, now.wall_ms, bumps_epoch=adds)
            if job.verification is not None and (adds or self.is_enabled):
                asked.append(number)
        if not asked:
            done(refused)
            return
        if self.verifier is None:
            done(refused | dict.fromkeys(asked, TRANSACTION_UNKNOWN))
            return
        keys = [jobs[number].partition.topic_partition for number in asked]

        def answered(errors: PartitionErrors) -> None:
            for number, key in zip(asked, keys, strict=True):
                error_code = errors[key]
                if error_code is not ErrorCode.NONE:
                    refused[number] = _refusal(error_code, api_version)
            done(refused)

        header = jobs[asked[0]].header
        self.verifier.add_or_verify(
            transactional_id,
            ProducerId(header.producer_id),
            header.producer_epoch,
            keys,
            now,
            answered,
            add=adds,
            wait=adds,
        )


def _outdated(job: AppendJob, producers: ProducerStates) -> RejectedBatch | None:
    """The producer was fenced here: no question is needed."""
    entry = producers.entries.get(ProducerId(job.header.producer_id))
    epoch = job.header.producer_epoch
    if entry is None or epoch >= entry.epoch:
        return None
    reason = f"producer {job.header.producer_id} has epoch {epoch}, {entry.epoch} was seen"
    return RejectedBatch(ErrorCode.INVALID_PRODUCER_EPOCH, reason, has_log_start=False)


def _refusal(error_code: ErrorCode, api_version: int) -> RejectedBatch:
    """The error of the coordinator as a client of this version knows it."""
    reason = f"the transaction coordinator answers {error_code.name}"
    message = None
    if error_code in _RETRIED_AS_REPLICAS or (
        error_code is ErrorCode.CONCURRENT_TRANSACTIONS and api_version < FIRST_VERSION_THAT_ADDS
    ):
        error_code = ErrorCode.NOT_ENOUGH_REPLICAS
    elif error_code is ErrorCode.PRODUCER_FENCED:
        error_code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif (
        error_code is ErrorCode.TRANSACTION_ABORTABLE and api_version < FIRST_VERSION_WITH_ABORTABLE
    ):
        error_code = ErrorCode.INVALID_TXN_STATE
        message = "Partition was not added to the transaction"
    return RejectedBatch(error_code, reason, message, has_log_start=False)
