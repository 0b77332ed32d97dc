"""How does each change of a verdict come into a topic once, though the job was killed meanwhile?

A record is JSON, its key the group; it carries the stream's id, the batch and a number within the
batch. Before a batch writes its first record it notes where the topic ends. A batch that is done
again reads from there on, and writes only those of its records that are not there yet: the job has
one writer at a time, and a batch's records are the same whenever it is done.

What is left is a request that was under way when its writer was killed: it would have to arrive
after the next start has read the topic's end, many seconds later.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.brokers import Broker
from pipeline.stream_state import State

VERSION: Final = 1

Verdict = Mapping[str, str | int | None]


class VerdictTopic:
    """Where the changes of one stream go."""

    def __init__(self, broker: Broker, topic: str, stream_id: str, state: State) -> None:
        self._broker = broker
        self._topic = topic
        self._stream_id = stream_id
        self._state = state

    def write(self, batch: int, verdicts: Sequence[Verdict]) -> None:
        """Those of the batch that are not there. Raises NoBroker."""
        if not verdicts:
            return
        there: set[int] = set()
        ends = self._state.topic_ends(batch)
        if ends is None:
            extents = self._broker.extents(self._topic)
            ends = {partition: extent.end for partition, extent in extents.items()}
            self._state.note_topic_ends(batch, ends)
        else:
            there = self._written(batch, ends)
        marks = {"v": VERSION, "stream": self._stream_id, "batch": batch}
        records = [
            (str(verdict["group"]).encode(), json.dumps({**verdict, **marks, "sequence": number}))
            for number, verdict in enumerate(verdicts)
            if number not in there
        ]
        self._broker.write(self._topic, [(key, value.encode()) for key, value in records])

    def _written(self, batch: int, begins: Mapping[int, int]) -> set[int]:
        found: set[int] = set()
        for _, value in self._broker.tail(self._topic, begins):
            try:
                said: object = json.loads(value)
            except ValueError:
                continue  # somebody else's
            match said:
                case {"stream": self._stream_id, "batch": int(of), "sequence": int(number)}:
                    if of == batch:
                        found.add(number)
        return found
