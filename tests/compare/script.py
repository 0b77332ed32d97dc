"""Script of a scenario: its steps, and the transcript that is compared.

A scenario is a function of a `Script`. It opens clients, and each client says things; whatever any
client is answered is written down, in the order that follows from the protocol and not from the
speed of a machine:

- `ask` sends and waits for the answer, however long it takes;
- `send` is for a request that may be parked. It returns once the broker has certainly decided about
  it: either the answer is there, or the transcript says that the client waits;
- after each step the answers that other clients got from it are written down as well, by client;
- `answers(a, b)` waits for answers that only the passing of time brings;
- `until(...)` waits for what no answer reports, by asking repeatedly.

No step sleeps for a guessed time, and no outcome depends on who was faster: see `_barrier`.
`pause_ms` is for what must have happened, or must not, after a time that the broker was given. The
words that members use (join, sync, ...) are in `client.py`; what is written down in `render.py`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from protocol.codec import decode_response
from protocol.messages import RESPONSES, Request, Response
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.describe_producers import DescribeProducersResponse
from protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.list_config_resources import ListConfigResourcesResponse
from protocol.messages.list_groups import ListGroupsResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.list_transactions import ListTransactionsResponse
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, GroupId, MemberId, TopicId, TopicName
from tests.compare.client import Client, Waiting
from tests.compare.render import Names, render
from tests.compare.servers import RESTARTED, TRANSACTIONAL, Restartable
from tests.compare.warm_up import until_serving
from tests.compare.wire import ANSWER_WITHIN_S, Closed, Wire

AnswerT = TypeVar("AnswerT")

CONSUMER_CHAPTERS: Final = "consumer_"
"""The chapters of this beginning are about the consumer group protocol."""

TRANSACTION_CHAPTERS: Final = "transactions_"
"""The chapters of this beginning are about transactions."""

HERE: Final = "~"
"""Stands for the scenario's name, with which its group and topic names begin."""

_ENDING: Final = frozenset({"PrepareCommit", "PrepareAbort"})

_NOT_ABORTED: Final = _ENDING | {"Ongoing"}

NOTHING: Final = "(nothing)"
"""For an answer that did not come: a broker that does this has a fault, and nothing to teach."""


