"""Requests: the handler of each API of transactions, from the request to a command and back.

What can be checked without the state of the transactional id is checked here, in Kafka's order:
first who may ask, then what is asked for. Authorization is asked of `seams/authorizer.py`.
Kafka's counterpart: the methods of `KafkaApis` for transactions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from protocol.answer_budget import AnswerBudget
from protocol.messages import Request, Response
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.names import OFFSETS_TOPIC, ApiKey, ErrorCode, ProducerId, TransactionalId
from seams.authorizer import Authorizer
from seams.handler import Handler
from seams.java_hash import partition_of
from seams.now import Now
from seams.producer_ids import ProducerIdSource
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView
from storage.api import TopicPartition
from transactions.add_partitions import BROKERS_SINCE, CombinedResults, partition_refusals
from transactions.answers import (
    end_txn_response,
    init_producer_id_response,
    known_error,
    named_partitions,
    new_producer_id_response,
    topic_results,
)
from transactions.commands import AddPartitions, EndTransaction, InitProducerId, TransactionCommand
from transactions.decide.describe_transactions import (
    describe_transaction,
    description_bytes,
    refuse_describe_transaction,
)
from transactions.decide.list_transactions import (
    is_pattern_valid,
    list_transactions,
    unknown_states,
)
from transactions.metadata import UNKNOWN_EPOCH, UNKNOWN_PRODUCER_ID
from transactions.outcome import TransactionAnswer
from transactions.settings import TransactionSettings
from transactions.transaction import AnswerDone, Transaction

EPOCH_IN_ANSWER_SINCE: Final = 5
"""The version of EndTxn that belongs to transaction version 2."""

CLIENT_TRANSACTION_VERSION: Final = 2
"""Of the versions of requests that belong to transaction version 2; of older ones it is 0."""


class Turns(Protocol):
    """What the handlers need of the coordinator."""

    def turn(
        self, command: TransactionCommand, answer: AnswerDone, token: ReplyToken, now: Now
    ) -> None:
        """Let the shard of the transactional id carry out a client's command."""

    def verify(
        self,
        transactional_id: TransactionalId,
        producer_id: ProducerId,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        /,
    ) -> Mapping[TopicPartition, ErrorCode]: ...

    def absence(self, transactional_id: str) -> ErrorCode:
        """Why there is no shard for it; NONE if there is one."""

    def transaction(self, transactional_id: TransactionalId) -> Transaction | None: ...

    def transactions(self) -> Iterator[Transaction]: ...

    @property
    def is_loading(self) -> bool: ...


