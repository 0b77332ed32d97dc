"""Logger levels: which lines are written after a change."""

import io
import json

from broker.observe.logger_levels import LogLevels
from broker.observe.observer import LOGGERS, Observer, open_log
from protocol.names import TopicName
from topics.events import SaveFailed, TopicConfigsChanged

LINE = TopicConfigsChanged(TopicName("t"), {})


def test_a_logger_has_the_roots_level_until_it_has_its_own() -> None:
    levels = LogLevels(("a", "b"), "info")
    levels.set_level("a", "DEBUG")
    levels.set_level("root", "ERROR")
    assert levels.levels() == {"root": "ERROR", "a": "DEBUG", "b": "ERROR"}
    assert (levels.writes("a", "debug"), levels.writes("b", "warning")) == (True, False)
    levels.set_level("a", None)
    assert levels.levels()["a"] == "ERROR"


def test_fatal_writes_nothing_and_trace_everything() -> None:
    levels = LogLevels(("a",), "warning")
    levels.set_level("a", "FATAL")
    assert not levels.writes("a", "error")
    levels.set_level("a", "TRACE")
    assert levels.writes("a", "debug")


def test_the_lines_of_a_subject_follow_its_logger() -> None:
    stream = io.StringIO()
    observer = Observer(open_log("json", "debug", stream), "info")
    observer(LINE)
    observer.levels.set_level("rollcall.node", "ERROR")
    observer(LINE)
    observer(SaveFailed("x", "y"))
    levels = [json.loads(line)["level"] for line in stream.getvalue().splitlines()]
    assert levels == ["info", "error"]
    assert observer.levels.levels().keys() == {"root", *LOGGERS}
