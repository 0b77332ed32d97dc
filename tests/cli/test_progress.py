"""Progress bars: drawn on a terminal's standard error, and nowhere else."""

import io
import sys
import threading

import pytest

from cli.progress import ProgressBar, progress_bar


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "%" in text:
            self.drawn.set()
        return super().write(text)


def test_a_terminal_shows_how_much_is_done_and_is_clean_afterwards(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("Checking", lambda: 0.5) as bar:
        assert terminal.drawn.wait(60)
        bar.echo("a finding")
    assert "Checking [###############---------------]  50%" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().out == "a finding\n"


def test_elsewhere_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Checking", lambda: 1 / 0) as bar:
        bar.echo("a finding")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a finding\n", "")


def test_more_than_all_is_all(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressBar("Checking", lambda: 7.0).draw()
    assert "] 100%" in capsys.readouterr().err
