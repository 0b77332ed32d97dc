"""Worker imports: an archive is read again if it has changed, and only then."""

import gc
import importlib
import sys
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.worker_imports import keep_archives, prepare_worker


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """On the path, with one module that is imported from it."""
    path = tmp_path / "packages.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("in_archive_first.py", "NAME = 'first'")
    monkeypatch.syspath_prepend(str(path))
    importlib.import_module("in_archive_first")
    keep_archives()
    yield path
    for name in ("in_archive_first", "in_archive_second"):
        sys.modules.pop(name, None)
    sys.path_importer_cache.pop(str(path), None)


def test_an_unchanged_archive_is_not_read_again(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = zipimport.zipimporter.invalidate_caches

    def invalidate(importer: zipimport.zipimporter) -> None:
        read.append(importer.archive)
        original(importer)

    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", invalidate)

    importlib.invalidate_caches()

    assert str(archive) not in read


def test_what_is_added_to_an_archive_can_be_imported(archive: Path) -> None:
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("in_archive_second.py", "NAME = 'second'")

    importlib.invalidate_caches()

    assert importlib.import_module("in_archive_second").NAME == "second"


def test_an_archive_that_is_gone_does_no_harm(archive: Path) -> None:
    archive.unlink()

    importlib.invalidate_caches()

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("in_archive_second")


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """The collector sees everything before and after."""
    prepare_worker.cache_clear()
    gc.unfreeze()
    yield
    gc.unfreeze()
    prepare_worker.cache_clear()


@pytest.mark.usefixtures("unfrozen")
def test_what_a_worker_has_imported_is_not_searched_after_each_task() -> None:
    prepare_worker()
    of_first_task = gc.get_freeze_count()
    kept = [[number] for number in range(1_000)]

    prepare_worker()

    assert of_first_task > len(gc.get_objects())
    assert gc.get_freeze_count() <= of_first_task
    assert kept
