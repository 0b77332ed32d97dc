"""Golden answers about ACLs: records what a Kafka 4.3.1 answers to odd and usual requests.

    python -m tests.topics.golden.make_acls PORT

PORT is of a fresh Kafka with `authorizer.class.name` and `super.users=User:ANONYMOUS`. Each line of
`acls.txt` is the answer to the request of this place in `REQUESTS`, as JSON, or "closed". Lists
that Kafka keeps in hash maps are sorted.
"""

import sys
from pathlib import Path
from typing import Final

import msgspec

from protocol.messages import Request, Response
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from tests.compare.wire import Closed, Wire

GOLDEN: Final = Path(__file__).parent / "acls.txt"
CLOSED: Final = "closed"
VERSION: Final = 3

ANSWERS: Final[dict[type[Request], type[Response]]] = {
    CreateAclsRequest: CreateAclsResponse,
    DescribeAclsRequest: DescribeAclsResponse,
    DeleteAclsRequest: DeleteAclsResponse,
}

_GOOD: Final = (2, "t", 3, "User:amy", "*", 3, 3)

_CREATED: Final = (
    [_GOOD],
    [_GOOD, _GOOD],
    [(2, "", 3, "User:amy", "*", 3, 3), _GOOD],
    [(4, "bogus", 3, "User:amy", "*", 3, 3), _GOOD],
    [(4, "", 3, "User:amy", "*", 3, 3)],
    [(4, "kafka-cluster", 4, "User:amy", "*", 3, 3)],
    [(2, "t", 3, "amy", "*", 3, 3), _GOOD, (2, "t2", 3, ":", "*", 3, 3)],
    [(2, "t2", 3, "User:", "*", 3, 3), (2, "t2", 3, "", "*", 3, 3)],
    [(2, "", 3, "amy", "*", 99, 99), (99, "t", 99, "amy", "*", 3, 3)],
    [(2, "t", 3, "User:amy", "*", 1, 3), (2, "t9", 3, "User:amy", "*", 3, 3)],
    [(2, "t", 3, "User:amy", "*", 3, 1)],
    [(1, "t", 3, "User:amy", "*", 3, 3)],
    [(2, "t", 1, "User:amy", "*", 3, 3)],
    [(2, "t", 2, "User:amy", "*", 3, 3)],
    [(0, "t", 3, "User:amy", "*", 3, 3)],
    [(2, "t", 0, "User:amy", "*", 3, 3)],
    [(2, "t", 3, "User:amy", "*", 0, 3)],
    [(2, "t", 3, "User:amy", "*", 3, 0)],
    [(99, "t", 3, "User:amy", "*", 3, 3), (2, "t", 99, "User:amy", "*", 3, 3)],
    [(2, "t", 3, "User:amy", "*", 99, 3), (2, "t", 3, "User:amy", "*", 3, 99)],
    [(2, "t", 3, "User:amy", "", 3, 3), (2, "t", 3, "User:amy", "no host", 3, 3)],
    [(2, "x" * 300, 3, "User:amy", "*", 3, 3), (2, "no/topic", 4, "User:*", "*", 2, 2)],
    [(4, "kafka-cluster", 3, "User:amy", "*", 12, 3), (7, "User:bob", 3, "User:amy", "*", 13, 3)],
    [(2, "t", 3, "User:amy", "*", 14, 3), (3, "t", 3, "User:amy", "*", 15, 3)],
    [(2, "*", 3, "User:*", "*", 8, 3), (2, "*", 4, "User:*", "*", 8, 3)],
    [],
)

_FOUND: Final = (
    (2, "t", 3, None, None, 1, 1),
    (1, None, 1, None, None, 1, 1),
    (1, None, 2, None, None, 1, 1),
    (2, "t2", 2, None, None, 1, 1),
    (2, "t2", 1, None, None, 1, 1),
    (2, "*", 2, None, None, 1, 1),
    (2, "no/topic/at-all", 2, None, None, 1, 1),
    (1, "t", 3, "User:amy", "*", 3, 3),
    (1, None, 4, None, None, 1, 1),
    (1, "", 1, None, None, 1, 1),
    (1, None, 1, "", "", 1, 1),
    (1, None, 1, None, None, 1, 2),
    (1, None, 1, None, None, 2, 1),
    (99, None, 1, None, None, 1, 1),
    (1, None, 99, None, None, 1, 1),
    (1, None, 1, None, None, 99, 1),
    (1, None, 1, None, None, 1, 99),
    (0, None, 1, None, None, 1, 1),
    (1, None, 0, None, None, 1, 1),
    (1, None, 1, None, None, 0, 1),
    (1, None, 1, None, None, 1, 0),
)

_DELETED: Final = (
    [
        (99, None, 1, None, None, 1, 1),
        (1, None, 1, None, None, 99, 1),
        (99, None, 1, None, None, 99, 1),
    ],
    [(2, "t", 3, None, None, 4, 1), (2, "t", 3, None, None, 3, 1), (2, "t", 3, None, None, 3, 1)],
    [(0, None, 1, None, None, 1, 1), (2, "t2", 3, None, None, 1, 1)],
    [(2, "t2", 2, "User:", None, 1, 1)],
    [],
    [(1, None, 2, None, None, 1, 1), (1, None, 1, None, None, 1, 1)],
    [(1, None, 1, None, None, 1, 1)],
)

REQUESTS: Final[tuple[Request, ...]] = (
    *(CreateAclsRequest([AclCreation(*each) for each in creations]) for creations in _CREATED),
    *(DescribeAclsRequest(*each) for each in _FOUND),
    *(DeleteAclsRequest([DeleteAclsFilter(*each) for each in filters]) for filters in _DELETED),
)


def main(port: int) -> None:
    GOLDEN.write_text("".join(f"{_answer(port, request)}\n" for request in REQUESTS))


def _answer(port: int, request: Request) -> str:
    wire = Wire(port, "golden")
    try:
        wire.send(request, VERSION)
        return written(wire.receive(ANSWERS[type(request)], VERSION))
    except Closed:
        return CLOSED


def written(answer: Response) -> str:
    content = msgspec.to_builtins(answer)
    for result in content.get("filter_results", ()):
        result["matching_acls"] = sorted(result["matching_acls"], key=repr)
    for resource in content.get("resources", ()):
        resource["acls"] = sorted(resource["acls"], key=repr)
    if "resources" in content:
        content["resources"] = sorted(content["resources"], key=repr)
    return msgspec.json.encode(content).decode()


if __name__ == "__main__":
    main(int(sys.argv[1]))
