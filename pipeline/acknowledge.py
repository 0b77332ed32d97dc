"""How does the daemon learn what was landed, so that its cleaner need not wait any longer?

By a commit, as any consumer would say it: the group `rollcall-pipeline` commits on the partitions
of `__consumer_offsets` itself where the next run begins. Any tool shows it, its lag is how far the
pipeline is behind, and a real Kafka takes it as well (its cleaner does not ask). docs/pipeline.md
says how the daemon's cleaner goes by it.
"""

from typing import Final

from pipeline.brokers import Broker
from pipeline.ingest import Ingested
from pipeline.tables import OFFSETS_TOPIC

GROUP: Final = "rollcall-pipeline"


def acknowledge(broker: Broker, done: Ingested) -> None:
    """After it was landed. Raises NoBroker."""
    ends = {partition: end for partition, end in done.ends.get(OFFSETS_TOPIC, {}).items() if end}
    if ends:
        broker.commit(GROUP, OFFSETS_TOPIC, ends)
