"""Observer: every event of every part becomes log lines and counts.

The cores report what happened and nothing else. The tables of `*_lines.py` have the log lines,
counters.py the numbers. Lines go to stderr through structlog, for people or as one JSON object
each; stdout is left for the ready line.

Each member that joins a new group has two lines. In the daemon (`let_joins_wait`) they are
written a moment later, many at once, and in any case before the next line of another kind.
"""

import logging
import sys
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from time import time
from typing import Final, TextIO

import structlog

from broker.observe.audit_lines import AUDIT_LINES
from broker.observe.cleaner_lines import CLEANER_LINES
from broker.observe.consumer_lines import CONSUMER_LINES
from broker.observe.counters import Counters
from broker.observe.group_lines import GROUP_LINES
from broker.observe.log_lines import LineTable, Sentence, shorten
from broker.observe.logger_levels import LogLevels
from broker.observe.node_lines import NODE_LINES
from broker.observe.storage_lines import STORAGE_LINES
from broker.observe.transaction_lines import TRANSACTION_LINES
from coordinator.classic.events import MemberAdded, MemberIdAssigned, NoMemberRejoined
from coordinator.consumer.events import ConsumerMemberFenced, TargetAssignmentRefused
from history.repeats import Repeats
from protocol.printable import printable

LOGGERS: Final[Mapping[str, LineTable]] = {
    "rollcall.groups": GROUP_LINES,
    "rollcall.consumer-groups": CONSUMER_LINES,
    "rollcall.node": NODE_LINES,
    "rollcall.log-cleaner": CLEANER_LINES,
    "rollcall.storage": STORAGE_LINES,
    "rollcall.transactions": TRANSACTION_LINES,
    "rollcall.audit": AUDIT_LINES,
}
"""The names for kafka-configs --entity-type broker-loggers."""

LOG_LINES: Final[LineTable] = {
    event_type: lines_of for table in LOGGERS.values() for event_type, lines_of in table.items()
}

_LOGGER_OF: Final = {event_type: name for name, table in LOGGERS.items() for event_type in table}


_Repeated = NoMemberRejoined | TargetAssignmentRefused | ConsumerMemberFenced
_REPEATED: Final = (NoMemberRejoined, TargetAssignmentRefused, ConsumerMemberFenced)
"""A client that retries brings these again and again."""


JOINS_WAITING_MAX: Final = 100
"""Events; their lines take half a millisecond."""

Later = Callable[[float, Callable[[], None]], object]
"""Calls a function after some seconds."""


def _is_join(event: object) -> bool:
    """Of a client without authentication: its lines are sentences without a principal."""
    if isinstance(event, MemberIdAssigned):
        return event.principal is None
    return isinstance(event, MemberAdded) and event.member.principal is None


def _repeat_key(event: _Repeated) -> Hashable:
    member_id = event.member_id if isinstance(event, ConsumerMemberFenced) else None
    return type(event), event.group_id, member_id


