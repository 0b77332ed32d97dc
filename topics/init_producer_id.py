"""InitProducerId: by which id may an idempotent producer number its records?

Every request gets an id that nobody had before, even one that names an id it already has: as in
Kafka, whose transaction coordinator alone bumps epochs. Transactions are not served yet; a
transactional id is told UNSUPPORTED_VERSION, which clients take as final and say so.
Kafka's counterpart: `KafkaApis.handleInitProducerIdRequest`, `TransactionCoordinator`.
"""

from typing import Final

from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import ErrorCode, ProducerId
from topics.producer_ids import ProducerIds

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1


def answer_init_producer_id(
    request: InitProducerIdRequest, producer_ids: ProducerIds
) -> InitProducerIdResponse:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    try:
        producer_id = producer_ids.next()
    except OSError:
        # What Kafka says while it has no ids to give: the client asks again.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code, producer_id=ProducerId(NO_PRODUCER_ID), producer_epoch=NO_EPOCH
    )
