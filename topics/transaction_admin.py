"""Transaction administration: the requests of `kafka-transactions` about partitions.

DescribeProducers reads producer states, WriteTxnMarkers ends transactions. Both concern partitions
of the offsets topic too, whose writer is the group coordinator: the composition root sets
`partitions` to what serves all partitions, and `producers_of` to what knows its producers.
Kafka's counterpart: `KafkaApis`, as far as it serves these requests.
"""

from collections.abc import Callable, Mapping

from protocol.messages import Request, Response
from protocol.messages.describe_producers import DescribeProducersRequest
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from protocol.names import ApiKey
from seams.authorizer import Authorizer
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.transactions import TransactionPartitions
from topics.handlers.describe_producers import (
    ProducersOf,
    answer_describe_producers,
    described_partitions,
    forbidden_producers,
)
from topics.handlers.write_txn_markers import write_txn_markers
from topics.producer_recovery import ProducerRecovery
from topics.registry import TopicRegistry


class TransactionAdmin:
    def __init__(
        self,
        registry: TopicRegistry,
        recovery: ProducerRecovery,
        partitions: TransactionPartitions,
        reply: Callable[[ReplyToken, Response | None], None],
        authorizer: Authorizer,
    ) -> None:
        self._registry = registry
        self._recovery = recovery
        self._reply = reply
        self._authorizer = authorizer
        self.partitions = partitions
        self.producers_of: ProducersOf = lambda _: None
        self.handlers: Mapping[ApiKey, Handler] = {
            ApiKey.DESCRIBE_PRODUCERS: self._describe_producers,
            ApiKey.WRITE_TXN_MARKERS: self._write_txn_markers,
        }

    def _describe_producers(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DescribeProducersRequest)
        registry, forbidden = self._registry, forbidden_producers(request, token, self._authorizer)

        def restored() -> None:
            answer = answer_describe_producers(request, registry, self.producers_of, forbidden)
            self._reply(token, answer)

        self._recovery.ensure(described_partitions(request, registry, forbidden), now, restored)

    def _write_txn_markers(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, WriteTxnMarkersRequest)
        write_txn_markers(
            request, self.partitions, now, lambda response: self._reply(token, response)
        )
