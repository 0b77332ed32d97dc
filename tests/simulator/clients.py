"""Clients of the simulated world: small models of real consumers.

A `Member` joins (in two steps where its version says so), syncs, beats and commits, and does what
each error asks for. It also does what real ones do at their worst: vanishes, stalls past its
session, leaves, changes its topics, and comes back as a new process with the same instance id. An
`Outsider` commits without being a member, a `Reader` asks what was committed. They wait for each
answer for a while, then hang up and ask again on a new connection. A `Pipeliner` waits for none.
"""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.messages import Request, Response
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    TopicName,
)
from tests.simulator.network import Connection, Network
from tests.simulator.sim import Sim

TOPIC: Final = TopicName("t")
PARTITIONS: Final = 6
REBALANCE_MS: Final = 6_000
RETRY_MS: Final = 100
ANSWER_WITHIN_MS: Final = 2_000

RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

OnAnswer = Callable[[Response], None]


def encode_assignment(generation_id: int, partitions: Sequence[int]) -> bytes:
    """The generation stands in it, so that the checkers can see whose assignment it is."""
    return b"%d:%s" % (generation_id, bytes(partitions))


def decode_assignment(assignment: bytes) -> tuple[int, frozenset[int]]:
    generation_id, _, partitions = assignment.partition(b":")
    return int(generation_id), frozenset(partitions)


class Commits:
    """Numbers the commits of a run: each is a value of its own, so that a lost one is missed."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


class Client:
    """One process with one connection; asks one thing at a time."""

    def __init__(self, sim: Sim, network: Network, name: str, group_id: GroupId) -> None:
        self.sim = sim
        self.network = network
        self.name = name
        self.group_id = group_id
        self.gone = False
        self.committed_ms = -1  # when a commit was last acknowledged
        self._connection: Connection | None = None
        self._question = 0  # grows with each; an answer or a timeout of an older one is stale

    def begin(self) -> None:
        raise NotImplementedError

    def wake(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do this later, unless the client is gone or has turned to something else by then."""
        question = self._question

        def act() -> None:
            if not self.gone and question == self._question:
                action()

        self.sim.after(delay_ms, act)

    def ask(
        self,
        request: Request,
        version: int,
        on_answer: OnAnswer,
        *,
        again: Callable[[], None],
        within_ms: int = ANSWER_WITHIN_MS,
    ) -> None:
        """`again` is done when no answer comes in time, after a new connection was made."""
        self._question += 1
        question = self._question
        if self._connection is None or not self._connection.open:
            self._connection = self.network.connect(self.name)
        if self._connection is None:
            self.wake(self.sim.between(RETRY_MS, 10 * RETRY_MS), again)
            return

        def answered(response: Response) -> None:
            if not self.gone and question == self._question:
                self._question += 1
                on_answer(response)

        def too_late() -> None:
            if not self.gone and question == self._question:
                self.hang_up()
                again()

        self._connection.ask(request, version, answered)
        self.sim.after(within_ms, too_late)

    def hang_up(self) -> None:
        self._question += 1
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def vanish(self) -> None:
        """kill -9 of the client: its connection breaks, and nothing else is ever said."""
        self.gone = True
        self.hang_up()


