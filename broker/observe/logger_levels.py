"""Logger levels: the loggers of this process, and the least level of which each writes lines.

The lines of one subject are one logger's. A logger without a level of its own has the root's,
which is `rollcall.log.level` at the start. A change is forgotten at a restart, as in Kafka.
Implements `topics.handlers.alter_broker_configs.LoggerLevels`.
Kafka's counterpart: `Log4jController`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from topics.handlers.alter_broker_configs import ROOT_LOGGER

_RANKS: Final = {"TRACE": 0, "DEBUG": 1, "INFO": 2, "WARN": 3, "ERROR": 4, "FATAL": 5}
"""No line is written at TRACE or FATAL: the first is as DEBUG, the second writes nothing."""

_KAFKAS_NAMES: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}


class LogLevels:
    """Implements LoggerLevels; `writes` is asked for each line."""

    def __init__(self, loggers: Iterable[str], root: str) -> None:
        """`root`: a level as `rollcall.log.level` names it."""
        self._loggers = tuple(loggers)
        self._own = {ROOT_LOGGER: _KAFKAS_NAMES[root]}
        self._least: dict[str, int] = {}
        self._resolve()

    def writes(self, logger: str, level: str) -> bool:
        """`level`: as a log line has it."""
        return _RANKS[_KAFKAS_NAMES[level]] >= self._least[logger]

    def levels(self) -> Mapping[str, str]:
        root = self._own[ROOT_LOGGER]
        return {ROOT_LOGGER: root} | {name: self._own.get(name, root) for name in self._loggers}

    def set_level(self, logger: str, level: str | None) -> None:
        if level is None:
            assert logger != ROOT_LOGGER, "checked before"
            self._own.pop(logger, None)
        else:
            self._own[logger] = level
        self._resolve()

    def _resolve(self) -> None:
        self._least = {name: _RANKS[level] for name, level in self.levels().items()}
