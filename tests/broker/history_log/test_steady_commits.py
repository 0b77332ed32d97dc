"""Steady commits on a whole daemon: shown while they are gathered, written at a stop."""

from pathlib import Path

from broker.history_log.view import HistoryView
from history.entries import OffsetsMovedEntry
from history.recording.steady_commits import SEPARATE_COMMITS
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.broker.history_log.test_damaged_history import TOPIC, commit
from tests.broker.node import Node


async def moves_of_g(node: Node) -> list[tuple[int | None, int | None, int | None]]:
    """Newest first: the event's offset, its count, and where it moved the partition to."""
    assert node.daemon.history is not None
    view = HistoryView(node.daemon.history, node.daemon.coordinator, node.daemon.clock)
    found = await view.events("g", 100, (OffsetsMovedEntry,))
    return [
        (offset, entry.commits, entry.changes[0].new)
        for offset, entry in found
        if isinstance(entry, OffsetsMovedEntry)
    ]


async def test_steady_commits_are_shown_before_they_are_written_and_written_at_a_stop(
    tmp_path: Path,
) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await client.call(CreateTopicsRequest((CreatableTopic(TOPIC, 1, 1),)))
        for n in range(20):
            await commit(client, n)
        client.close()
        await node.daemon.lag.round()  # nothing is due yet
        (collected, *alone) = await moves_of_g(node)
        assert collected == (None, 20 - SEPARATE_COMMITS, 19)
        assert [(count, new) for _, count, new in alone] == [(None, 2), (None, 1), (None, 0)]
    async with Node(tmp_path) as node:
        offset, *rest = (await moves_of_g(node))[0]
        assert offset is not None
        assert rest == [20 - SEPARATE_COMMITS, 19]
        assert len(await moves_of_g(node)) == SEPARATE_COMMITS + 1


async def test_what_is_appended_after_the_journal_was_reopened_is_read(tmp_path: Path) -> None:
    """A topic that came since the start does not leave the readers with the logs of before."""
    async with Node(tmp_path) as node:
        client = await node.client()
        await client.call(CreateTopicsRequest((CreatableTopic(TOPIC, 1, 1),)))
        await commit(client, 5)
        assert node.daemon.history is not None
        await node.daemon.history.reopen_in_slices()  # as after a full disk
        await commit(client, 3)
        await commit(client, 1)
        client.close()
        assert [new for _, _, new in await moves_of_g(node)] == [1, 3, 5]