class Member(Client):
    """A consumer of a group. `mischief` is how often it does something that real ones do rarely."""

    def __init__(
        self,
        sim: Sim,
        network: Network,
        name: str,
        group_id: GroupId,
        *,
        instance_id: GroupInstanceId | None,
        session_ms: int,
        commits: Commits,
        mischief: float,
    ) -> None:
        super().__init__(sim, network, name, group_id)
        self.instance_id = instance_id
        self.session_ms = session_ms
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation_id = NO_GENERATION
        self.owned: frozenset[int] = frozenset()
        self.is_assigned = False
        self.fenced = False
        self.mischief = mischief
        self._commits = commits
        self._join_version = 9 if instance_id else sim.dice.choice((3, 5, 9))
        self._topics_version = 0
        self._assignments: list[SyncGroupRequestAssignment] = []

    def begin(self) -> None:
        self.join()

    # ------------------------------------------------------------ join and sync

    def join(self) -> None:
        self.is_assigned = False
        subscription = b"topics %d" % self._topics_version
        request = JoinGroupRequest(
            self.group_id,
            self.session_ms,
            REBALANCE_MS,
            self.member_id,
            self.instance_id,
            "model",
            [JoinGroupRequestProtocol("fair", subscription)],
        )
        within_ms = REBALANCE_MS + 3_000 if self.sim.happens(0.9) else self.sim.between(50, 2_000)
        self.ask(request, self._join_version, self._joined, again=self.join, within_ms=within_ms)

    def _joined(self, answer: Response) -> None:
        assert isinstance(answer, JoinGroupResponse)
        if self._refused(answer.error_code, self.join):
            return
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.wake(self.sim.around(5), self.join)
            return
        assert answer.error_code is ErrorCode.NONE, answer
        self.member_id = answer.member_id
        self.generation_id = answer.generation_id
        is_leader = answer.leader == answer.member_id
        listed = [member.member_id for member in answer.members]
        shares = [list(range(n, PARTITIONS, len(listed))) for n in range(len(listed))]
        self._assignments = [
            SyncGroupRequestAssignment(member_id, encode_assignment(answer.generation_id, share))
            for member_id, share in zip(listed, shares, strict=True)
        ]
        if answer.skip_assignment or not is_leader:
            self._assignments = []
        if self._misbehaves():
            return
        self.wake(self.sim.around(10), self.sync)

    def sync(self) -> None:
        request = SyncGroupRequest(
            self.group_id,
            self.generation_id,
            self.member_id,
            self.instance_id,
            "model",
            "fair",
            self._assignments,
        )
        self.ask(request, 5, self._synced, again=self.sync, within_ms=REBALANCE_MS + 3_000)

    def _synced(self, answer: Response) -> None:
        assert isinstance(answer, SyncGroupResponse)
        again = self.sync if self.sim.happens(0.5) else self.join
        if self._refused(answer.error_code, again):
            return
        _, self.owned = (
            decode_assignment(answer.assignment) if answer.assignment else (0, frozenset())
        )
        self.is_assigned = True
        self.wake(self._pause_ms(), self.live)

    # ------------------------------------------------------------ the life of a member

    def live(self) -> None:
        """Beat or commit; now and then something else."""
        if self._misbehaves():
            return
        if self.sim.happens(0.4):
            self.commit()
        else:
            self.beat()

    def beat(self) -> None:
        request = HeartbeatRequest(
            self.group_id, self.generation_id, self.member_id, self.instance_id
        )
        self.ask(request, 4, self._beaten, again=self.beat)

    def _beaten(self, answer: Response) -> None:
        assert isinstance(answer, HeartbeatResponse)
        if not self._refused(answer.error_code, self.beat):
            self.wake(self._pause_ms(), self.live)

    def commit(self) -> None:
        partitions = sorted(self.owned) or [0]
        request = OffsetCommitRequest(
            self.group_id,
            self.generation_id,
            self.member_id,
            self.instance_id,
            -1,
            [_commit_of(partitions, self._commits)],
        )
        self.ask(request, 9, self._committed, again=self.live)

    def _committed(self, answer: Response) -> None:
        assert isinstance(answer, OffsetCommitResponse)
        error_code = answer.topics[0].partitions[0].error_code
        if not self._refused(error_code, self.live):
            self.committed_ms = self.sim.now_ms
            self.wake(self._pause_ms(), self.live)

    def leave(self) -> None:
        identity = MemberIdentity(self.member_id, self.instance_id, "enough")
        request = LeaveGroupRequest(self.group_id, members=[identity])
        self.ask(request, 5, lambda _: self.vanish(), again=self.vanish)

    def _refused(self, error_code: ErrorCode, again: Callable[[], None]) -> bool:
        """Do what the error asks for; False if it asks for nothing."""
        match error_code:
            case ErrorCode.NONE | ErrorCode.MEMBER_ID_REQUIRED:
                return False
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = UNKNOWN_MEMBER_ID
                self.owned = frozenset()
                self.join()
            case ErrorCode.REBALANCE_IN_PROGRESS if self.is_assigned and self._lingers():
                self.wake(self._pause_ms(), self.live)
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                if not self._misbehaves():
                    self.wake(self.sim.around(100), self.join)
            case ErrorCode.FENCED_INSTANCE_ID:
                self.fenced = True  # another process has our place: a real client ends here
                self.vanish()
            case _ if error_code in RETRIABLE:
                if self.sim.happens(0.3):
                    self.hang_up()
                self.wake(self.sim.between(RETRY_MS, 3 * RETRY_MS), again)
            case _:
                raise AssertionError(f"{self.name} is told {error_code!r}")
        return True

    def _pause_ms(self) -> int:
        return self.sim.between(100, self.session_ms // 3)

    def _lingers(self) -> bool:
        """Its poll loop is busy: it goes on in its old generation, though it knows of the end."""
        return self.mischief > 0 and self.sim.happens(0.8)

    def _misbehaves(self) -> bool:
        """Something happens to the client itself; True if it does not go on by itself."""
        if not self.sim.happens(self.mischief):
            return False
        match self.sim.dice.randrange(5):
            case 0:
                self.sim.log_event(f"{self.name} vanishes")
                self.vanish()
            case 1:
                self.sim.log_event(f"{self.name} leaves")
                self.leave()
            case 2:
                self._topics_version += 1
                self.join()
            case _:
                stall_ms = self.sim.between(100, 2 * self.session_ms)
                self.sim.log_event(f"{self.name} stalls for {stall_ms} ms")
                self.wake(stall_ms, self._go_on)
        return True

    def _go_on(self) -> None:
        if self.is_assigned:
            self.live()
        elif self.member_id and self.generation_id != NO_GENERATION and self.sim.happens(0.5):
            self.sync()
        else:
            self.join()


class Outsider(Client):
    """Commits to a group that has no members."""

    def __init__(
        self, sim: Sim, network: Network, name: str, group_id: GroupId, commits: Commits
    ) -> None:
        super().__init__(sim, network, name, group_id)
        self._commits = commits

    def begin(self) -> None:
        self.commit()

    def commit(self) -> None:
        partitions = self.sim.dice.sample(range(PARTITIONS), self.sim.between(1, PARTITIONS))
        commit = _commit_of(partitions, self._commits)
        self.ask(
            OffsetCommitRequest(self.group_id, topics=[commit]), 9, self._done, again=self.commit
        )

    def _done(self, answer: Response) -> None:
        assert isinstance(answer, OffsetCommitResponse)
        error_code = answer.topics[0].partitions[0].error_code
        assert error_code is ErrorCode.NONE or error_code in RETRIABLE, error_code
        if error_code is ErrorCode.NONE:
            self.committed_ms = self.sim.now_ms
        self.wake(self.sim.around(800), self.commit)


class Reader(Client):
    """Asks what a group has committed; the checkers judge the answers."""

    def begin(self) -> None:
        asked = OffsetFetchRequestTopic(TOPIC, range(PARTITIONS))
        request = OffsetFetchRequest(group_id=self.group_id, topics=[asked])
        self.ask(request, 7, lambda _: self.rest(), again=self.rest)

    def rest(self) -> None:
        self.wake(self.sim.around(3_000), self.begin)


class Pipeliner(Client):
    """Asks many things at once, of every kind, reads slowly now and then, and may end its side.

    It demands no particular answers: its connection demands that each comes once and in order.
    """

    def __init__(
        self, sim: Sim, network: Network, name: str, group_id: GroupId, commits: Commits
    ) -> None:
        super().__init__(sim, network, name, group_id)
        self.bursts = self.ends = 0
        self._commits = commits
        self._left = 0  # answers of this burst that are missing

    @property
    def waits_since_ms(self) -> int | None:
        """When the oldest request without an answer was sent, while its connection stands."""
        connection = self._connection
        return None if connection is None or not connection.open else connection.waits_since_ms

    def begin(self) -> None:
        self._question += 1
        if self._connection is not None and not self._connection.open:
            self._connection = None
        if self._connection is not None and self._connection.ended_ms is not None:
            self.wake(RETRY_MS, self.begin)  # the node has yet to close it
            return
        connection = self._connection or self.network.connect(self.name)
        if connection is None:
            self.wake(self.sim.between(RETRY_MS, 10 * RETRY_MS), self.begin)
            return
        self._connection = connection
        connection.reading_ms = self.sim.dice.choice((0, 0, 0, 30))
        self.bursts += 1
        self._left = self.sim.dice.choice((2, 5, 20, 110))
        question = self._question

        def answered(_: Response) -> None:
            if question == self._question:
                self._left -= 1
                if not self._left:
                    self.wake(self.sim.around(1_500), self.begin)

        connection.ask_all([(*self._any_request(), answered) for _ in range(self._left)])
        if self.sim.happens(0.2):
            self.ends += 1
            connection.end()
        self.wake(ANSWER_WITHIN_MS, self._check_connection)

    def _check_connection(self) -> None:
        """Patient while the connection stands; once it is cut, start over."""
        if self._connection is not None and self._connection.open:
            self.wake(ANSWER_WITHIN_MS, self._check_connection)
        else:
            self.begin()

    def _any_request(self) -> tuple[Request, int]:
        match self.sim.dice.randrange(10):
            case 0 | 1 | 2:
                commit = _commit_of([self.sim.between(0, PARTITIONS - 1)], self._commits)
                return OffsetCommitRequest(self.group_id, topics=[commit]), 9
            case 3 | 4:
                asked = OffsetFetchRequestTopic(TOPIC, range(PARTITIONS))
                return OffsetFetchRequest(group_id=self.group_id, topics=[asked]), 7
            case 5:
                # Long answers: each name comes back, though nobody has such a group.
                names = [GroupId(f"{n}" * 900) for n in range(self.sim.dice.choice((1, 20)))]
                return DescribeGroupsRequest(groups=names), 5
            case 6 if self.sim.happens(0.1):
                protocols = [JoinGroupRequestProtocol("fair", b"")]
                group_id = GroupId(f"{self.group_id} {self._commits.next()}")
                request = JoinGroupRequest(
                    group_id, 3_000, REBALANCE_MS, UNKNOWN_MEMBER_ID, None, "model", protocols
                )
                return request, 3
            case _:
                return HeartbeatRequest(self.group_id, 1, UNKNOWN_MEMBER_ID, None), 4


def _commit_of(partitions: Sequence[int], commits: Commits) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        TOPIC,
        partitions=[OffsetCommitRequestPartition(p, commits.next()) for p in partitions],
    )
