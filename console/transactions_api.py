"""Transactions API: the transactions that are open, as their coordinator knows them.

    GET /api/transactions[?limit=N]     the oldest first
The list of kafka-transactions has the same; it does not show who the producer is.
"""

from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from console.answers import answer_json, refusal, whole_number
from transactions.metadata import TIMEOUT_NEVER
from transactions.transaction import OpenTransaction

TRANSACTIONS_DEFAULT: Final = 1_000
TRANSACTIONS_MAX: Final = 100_000

TRANSACTION_PARTITIONS_MAX: Final = 100
"""Of one transaction; `partitions_total` counts the others too."""


class TransactionsApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/transactions", self._show)]

    async def _show(self, request: web.Request) -> web.Response:
        try:
            limit = whole_number(request, "limit", TRANSACTIONS_DEFAULT, TRANSACTIONS_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        found = self._daemon.transactions.open_transactions()
        found.sort(key=lambda each: each.started_at_ms)
        shown = [_transaction(each) for each in found[:limit]]
        content: dict[str, object] = {
            "at_ms": self._daemon.clock.now().wall_ms,
            "transactional_ids": self._daemon.transactions.transactional_ids,
            "transactions_total": len(found),
            "transactions": shown,
        }
        return await answer_json(content, rows=len(shown))


def _transaction(transaction: OpenTransaction) -> dict[str, object]:
    never = transaction.timeout_ms == TIMEOUT_NEVER
    partitions = sorted(transaction.partitions)
    return {
        "transactional_id": transaction.transactional_id,
        "state": transaction.state.wire_name,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "client_id": transaction.client_id or None,
        "host": transaction.client_host or None,
        "started_at_ms": transaction.started_at_ms,
        "timeout_at_ms": None if never else transaction.started_at_ms + transaction.timeout_ms,
        "partitions": [
            f"{topic}-{index}" for topic, index in partitions[:TRANSACTION_PARTITIONS_MAX]
        ],
        "partitions_total": len(partitions),
    }