class Observer:
    """Called with every event of every part. Never raises: a lost log line is no failure."""

    def __init__(
        self,
        log: structlog.typing.FilteringBoundLogger,
        root_level: str = "debug",
        write_sentences: "WriteSentences | None" = None,
    ) -> None:
        """`root_level`: the least level that is written, until it is changed. `write_sentences`: a
        shorter way to write most lines.
        """
        self.levels = LogLevels(LOGGERS, root_level)
        self._log = log
        self._write_sentences = write_sentences
        self._joins: list[tuple[float, object]] = []  # seconds since the epoch, and what happened
        self._write_joins_later: Callable[[], object] | None = None  # without it no line waits
        self._write = {
            level: getattr(log, level) for level in ("debug", "info", "warning", "error")
        }
        self.counters = Counters()
        self.lines_lost = 0
        self._repeats = Repeats()

    def let_joins_wait(self, linger_s: float, call_later: Later) -> None:
        """0: each line is written at once, as it is without a short way to write many."""
        if linger_s and self._write_sentences is not None:
            self._write_joins_later = partial(call_later, linger_s, self.write_joins)

    def end_wait_of_joins(self) -> None:
        """Write those that wait. Later ones do not wait: the loop ends."""
        self._write_joins_later = None
        self.write_joins()

    def __call__(self, event: object) -> None:
        self.counters.count(event)
        lines_of = LOG_LINES.get(type(event))
        if lines_of is None:
            return
        if self._write_joins_later is not None and _is_join(event):
            self._joins.append((time(), event))
            if len(self._joins) == 1:
                self._write_joins_later()
            elif len(self._joins) >= JOINS_WAITING_MAX:
                self.write_joins()
            return
        self.write_joins()
        times = 1
        if isinstance(event, _REPEATED):
            times = self._repeats.count(_repeat_key(event), event.at_ms) or 0
            if not times:
                return
        try:
            for level, message, fields in lines_of(event):
                if not self.levels.writes(_LOGGER_OF[type(event)], level):
                    continue
                if (
                    self._write_sentences is not None
                    and isinstance(message, Sentence)
                    and "principal" not in fields
                    and times == 1
                ):
                    self._write_sentences([(time(), level, message)])
                    continue
                plain = {
                    key: value.value if isinstance(value, StrEnum) else value
                    for key, value in fields.items()
                }
                if times > 1:
                    plain["times"] = times
                self._write[level](message, **plain)
        except OSError:
            self.lines_lost += 1  # stderr is closed, or its disk is full

    def write_joins(self) -> None:
        """The lines of joins that wait."""
        if not self._joins:
            return
        joins, self._joins = self._joins, []
        lines: list[TimedSentence] = []
        for at_s, event in joins:
            for level, message, _ in LOG_LINES[type(event)](event):
                assert isinstance(message, Sentence)
                if self.levels.writes(_LOGGER_OF[type(event)], level):
                    lines.append((at_s, level, message))
        try:
            if lines and self._write_sentences is not None:
                self._write_sentences(lines)
        except OSError:
            self.lines_lost += len(lines)


def _shorten(
    _log: object, _level: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    for key, value in line.items():
        if not isinstance(value, Sentence):  # its values are shortened already
            line[key] = _short(value)
    return line


def _short(value: object) -> object:
    if isinstance(value, BaseException):
        value = str(value)
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, list | tuple):
        return [_short(item) for item in value]
    return value


_BESIDE_SENTENCES: Final = ("event", "principal", "level", "timestamp")
"""A principal is there for authenticated clients alone: Kafka's log does not say who they are."""


def _drop_fields_of_sentences(
    _log: object, _level: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """For people: Kafka's sentence has its values in it; only a principal follows it."""
    if not isinstance(line["event"], Sentence):
        return line
    return {key: line[key] for key in _BESIDE_SENTENCES if key in line}


def _escape(
    _log: object, _level: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """For people: what a client chose as its group's id does not reach the terminal raw."""
    for key, value in line.items():
        if isinstance(value, str):
            line[key] = printable(value)
        elif isinstance(value, BaseException):
            line[key] = printable(str(value))
    return line


def open_log(style: str, level: str, stream: TextIO) -> structlog.typing.FilteringBoundLogger:
    """The log of this process: `style` is human or json, `level` the least that is written."""
    render: structlog.typing.Processor
    for_people: list[structlog.typing.Processor]
    if style == "json":
        render = structlog.processors.JSONRenderer(default=str)
        for_people = []
    else:
        render = structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), pad_event_to=0, sort_keys=False
        )
        for_people = [_drop_fields_of_sentences, _escape]
    bound: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _shorten,
            *for_people,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        context_class=dict,
    ).bind()
    return bound


_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


TimedSentence = tuple[float, str, Sentence]
"""Seconds since the epoch, level, sentence."""

WriteSentences = Callable[[list[TimedSentence]], None]


def sentence_writer(style: str, stream: TextIO) -> WriteSentences | None:
    """Writes sentences as `open_log` does: 5 µs in place of 16, of 2 for each member that joins.

    None where lines have more than a time, a level and a sentence: JSON, or colors.
    """
    if style != "human" or stream.isatty():
        return None
    logger = structlog.WriteLogger(stream)

    def write(sentences: list[TimedSentence]) -> None:
        lines = []
        for at_s, level, sentence in sentences:
            at = datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
            lines.append(f"{at} [{level:<9}] {printable(sentence)}")
        logger.msg("\n".join(lines))

    return write


def log_to_stderr(style: str, level: str) -> Observer:
    log = open_log(style, "debug", sys.stderr)
    return Observer(log, level, sentence_writer(style, sys.stderr))
