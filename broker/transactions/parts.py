"""Parts for transactions: makes their coordinator and the watch of producers, for build.py.

`Neighbours` are the parts of the daemon that the transaction coordinator calls, and that call it.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from broker.lag.open_partitions import open_partitions
from broker.lag.transaction_watch import TransactionWatch
from broker.loop.clock import SystemClock
from broker.loop.soon import TickSoon
from broker.observe.observer import Observer
from broker.partitions.transaction_topic import TransactionTopic
from broker.transactions.offsets_producers import producers_of
from broker.transactions.partitions import AllPartitions, GroupVerification
from config.keys import Config
from config.settings import transaction_settings
from coordinator.coordinator import GroupCoordinator
from protocol.messages import Response
from seams.reply_token import ReplyToken
from storage.boot_record import BootRecord
from topics.data_plane import DataPlane
from transactions.coordinator import TransactionCoordinator


class Neighbours(NamedTuple):
    data_plane: DataPlane
    groups: GroupCoordinator
    topic: TransactionTopic
    verification: GroupVerification


class EventLoop(NamedTuple):
    """`ticked` is called when deadlines may have changed."""

    loop: asyncio.AbstractEventLoop
    clock: SystemClock
    ticked: Callable[[], None]


def make_transactions(
    config: Config,
    neighbours: Neighbours,
    reply: Callable[[ReplyToken, Response], None],
    observe: Observer,
    boot: BootRecord,
    event_loop: EventLoop,
) -> TransactionCoordinator:
    data_plane, groups, topic, verification = neighbours
    wake = TickSoon(*event_loop)
    partitions = AllPartitions(data_plane.markers, groups, observe)
    data_plane.transaction_admin.partitions = partitions
    data_plane.transaction_admin.producers_of = partial(producers_of, groups)
    wake.part = coordinator = TransactionCoordinator(
        transaction_settings(config),
        partitions=partitions,
        producer_ids=data_plane.producer_ids,
        topics=data_plane.registry,
        reply=reply,
        observe=observe,
        shard_failed=topic.ownership.shard_failed,
        wake=wake,
        authorizer=data_plane.authorizer,
        transaction_version=lambda: config.rollcall_transaction_version,
        # With flush=os nobody was promised that records outlive a power failure.
        unsynced_data_lost=boot.lost and config.rollcall_flush == "commit",
    )
    verification.coordinator = coordinator
    verification.is_enabled = lambda: data_plane.verifies_transactions
    data_plane.set_verifier(coordinator)
    return coordinator


def watch_of(
    config: Config,
    data_plane: DataPlane,
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    observe: Observer,
) -> TransactionWatch:
    return TransactionWatch(
        partial(open_partitions, data_plane.registry, groups),
        transactions.open_transactions,
        config.rollcall_trouble_open_transaction_ms,
        observe,
    )