class TransactionRequests:
    def __init__(
        self,
        settings: TransactionSettings,
        turns: Turns,
        *,
        producer_ids: ProducerIdSource,
        topics: TopicsView,
        authorizer: Authorizer,
        reply: Callable[[ReplyToken, Response], None],
    ) -> None:
        self._settings = settings
        self._turns = turns
        self._producer_ids = producer_ids
        self._topics = topics
        self._authorizer = authorizer
        self._reply = reply
        self.handlers: Mapping[ApiKey, Handler] = {
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.END_TXN: self._end_txn,
            ApiKey.DESCRIBE_TRANSACTIONS: self._describe,
            ApiKey.LIST_TRANSACTIONS: self._list,
        }

    def _init_producer_id(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, InitProducerIdRequest)
        transactional_id = request.transactional_id
        error_code = self._init_refusal(request, token)
        if error_code is not ErrorCode.NONE:
            self._answer_init(token, TransactionAnswer(error_code))
        elif transactional_id is None:
            self._producer_ids.take(
                lambda producer_id: self._reply(token, new_producer_id_response(producer_id))
            )
        else:
            command = InitProducerId(
                TransactionalId(transactional_id),
                request.transaction_timeout_ms,
                request.producer_id,
                request.producer_epoch,
            )
            self._turns.turn(command, partial(self._answer_init, token), token, now)

    def _init_refusal(self, request: InitProducerIdRequest, token: ReplyToken) -> ErrorCode:
        name = request.transactional_id
        if name is None:
            if not self._authorizer.may_write_idempotently(token):
                return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        elif not self._authorizer.may_write_transactional_id(token, TransactionalId(name)):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if (request.producer_id == UNKNOWN_PRODUCER_ID) != (
            request.producer_epoch == UNKNOWN_EPOCH
        ):
            return ErrorCode.INVALID_REQUEST
        if name is None:
            return ErrorCode.NONE
        if not name:
            return ErrorCode.INVALID_REQUEST
        if not 0 < request.transaction_timeout_ms <= self._settings.transaction_max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return ErrorCode.NONE

    def _answer_init(self, token: ReplyToken, answer: TransactionAnswer) -> None:
        self._reply(token, init_producer_id_response(answer, token.api_version))

    def _add_partitions(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, AddPartitionsToTxnRequest)
        if token.api_version >= BROKERS_SINCE:
            self._add_for_broker(request, token, now)
            return
        transactional_id = TransactionalId(request.v3_and_below_transactional_id)
        named = named_partitions(request.v3_and_below_topics)

        def answer(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            results = topic_results(errors)
            self._reply(token, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

        def added(answered: TransactionAnswer) -> None:
            error_code = known_error(
                answered.error_code, ApiKey.ADD_PARTITIONS_TO_TXN, token.api_version
            )
            answer(dict.fromkeys(named, error_code))

        if not self._authorizer.may_write_transactional_id(token, transactional_id):
            answer(dict.fromkeys(named, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        names = (topic.name for topic in request.v3_and_below_topics)
        writable = self._authorizer.writable_topics(token, names)
        refusals = partition_refusals(named, self._topics, writable, token.api_version)
        if refusals is not None:
            answer(refusals)
            return
        command = AddPartitions(
            transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            frozenset(named),
            0,
        )
        self._turns.turn(command, added, token, now)

    def _add_for_broker(
        self, request: AddPartitionsToTxnRequest, token: ReplyToken, now: Now
    ) -> None:
        if not self._authorizer.may_act_as_broker(token):
            error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._reply(token, AddPartitionsToTxnResponse(error_code=error_code))
            return
        asked = request.transactions
        ids = [TransactionalId(wanted.transactional_id) for wanted in asked]
        results = CombinedResults(ids, lambda response: self._reply(token, response))
        for index, (transactional_id, wanted) in enumerate(zip(ids, asked, strict=True)):
            named = named_partitions(wanted.topics)
            refusals = partition_refusals(named, self._topics, frozenset(), token.api_version)
            if refusals is not None:
                results.add(index, refusals)
            elif wanted.verify_only:
                identity = (wanted.producer_id, wanted.producer_epoch)
                results.add(index, self._turns.verify(transactional_id, *identity, named))
            else:
                command = AddPartitions(
                    transactional_id,
                    wanted.producer_id,
                    wanted.producer_epoch,
                    frozenset(named),
                    CLIENT_TRANSACTION_VERSION,
                )
                self._turns.turn(command, partial(_add_result, results, index, named), token, now)

    def _add_offsets(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, AddOffsetsToTxnRequest)
        transactional_id = TransactionalId(request.transactional_id)

        def added(answer: TransactionAnswer) -> None:
            error_code = known_error(
                answer.error_code, ApiKey.ADD_OFFSETS_TO_TXN, token.api_version
            )
            self._reply(token, AddOffsetsToTxnResponse(error_code=error_code))

        if not self._authorizer.may_write_transactional_id(token, transactional_id):
            added(TransactionAnswer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        if not self._authorizer.may_read_group(token, request.group_id):
            added(TransactionAnswer(ErrorCode.GROUP_AUTHORIZATION_FAILED))
            return
        partition = partition_of(request.group_id, self._settings.offsets_topic_num_partitions)
        command = AddPartitions(
            transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset({TopicPartition(OFFSETS_TOPIC, partition)}),
            0,
        )
        self._turns.turn(command, added, token, now)

    def _end_txn(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, EndTxnRequest)
        transactional_id = TransactionalId(request.transactional_id)

        def ended(answer: TransactionAnswer) -> None:
            self._reply(token, end_txn_response(answer, token.api_version))

        if not self._authorizer.may_write_transactional_id(token, transactional_id):
            ended(TransactionAnswer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        is_new = token.api_version >= EPOCH_IN_ANSWER_SINCE
        command = EndTransaction(
            transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            CLIENT_TRANSACTION_VERSION if is_new else 0,
        )
        self._turns.turn(command, ended, token, now)

    # ------------------------------------------------------------ questions about many

    def _describe(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DescribeTransactionsRequest)
        room = AnswerBudget()
        described = []
        for name in request.transactional_ids:
            found = self._describe_one(TransactionalId(name), token) if room else None
            if found is None or not room.takes(description_bytes(found)):
                found = refuse_describe_transaction(
                    TransactionalId(name), ErrorCode.INVALID_REQUEST
                )
            described.append(found)
        self._reply(token, DescribeTransactionsResponse(transaction_states=described))

    def _describe_one(
        self, transactional_id: TransactionalId, token: ReplyToken
    ) -> DescribedTransaction:
        if not self._authorizer.may_describe_transactional_id(token, transactional_id):
            error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return refuse_describe_transaction(transactional_id, error_code)
        error_code = self._turns.absence(transactional_id)
        if error_code is not ErrorCode.NONE:
            return refuse_describe_transaction(transactional_id, error_code)
        transaction = self._turns.transaction(transactional_id)
        if transaction is None:
            error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return refuse_describe_transaction(transactional_id, error_code)
        described = describe_transaction(transaction)
        names = [topic.topic for topic in described.topics]
        shown = self._authorizer.describable_topics(token, names)
        described.topics = [topic for topic in described.topics if topic.topic in shown]
        return described

    def _list(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, ListTransactionsRequest)
        if self._turns.is_loading:
            error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            self._reply(token, ListTransactionsResponse(error_code=error_code))
            return
        if not is_pattern_valid(request):
            error_code = ErrorCode.INVALID_REGULAR_EXPRESSION
            self._reply(token, ListTransactionsResponse(error_code=error_code))
            return
        may_describe = self._authorizer.may_describe_transactional_id
        listed = [
            found
            for found in list_transactions(self._turns.transactions(), request, now)
            if may_describe(token, TransactionalId(found.transactional_id))
        ]
        response = ListTransactionsResponse(
            unknown_state_filters=unknown_states(request), transaction_states=listed
        )
        self._reply(token, response)


def _add_result(
    results: CombinedResults, index: int, named: Sequence[TopicPartition], answer: TransactionAnswer
) -> None:
    results.add(index, dict.fromkeys(named, answer.error_code))
