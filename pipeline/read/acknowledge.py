"""Acknowledgement: tells the daemon's cleaner which records were landed.

The pipeline commits, like any consumer: the group `rollcall-pipeline` commits the start of the next
run on the partitions of `__consumer_offsets`. Any tool shows the group, and its lag is the lag of
the pipeline. A real Kafka accepts the commit as well, but its cleaner ignores it. docs/pipeline.md
describes what the daemon's cleaner does with it.
"""

from typing import Final

from pipeline.ingest import Ingested
from pipeline.read.brokers import Broker
from protocol.names import OFFSETS_TOPIC

ACKNOWLEDGING_GROUP: Final = "rollcall-pipeline"


def acknowledge(broker: Broker, done: Ingested) -> None:
    """After it was landed. Raises NoBroker."""
    ends = {partition: end for partition, end in done.ends.get(OFFSETS_TOPIC, {}).items() if end}
    if ends:
        broker.commit(ACKNOWLEDGING_GROUP, OFFSETS_TOPIC, ends)
