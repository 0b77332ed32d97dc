"""Golden bytes: records Kafka 4.3.1's declarations of messages, and how its classes write them.

    python -m tests.protocol.golden.make LIBS    # LIBS: the libs directory of a Kafka 4.3.1

Needs Java on the PATH; the tests do not: they compare with what was recorded.
`schemas.txt` is a listing of the JSON schemas inside the kafka-clients jar. `messages.jsonl` has a
value for each message and version, and the bytes that Kafka's class wrote for it.
"""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from protocol.messages import REQUESTS, RESPONSES
from protocol.schema import Message
from tests.protocol.golden.kafka_json import to_json
from tests.protocol.golden.listing import header, line
from tests.protocol.samples import EVERY_MESSAGE, sample

HERE = Path(__file__).parent


def main(libs: Path) -> None:
    with zipfile.ZipFile(next(libs.glob("kafka-clients-4.3.1.jar"))) as jar:
        listings = [
            _listing(_schema(jar, cls.__name__), cls)
            for cls in (*REQUESTS.values(), *RESPONSES.values())
        ]
    (HERE / "schemas.txt").write_text("\n\n".join(listings) + "\n")
    (HERE / "messages.jsonl").write_text("".join(f"{entry}\n" for entry in _recorded(libs)))


def _schema(jar: zipfile.ZipFile, name: str) -> dict[str, Any]:
    text = jar.read(f"common/message/{name}.json").decode()
    schema: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return schema


def _listing(schema: dict[str, Any], cls: type[Message]) -> str:
    # InitProducerId v6 is unstable in 4.3.1: not advertised, and not declared by us.
    stop = cls.VERSIONS.stop if schema.get("latestVersionUnstable") else 1 << 15
    versions = [v for v in _versions(schema["validVersions"]) if v < stop]
    if cls.__name__ == "InitProducerIdResponse":
        versions = [*cls.VERSIONS]
    flexible = [v for v in versions if v in _versions(schema["flexibleVersions"])]
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    lines = _fields(schema["fields"], versions, "  ", common)
    return "\n".join([header(schema["name"], versions, flexible), *lines])


def _fields(
    fields: list[dict[str, Any]], versions: Sequence[int], indent: str, common: dict[str, Any]
) -> Iterator[str]:
    for field in fields:
        present = [v for v in versions if v in _versions(field["versions"])]
        if not present:
            continue
        nullable = _versions(field.get("nullableVersions", "none"))
        is_tagged_struct = field["type"][0].isupper() and "tag" in field
        yield indent + line(
            re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", field["name"]).lower(),
            field["type"],
            present,
            nullable=[] if is_tagged_struct else [v for v in present if v in nullable],
            default=_default(field),
            tag=field.get("tag"),
            ignorable=field.get("ignorable", False) and len(present) < len(versions),
        )
        inner = field.get("fields") or common.get(field["type"].removeprefix("[]"), [])
        yield from _fields(inner, present, indent + "  ", common)


def _versions(text: str) -> range:
    if text == "none":
        return range(0)
    first, _, last = text.rstrip("+").partition("-")
    if text.endswith("+"):
        return range(int(first), 1 << 15)
    return range(int(first), int(last or first) + 1)


def _default(field: dict[str, Any]) -> object:
    """The default as our class has it: Kafka's JSON has strings for all of them, or nothing."""
    written = field.get("default")
    match field["type"]:
        case _ if written == "null":
            return None
        case array if array.startswith("[]"):
            return ()
        case "string":
            return written or ""
        case "bytes":
            return b""
        case "float64":
            return float(str(written or 0))
        case "bool":
            return str(written).lower() == "true"
        case "uuid":
            return UUID(int=0)
        case "records":
            return None
        case _:
            return int(str(written or 0), 0)


def _recorded(libs: Path) -> Iterator[str]:
    entries = []
    for cls, version in EVERY_MESSAGE:
        message = sample(cls, version, Random(f"golden {cls.__name__} {version}"))
        entries.append((cls.__name__, version, to_json(message, version)))
    recorded = subprocess.run(
        ["java", "-cp", f"{libs}/*", HERE / "Recorder.java"],
        input="".join(
            f"{name}Data {version} {json.dumps(value)}\n" for name, version, value in entries
        ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    for (name, version, value), hex_bytes in zip(entries, recorded, strict=True):
        yield json.dumps(
            {"message": name, "version": version, "bytes": hex_bytes, "value": value},
            ensure_ascii=False,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
