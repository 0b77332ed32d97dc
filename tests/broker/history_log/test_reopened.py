"""History writer: reads the tails again while the daemon serves, as after a full disk."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from broker.history_log.reader import ENTRIES_PER_SLICE
from history.causes import Cause
from history.entries import HistoryEntry, RebalanceBegunEntry
from history.index import HistoryIndex
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from seams.now import Now
from tests.broker.node import Node

NOW = Now(5, 1_700_000_000_000)
ENTRIES = 3 * ENTRIES_PER_SLICE + 1


async def test_others_run_between_slices_of_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        for number in range(ENTRIES):
            entry = RebalanceBegunEntry("g", NOW.wall_ms + number, Cause.MEMBER_JOINED)
            history.record_entry(entry, NOW)
        client = await node.client()
        await client.call(CreateTopicsRequest((CreatableTopic("t", 1, 1),)))  # a flush
        client.close()

        passes = 0
        applied: Counter[int] = Counter()
        apply = HistoryIndex.apply

        def count_and_apply(index: HistoryIndex, event: HistoryEntry) -> None:
            applied[passes] += 1
            if applied.total() < ENTRIES:
                assert history.index.running("g") is None, "half of it is in use"
            apply(index, event)

        async def count_passes() -> None:
            nonlocal passes
            while True:
                passes += 1
                await asyncio.sleep(0)

        monkeypatch.setattr(HistoryIndex, "apply", count_and_apply)
        counting = asyncio.create_task(count_passes())
        await history.reopen_in_slices()
        counting.cancel()

        assert applied.total() == ENTRIES
        assert max(applied.values()) == ENTRIES_PER_SLICE
        running = history.index.running("g")
        assert running is not None
        assert running.began_at_ms == NOW.wall_ms + ENTRIES - 1
