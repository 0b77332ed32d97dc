"""Status topic: writes each change of a group's status exactly once.

A record is JSON, its key the group; it carries the stream's id, the batch and a number within the
batch. Before a batch writes its first record it saves where the topic ends. A repeated batch reads
from there on, and writes only the missing records: the job has one writer at a time, and a repeated
batch has the same records. So consumers need nothing special, and no transaction is needed, which
would make them read aborted records.

A group's records are in one partition and are stored in the order in which they were sent (the
producer is idempotent). If one is there, those before it are or were there, although the cleaner or
retention may have removed them since.

Two gaps remain. A request in flight when its writer was killed could arrive after the next start
has read the topic's end, many seconds later. And if the topic is deleted during a batch, only the
records written after that are in it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.read.brokers import Broker
from pipeline.stream.state import State
from seams.operator_error import WrongInput

RECORD_VERSION: Final = 1

StatusChange = Mapping[str, str | int | None]


class NoTopic(WrongInput):
    """The verdicts have nowhere to go; the message is for people."""


class StatusTopic:
    """Where the changes of one stream go."""

    def __init__(self, broker: Broker, topic: str, stream_id: str, state: State) -> None:
        """Raises NoTopic, NoBroker."""
        if not broker.extents(topic):
            raise NoTopic(f"{broker.bootstrap} has no topic {topic}: create it first")
        self._broker = broker
        self._topic = topic
        self._stream_id = stream_id
        self._state = state

    def write(self, batch: int, changes: Sequence[StatusChange]) -> None:
        """Those of the batch that are not there. Raises NoBroker."""
        if not changes:
            return
        there: dict[bytes, int] = {}
        ends = self._state.topic_ends(batch)
        if ends is None:
            extents = self._broker.extents(self._topic)
            ends = {partition: extent.end for partition, extent in extents.items()}
            self._state.note_topic_ends(batch, ends)
        else:
            there = self._written(batch, ends)
        marks = {"v": RECORD_VERSION, "stream": self._stream_id, "batch": batch}
        records = [
            (str(change["group"]).encode(), json.dumps({**change, **marks, "sequence": number}))
            for number, change in enumerate(changes)
        ]
        self._broker.write(
            self._topic,
            [
                (key, value.encode())
                for number, (key, value) in enumerate(records)
                if number > there.get(key, -1)
            ],
        )

    def _written(self, batch: int, begins: Mapping[int, int]) -> dict[bytes, int]:
        """By key, the number of its last record of this batch."""
        found: dict[bytes, int] = {}
        for key, value in self._broker.tail(self._topic, begins):
            try:
                said: object = json.loads(value)
            except ValueError:
                continue  # not one of ours
            match said:
                case {"stream": self._stream_id, "batch": int(of), "sequence": int(number)}:
                    if of == batch:
                        found[key] = max(number, found.get(key, -1))
        return found
