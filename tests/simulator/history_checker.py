"""History checker: the history and the offsets log agree after every crash.

The offsets log and the history are read from the disk: each generation that was stored
with its members has been told exactly once, in the flush that stored it, and none has been told
that was not stored. And each generation that a client got in a JoinGroup answer came of
exactly one rebalance.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from coordinator.records import (
    GROUP_METADATA,
    read_group_key,
    read_group_metadata_value,
    record_type,
)
from history.encoding import decode
from history.entries import AssignmentReceivedEntry, HistoryEntry
from history.story import GroupStory
from protocol.names import OFFSETS_TOPIC, GenerationId, GroupId
from storage.api import StoredRecord, TopicPartition
from storage.batch.record_batch import stored_records
from tests.simulator.node import HISTORY, Node
from tests.simulator.sim import Broken

Generation = tuple[GroupId, GenerationId]


def check_history(
    node: Node, answered: Collection[Generation], cleaned: Collection[Generation]
) -> None:
    """`answered`: the generations that clients got; `cleaned`: those that were stored when
    the cleaner came. Raises Broken."""
    events = list(_events(node))
    assigned = Counter(
        (event.group_id, event.generation)
        for event in events
        if isinstance(event, AssignmentReceivedEntry)
    )
    partitions = range(node.settings.offsets_topic_num_partitions)
    stored = {
        generation for partition in partitions for generation in stored_generations(node, partition)
    }
    _demand(stored <= set(assigned), f"stored {stored - set(assigned)}, and not told")
    unstored = set(assigned) - stored - set(cleaned)
    _demand(not unstored, f"told {unstored}, and not stored")
    _demand(set(assigned.values()) <= {1}, f"told more than once: {assigned}")

    rebalances = _rebalances(node, events)
    # Without records of generations a number may be given twice, as with Kafka.
    once = set(rebalances.values()) <= {1} or not node.settings.generation_records
    _demand(once, f"two rebalances for one generation: {rebalances}")
    missed = [generation for generation in answered if generation not in rebalances]
    _demand(not missed, f"no rebalance led to {missed}")


def _rebalances(node: Node, events: list[HistoryEntry]) -> Counter[Generation]:
    """How many rebalances each generation came of: those on the disk, and what is not there yet."""
    stories: dict[str, GroupStory] = {}
    for event in events:
        stories.setdefault(event.group_id, GroupStory()).apply(event)
    found: Counter[Generation] = Counter()
    for group_id, story in stories.items():
        kept = list(story.done)
        fresh = [
            rebalance
            for rebalance in node.history.index.rebalances(group_id)
            if rebalance not in kept
        ]
        for rebalance in kept + fresh:
            # One that a crash cut off may end in an older generation: the one that was loaded.
            if (
                rebalance.generation_after is not None
                and rebalance.generation_after > rebalance.generation_before
            ):
                found[GroupId(group_id), GenerationId(rebalance.generation_after)] += 1
    return found


def _events(node: Node) -> Iterator[HistoryEntry]:
    for record in _records(node, HISTORY):
        event = decode(record.value)
        assert event is not None
        yield event


def stored_generations(node: Node, partition: int) -> Iterator[Generation]:
    """What the log has by now; the cleaner takes a record that a newer one has replaced."""
    for record in _records(node, TopicPartition(OFFSETS_TOPIC, partition)):
        if record_type(record.key) == GROUP_METADATA and record.value is not None:
            assert record.key is not None
            group = read_group_metadata_value(record.value)
            if group.members:
                yield read_group_key(record.key), group.generation_id


def _records(node: Node, key: TopicPartition) -> Iterator[StoredRecord]:
    view = node.store.partitions()[key]
    for batch in view.batches(view.log_start_offset):
        yield from stored_records(batch)


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