class Script:
    """One run of one scenario against the broker at a port; `transcript` is what came of it."""

    def __init__(
        self,
        name: str,
        port: int,
        restart: Callable[[], None] | None = None,
        *,
        transactions: bool = False,
        numbers_epochs: bool = False,
    ) -> None:
        """`transactions`: after a restart, wait for the transaction coordinator as well.

        `numbers_epochs`: the broker may have been restarted before.
        """
        self.name = name
        self._restart = restart
        self._transactions = transactions
        self.transcript: list[str] = []
        self._port = port
        self.topics: dict[TopicId, str] = {}
        self.given_ms = int(time.time() * 1000)
        self._names = Names(self.topics, self.given_ms, numbers_epochs=numbers_epochs)
        self._clients: dict[str, Client] = {}
        self._awaited_topics = 0
        self._control = Wire(port, "control")

    # What scenarios are made of

    given_ms: int
    """The timestamp of records in a transaction: a marker has the present time, and what is much
    older is in another segment."""

    @property
    def group(self) -> GroupId:
        return GroupId(self.name)

    def client(
        self,
        name: str,
        client_id: str | None = "same as the name",
        *,
        host: str = "127.0.0.1",
    ) -> Client:
        """Open a connection. The name is the client id too, unless another one is given."""
        if client_id == "same as the name":
            client_id = name
        client = Client(self, name, Wire(self._port, client_id, host))
        self._clients[name] = client
        return client

    def known_client(self, name: str) -> Client:
        """The client of this name; it is opened when it is first asked for."""
        return self._clients.get(name) or self.client(name)

    def be_given(self, given_ms: int) -> None:
        """Use another script's time of records."""
        self.given_ms = self._names.given_ms = given_ms

    def clients(self, *names: str) -> Sequence[Client]:
        return [self.client(name) for name in names]

    def note(self, text: str) -> None:
        self.transcript.append(f"# {text}")

    def answers(self, *clients: Client) -> None:
        """Wait for answers that come from a timer, not from a step."""
        self.note("time passes")
        for client in clients:
            self._hear(client)
        self._hear_others(None)

    def pause_ms(self, duration_ms: int) -> None:
        """Let time pass for the broker's timers; for limits of its own, with a wide margin."""
        self.note(f"{duration_ms} ms pass")
        time.sleep(duration_ms / 1000)

    def restart_broker(self) -> None:
        """End the broker, start it again, and connect all clients again."""
        assert self._restart is not None
        self.note("the broker restarts")
        self._control.close()
        self._restart()
        until_serving(self._port, transactions=self._transactions)
        self._control = Wire(self._port, "control")
        for client in self._clients.values():
            self._connect_again(client)

    def until(self, what: str, question: Callable[[], bool]) -> None:
        """Ask until the answer is yes; not a line of the asking is written down."""
        self.note(f"until {what}")
        self._poll(what, question)
        self._hear_others(None)

    def until_state(self, state: str, group_id: str | None = None) -> None:
        group_id = group_id or self.group
        self.until(f"the group is {state}", lambda: self.state_of(group_id) == state)

    # Side questions on the control connection; they leave no trace in the transcript

    def state_of(self, group_id: str | None = None) -> str:
        return self.describe(group_id).groups[0].group_state

    def describe(self, group_id: str | None = None) -> DescribeGroupsResponse:
        request = DescribeGroupsRequest((GroupId(group_id or self.group),))
        return self.ask_aside(request, 4, DescribeGroupsResponse)

    def ask_aside(self, request: Request, version: int, expected: type[AnswerT]) -> AnswerT:
        self._control.send(request, version)
        answer = self._control.receive(RESPONSES[request.API_KEY], version)
        assert isinstance(answer, expected)
        return answer

    def ask_aside_and_forget(self, request: Request, version: int) -> None:
        """A question whose answer depends on how far Kafka has come with it."""
        self.ask_aside(request, version, object)

    def topic(self, suffix: str = "t", partitions: int = 1, **configs: str) -> TopicName:
        """Create a topic `~.suffix` and wait until it can be used. Config names have _ for dots."""
        return self._create_topic(TopicName(f"{self.name}.{suffix}"), partitions, **configs)

    def _create_topic(self, name: TopicName, partitions: int, **configs: str) -> TopicName:
        settings = [CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()]
        topic = CreatableTopic(name, partitions, 1, (), settings)
        answer = self.ask_aside(CreateTopicsRequest((topic,)), 5, CreateTopicsResponse)
        assert answer.topics[0].error_code is ErrorCode.NONE, answer
        self._poll("the topic is ready", lambda: self._is_ready(name, partitions))
        return name

    def subscribed_topic(self, suffix: str = "t", partitions: int = 1) -> TopicName:
        """Create a topic that the group coordinator knows; its id is shown as its name."""
        name = self.topic(suffix, partitions)
        self.topics[self.topic_id(name)] = name
        self.await_metadata()
        return name

    def await_metadata(self) -> None:
        """Wait until the group coordinator knows what the brokers' metadata says already.

        Kafka publishes one change of its metadata after the other, to all its parts: once the
        second one can be seen, the first one has reached the group coordinator.
        """
        self._awaited_topics += 1
        self._create_topic(TopicName(f"awaited.{self.name}.{self._awaited_topics}"), 1)

    def grow_topic(self, name: str, partitions: int) -> None:
        request = CreatePartitionsRequest(
            (CreatePartitionsTopic(TopicName(name), partitions, None),), 30_000, False
        )
        self.ask_aside_and_forget(request, 3)
        self.until_topic(name, partitions)
        self.await_metadata()

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=(TopicName(name),), timeout_ms=30_000)
        self.ask_aside_and_forget(request, 5)
        self.until_no_topic(name)
        self.await_metadata()

    def topic_metadata(self, name: str) -> MetadataResponseTopic:
        request = MetadataRequest((MetadataRequestTopic(name=TopicName(name)),), False)
        return self.ask_aside(request, 12, MetadataResponse).topics[0]

    def topic_id(self, name: str) -> TopicId:
        return self.topic_metadata(name).topic_id

    def describe_consumers(self, group_id: str | None = None) -> DescribedConsumerGroup:
        request = ConsumerGroupDescribeRequest((GroupId(group_id or self.group),))
        return self.ask_aside(request, 1, ConsumerGroupDescribeResponse).groups[0]

    def transaction(self, transactional_id: str) -> DescribedTransaction:
        request = DescribeTransactionsRequest((transactional_id,))
        return self.ask_aside(request, 0, DescribeTransactionsResponse).transaction_states[0]

    def until_ended(self, transactional_id: str) -> None:
        """Until every marker of the transaction is written; nothing of it is written down."""
        self._poll(
            "the transaction has ended",
            lambda: self.transaction(transactional_id).transaction_state not in _ENDING,
        )

    def until_aborted(self, transactional_id: str) -> None:
        """As above, when an open transaction is aborted by a new producer."""
        self._poll(
            "the transaction is aborted",
            lambda: self.transaction(transactional_id).transaction_state not in _NOT_ABORTED,
        )

    def raise_epoch(self, transactional_id: str, epoch: int) -> None:
        """Start producers of this id until the last one has this epoch."""
        wire = Wire(self._port, "raise")
        try:
            answer = InitProducerIdResponse(producer_epoch=-1)
            while answer.producer_epoch < epoch:
                wire.send(InitProducerIdRequest(transactional_id, 60_000), 4)
                received = wire.receive(InitProducerIdResponse, 4)
                assert isinstance(received, InitProducerIdResponse)
                assert received.error_code is ErrorCode.NONE, received
                answer = received
        finally:
            wire.close()

    def until_transaction(self, state: str, transactional_id: str | None = None) -> None:
        wanted = transactional_id or self.group
        self.until(
            f"the transaction is {state}",
            lambda: self.transaction(wanted).transaction_state == state,
        )

    def until_group_epoch(self, epoch: int, group_id: str | None = None) -> None:
        self.until(
            f"the group epoch is {epoch}",
            lambda: self.describe_consumers(group_id).group_epoch == epoch,
        )

    def until_members(self, *member_ids: str) -> None:
        """Until a consumer group has these members and no others."""
        self.until(
            f"the members are {sorted(member_ids)}",
            lambda: {m.member_id for m in self.describe_consumers().members} == set(member_ids),
        )

    def until_topic(self, name: str, partitions: int) -> None:
        self.until(
            f"{self._here(name)} has {partitions} partitions",
            lambda: self._is_ready(TopicName(name), partitions),
        )

    def until_no_topic(self, name: str) -> None:
        self.until(
            f"{self._here(name)} is gone",
            lambda: self.topic_metadata(name).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )

    # The steps that clients take; called by Client

    def ask(self, client: Client, request: Request, version: int) -> Response | None:
        """Say it and wait for the answer; None if the broker closed the connection instead."""
        self.say(client, request, version)
        answer = self._hear(client)
        group_id = getattr(request, "group_id", None)
        if group_id and not isinstance(request, ConsumerGroupHeartbeatRequest):
            # Kafka tells a new member its id before the group that this made can be seen.
            self._barrier(GroupId(group_id))
        self._hear_others(client)
        return answer

    def send(
        self, client: Client, request: Request, version: int, group_id: GroupId
    ) -> Response | None:
        """Say it, and find out whether it is answered or parked; None if it is parked."""
        self.say(client, request, version)
        client.waiting = Waiting(RESPONSES[request.API_KEY], version, group_id)
        self._barrier(group_id)
        answer = None
        if client.wire.has_answer():
            answer = self._hear(client)
        else:
            self.transcript.append(f"{client.name}  waits")
        self._hear_others(client)
        return answer

    def ask_frame(
        self, client: Client, what: str, frame: bytes, reads: type[Response] | None, version: int
    ) -> None:
        """Send any frame at all; its answer is read as `reads`, or shown as bytes."""
        self.transcript.append(f"{client.name}> {what}")
        try:
            client.wire.send_frame(frame)
            answer = client.wire.receive_frame()
        except Closed:
            self.transcript.append(f"{client.name}< (closed)")
            return
        if reads is None:
            self.transcript.append(f"{client.name}< {answer!r}")
        else:
            _, response = decode_response(reads.API_KEY, version, answer, 0, len(answer))
            self._write_answer(client, response, version)

    def closed_by(self, client: Client, what: str, data: bytes) -> None:
        """Send bytes that are no frame; say whether the broker hung up."""
        self.transcript.append(f"{client.name}> {what}")
        try:
            client.wire.send_bytes(data)
            client.wire.receive_frame()
        except Closed:
            self.transcript.append(f"{client.name}< (closed)")
            return
        self.transcript.append(f"{client.name}< (an answer)")

    def park(self, client: Client, request: Request, version: int) -> None:
        """Say it, and leave the answer to `answers`."""
        self.say(client, request, version)
        client.waiting = Waiting(RESPONSES[request.API_KEY], version, None, is_deferred=True)

    def vanish(self, client: Client) -> None:
        self.transcript.append(f"{client.name}  disconnects")
        client.wire.close()
        del self._clients[client.name]

    def finish(self) -> list[str]:
        """Close everything; a request that is still parked is the last thing to be told."""
        for name, client in sorted(self._clients.items()):
            if client.waiting is not None:
                self.transcript.append(f"{name}  was not answered")
        self.close()
        return self.transcript

    def close(self) -> None:
        for client in self._clients.values():
            client.wire.close()
        self._control.close()

    # Below: how the transcript is written and kept free of races

    def say(self, client: Client, request: Request, version: int) -> None:
        assert client.waiting is None, f"{client.name} still waits for an answer"
        what = f"{client.name}> {type(request).__name__.removesuffix('Request')} v{version}"
        first, *rest = render(request, version, self._names)
        self._write(f"{what} {first}", rest)
        client.wire.send(request, version)
        client.waiting = Waiting(RESPONSES[request.API_KEY], version, None)

    def _hear(self, client: Client) -> Response | None:
        waiting = client.waiting
        assert waiting is not None, f"{client.name} has asked nothing"
        client.waiting = None
        try:
            answer = client.wire.receive(waiting.response_class, waiting.version)
        except (Closed, TimeoutError) as end:
            what = "(closed)" if isinstance(end, Closed) else NOTHING
            self.transcript.append(f"{client.name}< {what}")
            self._connect_again(client)
            return None
        client.learn(answer)
        self._write_answer(client, answer, waiting.version)
        return answer

    def _connect_again(self, client: Client) -> None:
        client.wire.close()
        client.wire = Wire(self._port, client.wire.client_id)

    def _write_answer(self, client: Client, answer: Response, version: int) -> None:
        first, *rest = render(self._of_this_scenario(answer), version, self._names)
        self._write(f"{client.name}< {first}", rest)

    def _write(self, first: str, rest: Sequence[str]) -> None:
        self.transcript += [self._here(line) for line in (first, *rest)]

    def _here(self, text: str) -> str:
        return text.replace(self.name, HERE)

    def _of_this_scenario(self, answer: Response) -> Response:
        """Leave out the groups and topics of other scenarios on the same broker."""
        if isinstance(answer, ListGroupsResponse):
            groups = [
                group
                for group in answer.groups
                if group.group_id == self.name or group.group_id.startswith(f"{self.name}.")
            ]
            return ListGroupsResponse(answer.throttle_time_ms, answer.error_code, groups)
        if isinstance(answer, ListTransactionsResponse):
            answer.transaction_states = [
                state
                for state in answer.transaction_states
                if state.transactional_id.startswith(self.name)
            ]
        if isinstance(answer, DescribeProducersResponse):
            ids = {client.producer_id for client in self._clients.values()}
            for topic in answer.topics:
                for partition in topic.partitions if topic.name == OFFSETS_TOPIC else ():
                    partition.active_producers = [
                        producer
                        for producer in partition.active_producers
                        if producer.producer_id in ids
                    ]
                    for producer in partition.active_producers:  # behind those of others
                        producer.current_txn_start_offset = min(
                            producer.current_txn_start_offset, 0
                        )
        if isinstance(answer, ListConfigResourcesResponse):
            answer.config_resources = [
                resource
                for resource in answer.config_resources
                if resource.resource_name.startswith((self.name, "1"))
            ]
        if isinstance(answer, MetadataResponse):
            answer.topics = [
                topic
                for topic in answer.topics
                if topic.name is None
                or topic.name.startswith((self.name, OFFSETS_TOPIC))
                or topic.error_code is not ErrorCode.NONE
            ]
        return answer

    def _hear_others(self, speaker: Client | None) -> None:
        """Write down what other clients were answered because of the last step."""
        others = [
            client
            for _, client in sorted(self._clients.items())
            if client is not speaker
            and client.waiting is not None
            and not client.waiting.is_deferred
        ]
        for group_id in sorted(
            {c.waiting.group_id for c in others if c.waiting and c.waiting.group_id}
        ):
            self._barrier(group_id)
        for client in others:
            if client.wire.has_answer():
                self._hear(client)

    def _barrier(self, group_id: GroupId) -> None:
        """Return when the broker has decided about everything said before, and answered if it can.

        A LeaveGroup of nobody changes nothing, but it is a write: it is decided after what reached
        the group before it, and its answer waits for the same log. The first one is answered when
        the broker has certainly read what was sent on other connections earlier; the second one is
        then behind it in every queue. Answers that are due at once may leave in any order; once the
        third one is read, they have left. (Kafka is recorded with one network and one handler
        thread.)
        """
        nobody = LeaveGroupRequest(group_id, members=(MemberIdentity(MemberId("nobody")),))
        for _ in range(3):
            self.ask_aside(nobody, 3, LeaveGroupResponse)

    def _poll(self, what: str, question: Callable[[], bool]) -> None:
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not question():
            assert time.monotonic() < deadline, f"{self.name}: in vain until {what}"
            time.sleep(0.01)

    def _is_ready(self, name: TopicName, partitions: int) -> bool:
        found = self.topic_metadata(name)
        if found.error_code or len(found.partitions) != partitions:
            return False
        if any(partition.error_code for partition in found.partitions):
            return False
        latest = [ListOffsetsPartition(index, -1, -1) for index in range(partitions)]
        request = ListOffsetsRequest(-1, 0, (ListOffsetsTopic(name, latest),))
        answer = self.ask_aside(request, 5, ListOffsetsResponse)
        return not any(partition.error_code for partition in answer.topics[0].partitions)


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    chapter: str
    profile: str
    play: Callable[[Script], None]
    is_slow: bool = False
    """Whether it is left out of the tests unless it is asked for."""

    @property
    def is_of_consumers(self) -> bool:
        """Whether it is about the consumer group protocol."""
        return self.chapter.startswith(CONSUMER_CHAPTERS)

    @property
    def is_of_transactions(self) -> bool:
        return self.chapter.startswith(TRANSACTION_CHAPTERS)


