"""Daemon of a test: where it listens, its clock, its groups, and faults for its clients to meet.

All calls but `wait_async` block, for a millisecond or two; `wait` and `Hold.wait` for up to their
timeout. They may be called from any thread, and inside of coroutines: a client that lives in the
same event loop does nothing meanwhile, so that no heartbeat of it comes between two steps of a
clock that jumps ahead.
"""

import asyncio
import math
import time
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from rollcall.testing.channel import Channel, ChannelClosed
from rollcall.testing.errors import DaemonDied, NotPossible, WaitTimedOut, WrongQuestion

ANSWER_TIMEOUT_S: Final = 300.0
"""The longest jump has some 26,000 deadlines: 40 s were measured on a busy machine."""

ADVANCE_MAX_S: Final = 30 * 86_400
"""Of one jump; several may follow each other."""

WAIT_POLL_S: Final = 0.005
"""Between two looks at a group that is waited for."""

STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
)
"""Of groups, as Kafka's tools print them. A group that does not exist is Dead."""

_LOG_TAIL_BYTES: Final = 2_000


class GroupMember(NamedTuple):
    """A member of a group. `instance_id` is its group.instance.id, if it has one."""

    member_id: str
    client_id: str
    instance_id: str | None


class GroupDescription(NamedTuple):
    """A group at one moment. `generation` is the group epoch of a consumer group (KIP-848).

    `waits`: whom it waits for and until when, in the words of `rollcall why`.
    """

    name: str
    state: str
    generation: int
    members: tuple[GroupMember, ...]
    waits: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = len(self.members)
        text = f"{self.state} with {count} member{'s' * (count != 1)}"
        if self.members:
            text += f" ({', '.join(member.member_id for member in self.members)})"
        if self.waits:
            text += f", generation {self.generation}. {' '.join(self.waits)}"
        return text


class Rollcall:
    """One daemon: of a test, of a session, or of `rollcall_factory`."""

    def __init__(
        self,
        *,
        pid: int,
        bootstrap: str,
        admin: str | None,
        folder: Path,
        channel: Channel,
        stop: Callable[[], None],
    ) -> None:
        self.pid = pid
        """Of its process."""
        self.bootstrap = bootstrap
        """HOST:PORT for clients (bootstrap.servers)."""
        self.admin = admin
        """HOST:PORT of the admin port: the console, /metrics, and `rollcall why --admin`."""
        self.folder = folder
        """Its data directory (`data`) and its log (`daemon.log`); removed with it."""
        self._channel = channel
        self._channel.set_timeout(ANSWER_TIMEOUT_S)
        self._stop = stop
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<Rollcall at {self.bootstrap}{', closed' * self._is_closed}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Topics.

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic; clients can use it at once. Raises WrongQuestion with Kafka's error."""
        self._ask("create_topic", name=name, partitions=partitions)

    # Time.

    def advance(self, seconds: float) -> None:
        """Let the daemon's clock jump ahead; what falls due on the way happens, in that order.

        Sessions end, rebalances stop waiting, fetches are answered. Returns when all of it is done.
        The clock of clients does not jump: to the daemon they were silent all the time.
        """
        if not 0 <= seconds <= ADVANCE_MAX_S:
            raise WrongQuestion(f"advance: {seconds} s is not within 0 to 30 days")
        self._ask("advance", ms=round(seconds * 1000))

    # Groups.

    def group(self, name: str) -> GroupDescription:
        """How a group is now."""
        found = self._ask("group", group=name)
        assert isinstance(found, dict)
        members = tuple(GroupMember(**member) for member in found["members"])
        return GroupDescription(
            name, found["state"], found["generation"], members, tuple(found["waits"])
        )

    def expire(self, group: str, member: str) -> None:
        """End the session of one member, as if it had been silent for its session timeout.

        `member` is a member id, a group.instance.id, or a client id that only one member has.
        """
        self._ask("expire", group=group, member=member)

    def wait(
        self,
        group: str,
        *,
        state: str | None = None,
        members: int | None = None,
        timeout: float = 10,
    ) -> GroupDescription:
        """Until the group is in this state and has so many members; it, as it is then.

        Raises WaitTimedOut, with how the group is instead, after `timeout` real seconds.
        """
        _check_wait(state, members)
        ends_s = _end_of(timeout)
        while not _is_as_asked(found := self.group(group), state, members):
            if time.monotonic() >= ends_s:
                raise _not_in_time(found, state, members, timeout)
            time.sleep(WAIT_POLL_S)
        return found

    async def wait_async(
        self,
        group: str,
        *,
        state: str | None = None,
        members: int | None = None,
        timeout: float = 10,  # noqa: ASYNC109 - as `wait` has it
    ) -> GroupDescription:
        """As `wait`, while the event loop runs on."""
        _check_wait(state, members)
        ends_s = _end_of(timeout)
        while not _is_as_asked(found := self.group(group), state, members):
            if time.monotonic() >= ends_s:
                raise _not_in_time(found, state, members, timeout)
            await asyncio.sleep(WAIT_POLL_S)
        return found

    # Faults.

    def hold(self, api: str) -> "Hold":
        """With this as a context manager, requests of the API wait; after it they are handled.

        `api` as Kafka spells it: SyncGroup. They wait in the order in which they come.
        """
        return Hold(self, api)

    def fail_next(self, api: str, error: str, times: int = 1) -> None:
        """Answer the next `times` requests of the API with this error, and do nothing else.

        Names as Kafka spells them: OffsetCommit, REBALANCE_IN_PROGRESS. The answer says the error
        where Kafka's would: at the top, or for each partition, topic or group of the request.
        """
        self._ask("fail_next", api=api, error=error, times=times)

    # What happened.

    def timeline(self, since_ms: int = 0) -> str:
        """The groups and their events as text, as a failing test's report has them.

        `since_ms`: by the daemon's clock, as `now_ms` has it.
        """
        return str(self._ask("timeline", since_ms=since_ms))

    def now_ms(self) -> int:
        """The daemon's wall clock, in ms since 1970."""
        now = self._ask("now")
        assert isinstance(now, int)
        return now

    def log(self) -> str:
        """What the daemon has logged."""
        try:
            return (self.folder / "daemon.log").read_text(errors="replace")
        except OSError:
            return ""

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def close(self) -> None:
        """End the daemon at once, and remove its folder. Fixtures do it themselves."""
        if not self._is_closed:
            self._is_closed = True
            self._stop()
            self._channel.close()

    def _ask(self, name: str, /, **question: object) -> object:
        if self._is_closed:
            raise NotPossible(f"{name}: this daemon was closed")
        try:
            answer = self._channel.ask({"ask": name, **question})
        except ChannelClosed:
            tail = self.log()[-_LOG_TAIL_BYTES:]
            raise DaemonDied(f"the daemon at {self.bootstrap} has ended: {tail}") from None
        except TimeoutError:
            words = f"{name}: the daemon has not answered for {ANSWER_TIMEOUT_S:g} s"
            raise WaitTimedOut(words) from None
        match answer.get("error"):
            case None:
                return answer["answer"]
            case "value":
                raise WrongQuestion(answer["message"])
            case "state":
                raise NotPossible(answer["message"])
            case _:
                raise DaemonDied(f"{name} failed in the daemon: {answer['message']}")


