"""Release check: builds what would be published, and tries it in empty environments.

    make release-check          # needs a package index for the dependencies; a minute or two

In order: the version has a section in CHANGELOG.md; a wheel and a source distribution in
build/release; the wheel, the wheel of the source distribution, and `pipx install` each give a
command that answers, and the first a daemon and the pytest plugin; a bill of materials (CycloneDX);
checksums; and the tag, in a throw-away clone. Nothing is published and no tag is left.
docs/release.md is the recipe around it. Ends at the first fault, with exit code 1.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rollcall import __version__
from tests.architecture.tree import ROOT, tracked_files

OUT = ROOT / "build" / "release"

TRIAL = """
def test_daemon(rollcall):
    rollcall.create_topic("orders")
    rollcall.advance(60)
    assert rollcall.group("billing").state == "Dead"
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        check_changelog()
        wheel, sdist = build(work)
        environment = install(wheel, work / "wheel")
        try_daemon(environment, work)
        built_again = wheel_of(sdist, work)
        same_files(wheel, built_again)
        say("the command of the source distribution", version_of(install(sdist, work / "sdist")))
        say("pipx install", pipx(wheel, work))
        bill_of_materials(environment, work)
        checksums()
        say("git tag", tag(work))
    say("ready in", str(OUT.relative_to(ROOT)))


def check_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    is_there = f"## {__version__}" in text
    note = "" if is_there else " (no section yet: rename Unreleased before the tag)"
    say("version", f"{__version__}{note}")


def build(work: Path) -> tuple[Path, Path]:
    """From the files that git tracks, in another folder: what a build leaves behind is not ours."""
    source = work / "source"
    for path in tracked_files():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, source / path)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", OUT, source)
    run(sys.executable, "-c", "import setuptools; setuptools.setup()", "-q", "sdist",
        "--dist-dir", OUT, cwd=source)  # fmt: skip
    (wheel,), (sdist,) = OUT.glob("*.whl"), OUT.glob("*.tar.gz")
    say("built", f"{wheel.name}, {sdist.name}")
    return wheel, sdist


def install(package: Path, folder: Path, interpreter: Path = Path(sys.executable)) -> Path:
    """An empty environment with the package and its dependencies, as the index has them today."""
    run(interpreter, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", package)
    return folder


def version_of(environment: Path) -> str:
    return checked(run(environment / "bin" / "rollcall", "--version"))


def checked(said: str) -> str:
    """What `rollcall --version` said: the version, then the build and the interpreter."""
    assert said.startswith(f"rollcall {__version__} ("), said
    return said.strip()


def try_daemon(environment: Path, work: Path) -> str:
    """Serve a group; answers what the command says of its version."""
    version = version_of(environment)
    say("the command of the wheel", version)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "pytest")
    (work / "test_trial.py").write_text(TRIAL)
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_trial.py", cwd=work)
    assert "1 passed" in said, said
    say("a daemon by the pytest plugin", "1 passed")
    return version


def wheel_of(sdist: Path, work: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", work / "again", sdist)
    (built,) = (work / "again").glob("*.whl")
    return built


def same_files(first: Path, second: Path) -> None:
    listed = [
        run(sys.executable, "-m", "zipfile", "-l", each).splitlines() for each in (first, second)
    ]
    names = [{line.split()[0] for line in lines[1:]} for lines in listed]
    assert names[0] == names[1], names[0] ^ names[1]
    say("the wheel of the source distribution", f"has the same {len(names[0])} files")


def pipx(wheel: Path, work: Path) -> str:
    tools = work / "tools"
    run(sys.executable, "-m", "venv", tools)
    run(tools / "bin" / "python", "-m", "pip", "install", "-q", "pipx")
    home = {"PIPX_HOME": str(work / "pipx"), "PIPX_BIN_DIR": str(work / "bin")}
    run(tools / "bin" / "pipx", "install", wheel, **home)
    return checked(run(work / "bin" / "rollcall", "--version"))


def bill_of_materials(environment: Path, work: Path) -> None:
    """Of the wheel and what it needs, without pytest: from an environment of its own."""
    del environment
    (wheel,) = OUT.glob("*.whl")
    clean = install(wheel, work / "materials")
    tools = work / "tools"
    run(tools / "bin" / "python", "-m", "pip", "install", "-q", "cyclonedx-bom")
    out = OUT / f"rollcall-{__version__}.cdx.json"
    run(
        tools / "bin" / "cyclonedx-py",
        "environment",
        "--of",
        "JSON",
        "-o",
        out,
        clean / "bin" / "python",
    )
    names = {part["name"] for part in json.loads(out.read_text())["components"]}
    assert {"rollcall-broker", "msgspec", "uvloop"} <= names, names
    say("bill of materials", f"{out.name}, {len(names)} components")


def checksums() -> None:
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(OUT.iterdir())
    ]
    (OUT / "SHA256SUMS").write_text("".join(lines))


def tag(work: Path) -> str:
    """As docs/release.md says, in a clone: does the tag name what was built?"""
    clone, name = work / "clone", f"v{__version__}"
    run("git", "clone", "-q", "--shared", ROOT, clone)
    identity = ("-c", "user.name=release", "-c", "user.email=release@example.org")
    run("git", *identity, "tag", "-a", "-f", name, "-m", f"Rollcall {__version__}", cwd=clone)
    described = run("git", "describe", "--exact-match", cwd=clone).strip()
    assert described == name, described
    return described


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    words = [str(word) for word in command]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(what: str, found: str) -> None:
    print(f"{what}: {found}", flush=True)


if __name__ == "__main__":
    main()
