"""Audit file: private, followed when it is moved, and no failure reaches the broker."""

from pathlib import Path

from broker.audit.file import AuditFile


def test_lines_are_appended_to_a_private_file(tmp_path: Path) -> None:
    path, reports = tmp_path / "audit.log", list[str | None]()
    for line in (b"first", b"second"):
        file = AuditFile(str(path), reports.append)
        file.write(line)
        file.close(60)
    assert path.read_text() == "first\nsecond\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert reports == []


def test_a_failure_is_reported_once_and_lines_are_counted(tmp_path: Path) -> None:
    reports = list[str | None]()
    file = AuditFile(str(tmp_path / "none" / "audit.log"), reports.append)
    for _ in range(100):
        file.write(b"line")
    file.close(60)
    assert len(reports) == 1
    assert file.lost == 100


def test_a_file_that_was_moved_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(str(path), lambda _: None)
    file.append([b"first"])
    path.rename(tmp_path / "old")
    file.append([b"second"])
    file.close(60)
    assert (tmp_path / "old").read_text() == "first\n"
    assert path.read_text() == "second\n"