class Hold:
    """Requests of one API that are held back while the context lasts."""

    def __init__(self, daemon: Rollcall, api: str) -> None:
        self._daemon = daemon
        self._api = api
        self._number: object = None

    def __enter__(self) -> Self:
        if self._number is not None:
            raise NotPossible(f"{self._api} is held by this already")
        self._number = self._daemon._ask("hold", api=self._api)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        number, self._number = self._number, None
        if self._daemon.is_closed:  # A closed daemon holds nothing back.
            return
        try:
            self._daemon._ask("release", hold=number)
        except DaemonDied:
            if error is None:  # Otherwise the error in the block says more.
                raise

    @property
    def count(self) -> int:
        """How many requests wait now."""
        if self._number is None:
            return 0
        count = self._daemon._ask("held", hold=self._number)
        assert isinstance(count, int)
        return count

    def wait(self, count: int = 1, timeout: float = 10) -> None:
        """Until so many requests wait. Raises WaitTimedOut after `timeout` real seconds."""
        ends_s = _end_of(timeout)
        while (held := self.count) < count:
            self._check(held, count, timeout, ends_s)
            time.sleep(WAIT_POLL_S)

    async def wait_async(self, count: int = 1, timeout: float = 10) -> None:  # noqa: ASYNC109
        """As `wait`, while the event loop runs on."""
        ends_s = _end_of(timeout)
        while (held := self.count) < count:
            self._check(held, count, timeout, ends_s)
            await asyncio.sleep(WAIT_POLL_S)

    def _check(self, held: int, count: int, timeout: float, ends_s: float) -> None:
        if self._number is None:
            raise NotPossible(f"{self._api} is not held: use `with daemon.hold(...) as hold`")
        if time.monotonic() >= ends_s:
            raise WaitTimedOut(f"{held} of {count} {self._api} requests came within {timeout:g} s")


def _end_of(timeout: float) -> float:
    if math.isnan(timeout):
        raise WrongQuestion("timeout is a number of seconds, not nan")
    return time.monotonic() + timeout


def _check_wait(state: str | None, members: int | None) -> None:
    if state is None and members is None:
        raise WrongQuestion("wait: give a state, a number of members, or both")
    if state is not None and state not in STATES:
        near = get_close_matches(state, STATES, 1)
        words = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(STATES)}"
        raise WrongQuestion(f"there is no state {state}{words}")


def _is_as_asked(group: GroupDescription, state: str | None, members: int | None) -> bool:
    return (state is None or group.state == state) and (
        members is None or len(group.members) == members
    )


def _not_in_time(
    group: GroupDescription, state: str | None, members: int | None, timeout: float
) -> WaitTimedOut:
    wanted = " ".join(
        filter(
            None,
            (
                state or "",
                "" if members is None else f"with {members} member{'s' * (members != 1)}",
            ),
        )
    )
    return WaitTimedOut(f"group {group.name} is not {wanted} after {timeout:g} s: it is {group}")
