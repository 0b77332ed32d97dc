"""Random steps: a scenario of the consumer group protocol that is drawn from a seed.

The choices depend on the seed and on the answers only, so that two brokers that answer alike are
asked alike. Nothing depends on time: no timeout of the group runs out.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.names import ErrorCode, TopicName
from tests.compare.client import Client
from tests.compare.scenarios.consumer_migration import subscribed
from tests.compare.script import Script

STEPS: Final = 30

Owned = dict[str, list[int]]


class Member:
    """A client, what it was assigned, and what it would say that it owns."""

    def __init__(self, client: Client, instance_id: str | None) -> None:
        self.client = client
        self.instance_id = instance_id
        self.assigned: Owned = {}
        self.owned: Owned = {}

    @property
    def name(self) -> str:
        return self.client.name


class RandomSteps:
    """`mixed`: with members of the classic protocol."""

    def __init__(self, script: Script, seed: int, *, mixed: bool) -> None:
        self.script = script
        self.random = random.Random(seed)
        # The order of topics in Kafka's maps depends on their ids: with `range` it does not matter.
        self.assignor = self.random.choice(("uniform", "range"))
        names = ("t",) if self.assignor == "uniform" else ("t", "u")
        self.topics = [
            script.subscribed_topic(name, partitions=self.random.randint(1, 5)) for name in names
        ]
        self.sizes = {topic: len(script.topic_metadata(topic).partitions) for topic in self.topics}
        self.consumers = [
            Member(script.client(name), f"i{name}" if name in "de" else None) for name in "abcde"
        ]
        self.classics = [Member(script.client(name), None) for name in "xy"] if mixed else []

    def play(self) -> None:
        self._join(self.consumers[0])  # what waits at a group that is not there cannot be awaited
        for _ in range(STEPS):
            if self.classics and self.random.random() < 0.4:
                self._classic_step(self.random.choice(self.classics))
            else:
                self._consumer_step(self.random.choice(self.consumers))
        self.consumers[0].client.describe_consumers()

    # ------------------------------------------------------------ steps of consumers

    def _consumer_step(self, member: Member) -> None:
        if member.client.generation_id <= 0 and self.random.random() < 0.7:
            self._join(member)
            return
        steps: Sequence[tuple[int, Callable[[Member], None]]] = (
            (30, self._acknowledge),
            (10, self._beat),
            (8, self._revoke_some),
            (6, self._beat_of_another_epoch),
            (6, self._join),
            (8, self._leave),
            (4, self._go_for_a_while),
            (6, self._change_topics),
            (8, self._commit),
            (3, self._fetch),
            (4, self._describe),
            (2, self._grow),
            (2, self._full),
        )
        (step,) = self.random.choices([s for _, s in steps], [weight for weight, _ in steps])
        step(member)

    def _hear(self, member: Member, answer: object) -> None:
        if not isinstance(answer, ConsumerGroupHeartbeatResponse):
            return
        if answer.error_code is not ErrorCode.NONE:
            if answer.error_code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                member.assigned, member.owned = {}, {}
            return
        if answer.assignment is not None:
            assigned = {
                self.script.topics[part.topic_id]: sorted(part.partitions)
                for part in answer.assignment.topic_partitions
            }
            member.assigned = dict(sorted(assigned.items()))

    def _beat_with(self, member: Member, **fields: object) -> None:
        fields.setdefault("instance_id", member.instance_id)
        fields.setdefault("member_id", member.name)
        self._hear(member, member.client.consumer_beat(**fields))

    def _join(self, member: Member) -> None:
        member.assigned, member.owned = {}, {}
        # Not without topics: Kafka may then assign as if all members had the same (differences.md).
        answer = member.client.consumer_join(
            *(self._some_topics() or self.topics),
            member_id=member.name,
            instance_id=member.instance_id,
            assignor=self.assignor,
        )
        self._hear(member, answer)

    def _acknowledge(self, member: Member) -> None:
        member.owned = {topic: list(parts) for topic, parts in member.assigned.items()}
        self._beat_with(member, owned=member.owned)

    def _beat(self, member: Member) -> None:
        self._beat_with(member)

    def _revoke_some(self, member: Member) -> None:
        every = [(topic, part) for topic, parts in member.owned.items() for part in parts]
        if every:
            topic, part = self.random.choice(every)
            member.owned[topic] = [other for other in member.owned[topic] if other != part]
        self._beat_with(member, owned=member.owned)

    def _beat_of_another_epoch(self, member: Member) -> None:
        epoch = max(member.client.generation_id, 1) + self.random.choice((-2, -1, -1, 1))
        owned = self.random.choice((None, member.owned, member.assigned, {}))
        self._beat_with(member, epoch=max(epoch, 1), owned=owned)

    def _leave(self, member: Member) -> None:
        self._beat_with(member, epoch=-1)
        member.assigned, member.owned = {}, {}

    def _go_for_a_while(self, member: Member) -> None:
        self._beat_with(member, epoch=-2)
        member.assigned, member.owned = {}, {}

    def _change_topics(self, member: Member) -> None:
        self._beat_with(member, topics=self._some_topics())

    def _full(self, member: Member) -> None:
        self._beat_with(
            member, topics=self._some_topics(), owned=member.owned, rebalance_ms=300_000
        )

    def _commit(self, member: Member) -> None:
        epoch = member.client.generation_id + self.random.choice((0, 0, 0, -1, -2, 1))
        topic = self.random.choice(self.topics)
        offsets = {
            self.random.randrange(self.sizes[topic]): self.random.randrange(100)
            for _ in range(self.random.randint(1, 2))
        }
        member.client.commit(topic, offsets, member_id=member.name, generation_id=max(epoch, -1))

    def _fetch(self, member: Member) -> None:
        epoch = member.client.generation_id + self.random.choice((0, 0, -1, 1))
        partitions = range(self.sizes[self.topics[0]])
        member.client.fetch_offsets(
            {self.topics[0]: partitions}, member_id=member.name, member_epoch=max(epoch, -1)
        )

    def _describe(self, member: Member) -> None:
        member.client.describe_consumers()

    def _grow(self, member: Member) -> None:
        topic = self.random.choice(self.topics)
        self.sizes[topic] += 1
        self.script.grow_topic(topic, self.sizes[topic])
        self._beat(member)

    def _some_topics(self) -> Sequence[TopicName]:
        if self.random.random() < 0.1:
            return ()
        return self.random.sample(self.topics, self.random.randint(1, len(self.topics)))

    # ------------------------------------------------------------ steps of classic members

    def _classic_step(self, member: Member) -> None:
        if member.client.waiting is not None:
            return
        if member.client.generation_id <= 0 and self.random.random() < 0.8:
            self._classic_join(member)
            return
        steps: Sequence[tuple[int, Callable[[Member], None]]] = (
            (30, self._classic_join),
            (25, self._classic_sync),
            (25, self._classic_beat),
            (5, self._classic_leave),
            (8, self._commit),
            (3, self._describe_classic),
        )
        (step,) = self.random.choices([s for _, s in steps], [weight for weight, _ in steps])
        step(member)

    def _classic_join(self, member: Member) -> None:
        owned = {topic: parts for topic, parts in member.assigned.items() if parts}
        answer = member.client.join(
            member_id=member.name,
            protocols=((self.assignor, subscribed(*self._some_topics(), owned=owned)),),
            may_wait=True,
        )
        if isinstance(answer, JoinGroupResponse) and answer.error_code is ErrorCode.NONE:
            member.client.generation_id = answer.generation_id

    def _classic_sync(self, member: Member) -> None:
        member.client.sync(member_id=member.name, protocol_name=self.assignor, may_wait=True)

    def _classic_beat(self, member: Member) -> None:
        member.client.beat(member_id=member.name)

    def _classic_leave(self, member: Member) -> None:
        member.client.leave((member.name, None))

    def _describe_classic(self, member: Member) -> None:
        member.client.describe()
