"""Input of the pipeline's benchmarks: segments with one day of commits, rebalances and lag samples.

`GROUPS` groups consume `PARTITIONS` partitions each and commit them in turn. Each group rebalances
once per hour, and some offsets are rewound. A few encoded batches are written repeatedly, each time
with the next offsets, so that ten million commits are written within seconds.
"""

from pathlib import Path

from coordinator.group import CommittedOffset
from coordinator.records import group_metadata_record, offset_commit_key, offset_commit_value
from coordinator.stored_records import StoredMember
from history.lag.records import Sample, encode_sample
from history.lag.window import SampledCommit
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from protocol.names import LAG_TOPIC, OFFSETS_TOPIC, GroupId, MemberId, TopicName
from storage.api import Record
from storage.batch.record_batch import encode_batch, with_offsets

DAY_MS = 86_400_000
START_MS = 1_780_000_000_000 // DAY_MS * DAY_MS
LOG_PARTITIONS = 8
BATCH = 100
GROUPS = 100
PARTITIONS = 10
MEMBERS = 5
SAMPLE_EVERY_MS = 600_000
TOPIC = TopicName("orders")

_MINUTES = 1_440
_BACK_EVERY = 360  # batches
_HOURS = 24


def make_commits(folder: Path, commits: int) -> None:
    """One day of commits; those of one group are in one log partition."""
    batches = max(1, commits // BATCH // LOG_PARTITIONS)
    distinct = min(batches, _MINUTES)
    for number in range(LOG_PARTITIONS):
        groups = [g for g in range(GROUPS) if g % LOG_PARTITIONS == number]
        made = [
            encode_batch(
                [
                    _commit(groups[(b + n // PARTITIONS) % len(groups)], n % PARTITIONS, b)
                    for n in range(BATCH)
                ],
                0,
                START_MS + b * (DAY_MS // distinct),
            )
            for b in range(distinct)
        ]
        generations = [
            encode_batch([_generation(g, hour) for g in groups], 0, START_MS + hour * DAY_MS // 24)
            for hour in range(_HOURS)
        ]
        end, hour = 0, 0
        with _segment(folder, OFFSETS_TOPIC, number).open("wb") as file:
            for b in range(batches):
                if b * _HOURS // batches == hour < _HOURS:
                    file.write(with_offsets(generations[hour], end, 0))
                    end, hour = end + len(groups), hour + 1
                file.write(with_offsets(made[b * distinct // batches], end, 0))
                end += BATCH


def make_samples(folder: Path, every_ms: int = SAMPLE_EVERY_MS) -> None:
    """A sample of each group so often."""
    end = 0
    with _segment(folder, LAG_TOPIC, 0).open("wb") as file:
        for at in range(START_MS, START_MS + DAY_MS, every_ms):
            done = (at - START_MS) // 1_000
            records = [
                Record(*encode_sample(_sample(group, at, done, group % 7 * (done % 500))))
                for group in range(GROUPS)
            ]
            file.write(encode_batch(records, end, at))
            end += len(records)


def _segment(folder: Path, topic: str, partition: int) -> Path:
    where = folder / f"{topic}-{partition}"
    where.mkdir(parents=True)
    return where / f"{0:020}.log"


def _commit(group: int, partition: int, batch: int) -> Record:
    offset = batch - 30 if batch % _BACK_EVERY == _BACK_EVERY - 1 else batch
    key = offset_commit_key(GroupId(f"group-{group}"), TOPIC, partition)
    return Record(key, offset_commit_value(CommittedOffset(offset, -1, "", START_MS), 4))


def _generation(group: int, hour: int) -> Record:
    """The members exchange their partitions each hour."""
    ids = [f"app-{group}-{n}" for n in range(MEMBERS)]
    share = PARTITIONS // MEMBERS
    members = []
    for n, name in enumerate(ids):
        first = (n + hour) % MEMBERS * share
        owned = TopicPartitions(TOPIC, range(first, first + share))
        members.append(
            StoredMember(
                MemberId(name), None, f"client-{group}", "/10.0.0.1", 300_000, 45_000,
                write_subscription(ConsumerProtocolSubscription(topics=[TOPIC])),
                write_assignment(ConsumerProtocolAssignment(assigned_partitions=[owned])),
            )
        )  # fmt: skip
    return group_metadata_record(
        GroupId(f"group-{group}"),
        protocol_type="consumer",
        generation_id=hour + 1,
        protocol_name="range",
        leader_id=ids[0],
        state_since_ms=START_MS,
        members=members,
    )


def _sample(group: int, at_ms: int, done: int, lag: int) -> Sample:
    commits = {partition: (SampledCommit(at_ms, done, lag),) for partition in range(PARTITIONS)}
    return Sample(f"group-{group}", TOPIC, at_ms, whole=False, partitions=commits)
