"""InitProducerId: assigns an id to an idempotent producer.

Every request gets a new id, even one that names the id it has: as in Kafka, where only the
transaction coordinator increments epochs. Transactions are not served yet: a transactional id gets
UNSUPPORTED_VERSION, which clients take as final and report.
Kafka's counterpart: `KafkaApis.handleInitProducerIdRequest`, `TransactionCoordinator`.
"""

from typing import Final

from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import ErrorCode, ProducerId
from topics.admin_queue import Steps
from topics.producer_ids import ProducerIds

_NO_PRODUCER_ID: Final = -1
_NO_EPOCH: Final = -1


def answer_init_producer_id(
    request: InitProducerIdRequest, producer_ids: ProducerIds
) -> InitProducerIdResponse | None:
    """None if ids must be reserved first: then `reserve_and_answer`, in the admin queue."""
    if (request.producer_id == _NO_PRODUCER_ID) != (request.producer_epoch == _NO_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    return _assigned(producer_ids)


def reserve_and_answer(producer_ids: ProducerIds) -> Steps[InitProducerIdResponse]:
    """For a valid request. Others before it may have used up a block meanwhile."""
    while (answer := _assigned(producer_ids)) is None:
        try:
            yield from producer_ids.reserve()
        except OSError:
            # Kafka's error while it has no ids: the client retries.
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return answer


def _assigned(producer_ids: ProducerIds) -> InitProducerIdResponse | None:
    producer_id = producer_ids.take()
    if producer_id is None:
        return None
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code, producer_id=ProducerId(_NO_PRODUCER_ID), producer_epoch=_NO_EPOCH
    )