SCENARIOS: Final[dict[str, Scenario]] = {}
"""Every scenario by name, in the order of its chapter; filled by `@scenario`."""


def scenario(
    profile: str = "plain", *, is_slow: bool = False
) -> Callable[[Callable[[Script], None]], Callable[[Script], None]]:
    """Register a scenario, to be played at a broker with the settings of this profile."""

    def register(play: Callable[[Script], None]) -> Callable[[Script], None]:
        assert play.__name__ not in SCENARIOS, f"two scenarios are called {play.__name__}"
        chapter = play.__module__.rsplit(".", 1)[-1]
        SCENARIOS[play.__name__] = Scenario(play.__name__, chapter, profile, play, is_slow)
        return play

    return register


def pass_time(script: Script, for_ms: int, name: str) -> None:
    """Let the broker's own clock run for at least so long: a member of another group expires."""
    clock = script.client(name)
    clock.join(group_id=f"{script.group}.{name}", session_ms=for_ms, version=3)
    script.until_state("Empty", f"{script.group}.{name}")


class Performance(NamedTuple):
    transcript: list[str]
    topics: Mapping[TopicId, str]
    """The ids that the transcript shows as names."""


def perform(scenario: Scenario, broker: Restartable) -> Performance:
    """Play a scenario at this broker."""
    script = Script(
        scenario.name,
        broker.port,
        broker.restart,
        transactions=scenario.profile in TRANSACTIONAL,
        numbers_epochs=scenario.is_of_transactions and scenario.profile in RESTARTED,
    )
    try:
        scenario.play(script)
        return Performance(script.finish(), script.topics)
    finally:
        script.close()
