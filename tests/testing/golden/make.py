"""Golden error responses: what Kafka 4.3.1's request classes answer to an error.

    python -m tests.testing.golden.make LIBS    # LIBS: the libs directory of a Kafka 4.3.1

Needs Java on the PATH; the tests do not: they compare with what was recorded, one line for each API
and version. A line without `response` is one where Kafka's class makes none.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from msgspec.structs import replace

from protocol.codec import RequestHeader, decode_request, encode_request
from protocol.messages import REQUESTS, Request
from protocol.messages.create_acls import CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsRequest
from protocol.messages.produce import ProduceRequest
from protocol.names import ApiKey
from protocol.schema import ArrayOf, Message, Struct, StructOf, fields_of
from tests.protocol.samples import sample

HERE = Path(__file__).parent
ERROR = "NOT_COORDINATOR"
VERSION_ERROR = "UNSUPPORTED_VERSION"


def main(libs: Path) -> None:
    asked = list(requests())
    recorded = subprocess.run(
        ["java", "-cp", f"{libs}/*", HERE / "ErrorRecorder.java"],
        input="".join(
            f"{int(key)} {version} {error_of(key)} {body.hex()}\n" for key, version, body in asked
        ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    lines = []
    for (api_key, version, body), answer in zip(asked, recorded, strict=True):
        entry: dict[str, object] = {"api": api_key.name, "version": version, "request": body.hex()}
        if answer.startswith("!"):
            print(api_key.name, version, answer)
        elif answer != "none":
            entry["response"] = answer
        lines.append(json.dumps(entry))
    (HERE / "error_responses.jsonl").write_text("".join(f"{line}\n" for line in lines))


def error_of(api_key: ApiKey) -> str:
    return VERSION_ERROR if api_key is ApiKey.API_VERSIONS else ERROR


def requests() -> Iterator[tuple[ApiKey, int, bytes]]:
    """(API, version, body): one whose arrays have elements, wherever a sample can have some."""
    for api_key, cls in REQUESTS.items():
        for version in cls.VERSIONS:
            header = RequestHeader(api_key, version, 1, "")
            for seed in range(10_000):
                request = possible(sample(cls, version, Random(f"{api_key} {version} {seed}")))
                if full(request, version):
                    break
            frame = encode_request(header, request)
            yield api_key, version, frame[_head(api_key, version, header) :]


def possible(request: Request) -> Request:
    """With values that Kafka's class of this request reads at all."""
    match request:
        case ProduceRequest():
            topics = [
                replace(
                    topic, partition_data=[replace(p, records=b"") for p in topic.partition_data]
                )
                for topic in request.topic_data
            ]
            return replace(request, acks=1, topic_data=topics)
        case CreateAclsRequest():
            acl = {"resource_type": 2, "resource_pattern_type": 3, "operation": 3}
            return replace(
                request,
                creations=[replace(each, permission_type=3, **acl) for each in request.creations],
            )
        case DeleteAclsRequest():
            acl = {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 3}
            return replace(
                request,
                filters=[replace(each, permission_type=3, **acl) for each in request.filters],
            )
        case _:
            return request


def _head(api_key: ApiKey, version: int, header: RequestHeader) -> int:
    """Bytes of the size and of the header: flexible versions have tags in it."""
    is_flexible = version >= REQUESTS[api_key].FLEXIBLE_SINCE
    return 4 + 8 + 2 + len(header.client_id) + is_flexible


def full(message: object, version: int) -> bool:
    """Whether no array of this version is empty, null, or names one thing twice."""
    assert isinstance(message, Message) or hasattr(message, "__struct_fields__")
    for spec in fields_of(type(message)):  # type: ignore[arg-type]  # as the assertion says
        if not spec.mark.in_version(version) or spec.mark.tag is not None:
            continue
        value = getattr(message, spec.name)
        if isinstance(spec.mark.wire, ArrayOf):
            if not value or len({_first(each, version) for each in value}) < len(value):
                return False
            if isinstance(spec.mark.wire.element, StructOf) and not all(
                full(each, version) for each in value
            ):
                return False
    return True


def decoded(api_key: ApiKey, version: int, body: bytes) -> Request:
    """The request of a recorded line."""
    header = RequestHeader(api_key, version, 1, "")
    frame = encode_request(header, REQUESTS[api_key]())
    frame = frame[4 : _head(api_key, version, header)] + body
    _, request = decode_request(frame, 0, len(frame))
    return request


def _first(element: object, version: int) -> str:
    """The name of an element: Kafka merges those that have the same."""
    if not isinstance(element, Struct):
        return repr(element)
    named = [spec for spec in fields_of(type(element)) if spec.mark.in_version(version)]
    return repr(getattr(element, named[0].name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
