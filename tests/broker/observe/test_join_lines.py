"""Lines of joins: written together, a moment later, and before any other line."""

import io
from collections.abc import Callable

import pytest

from broker.observe import events as shell
from broker.observe.observer import (
    JOINS_WAITING_MAX,
    Observer,
    open_log,
    sentence_writer,
)
from coordinator.classic.events import JoinKind, MemberAdded, MemberIdAssigned
from coordinator.member_identity import MemberIdentity
from protocol.names import GroupId, GroupState, MemberId
from seams.reply_token import ReplyToken

G = GroupId("billing")
LINGER_S = 0.01


class Log:
    """An observer whose loop is the test."""

    def __init__(
        self,
        level: str = "info",
        stream: io.StringIO | None = None,
        style: str = "human",
        linger_s: float = LINGER_S,
    ) -> None:
        self.stream = io.StringIO() if stream is None else stream
        log = open_log(style, level, self.stream)
        self.observer = Observer(log, level, sentence_writer(style, self.stream))
        self.observer.let_joins_wait(linger_s, self._call_later)
        self.later: list[Callable[[], None]] = []

    def _call_later(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds == LINGER_S
        self.later.append(call)

    def pass_time(self) -> None:
        later, self.later = self.later, []
        for call in later:
            call()

    @property
    def lines(self) -> list[str]:
        """Without their times."""
        return [line.partition(" ")[2] for line in self.stream.getvalue().splitlines()]


def id_assigned(number: int, principal: str | None = None) -> MemberIdAssigned:
    member_id = MemberId(f"m-{number}")
    return MemberIdAssigned(G, 1, GroupState.EMPTY, member_id, "c", "/h", principal)


def added(number: int, principal: str | None = None) -> MemberAdded:
    return MemberAdded(
        group_id=G,
        at_ms=1,
        now_ms=1,
        state=GroupState.EMPTY,
        join_kind=JoinKind.PENDING,
        member=MemberIdentity(MemberId(f"m-{number}"), None, "c", "/h", principal),
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=(),
        session_deadline_ms=1,
        token=ReplyToken(9, "c", "/h"),
        reason="",
    )


def line_of(event: object) -> str:
    """As it is written at once."""
    log = Log(linger_s=0)
    log.observer(event)
    (line,) = log.lines
    return line


def test_they_wait_and_are_the_same_lines() -> None:
    log = Log()
    events = [id_assigned(1), added(1), id_assigned(2), added(2)]
    for event in events:
        log.observer(event)
    assert log.lines == []
    assert len(log.later) == 1
    log.pass_time()
    assert log.lines == [line_of(event) for event in events]
    times = [line.partition(" ")[0] for line in log.stream.getvalue().splitlines()]
    assert times == sorted(times)
    log.pass_time()
    log.observer(added(3))
    assert len(log.later) == 1
    assert len(log.lines) == 4


def test_another_line_follows_them() -> None:
    log = Log()
    log.observer(added(1))
    log.observer(shell.LoopStalled(1_500))
    log.pass_time()
    assert [line.partition("] ")[2][:7] for line in log.lines] == ["Pending", "The dae"]


def test_they_wait_for_no_more_than_so_many() -> None:
    log = Log()
    for number in range(JOINS_WAITING_MAX + 1):
        log.observer(added(number))
    assert len(log.lines) == JOINS_WAITING_MAX


def test_what_a_stop_finds_is_written() -> None:
    log = Log()
    log.observer(added(1))
    log.observer.end_wait_of_joins()
    assert log.lines == [line_of(added(1))]
    log.observer(added(2))
    assert log.lines[1:] == [line_of(added(2))]


@pytest.mark.parametrize("of_client", [id_assigned, added])
def test_those_of_a_client_with_a_name_are_written_at_once(
    of_client: Callable[[int, str | None], object],
) -> None:
    log = Log()
    log.observer(of_client(1, "User:alice"))
    (line,) = log.lines
    assert line.endswith("principal=User:alice")


def test_below_the_level_there_is_nothing_to_write() -> None:
    log = Log("error")
    log.observer(added(1))
    log.pass_time()
    assert log.lines == []


def test_lines_that_cannot_be_written_are_counted() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    log = Log(stream=Full())
    for number in range(3):
        log.observer(added(number))
    log.pass_time()
    assert log.observer.lines_lost == 3


@pytest.mark.parametrize(("style", "linger_s"), [("human", 0), ("json", LINGER_S)])
def test_without_a_linger_or_as_json_no_line_waits(style: str, linger_s: float) -> None:
    log = Log(style=style, linger_s=linger_s)
    log.observer(added(1))
    assert len(log.lines) == 1
    assert not log.later
