"""Random requests of the data plane: with any values that a frame can hold: it is answered.

The counterpart of tests/coordinator/test_any_request.py, with the same frames of chance.
"""

import os
from random import Random
from typing import Final

import pytest

from protocol.acl_codes import AclOperation, ResourceType
from protocol.codec import Malformed, decode_request
from protocol.names import ApiKey
from seams.authorizer import Authorizer
from seams.principal import ANONYMOUS
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from tests.coordinator.frames import CONSUMER_GROUP_REQUESTS, COORDINATOR_REQUESTS, Frames
from tests.topics.plane import Plane

SEEDS: Final = int(os.environ.get("FUZZ_SEEDS", "30"))
STEPS: Final = 60
WAIT_MS: Final = 60_000
RIGHTS_SHARE: Final = 0.5

DATA_PLANE_REQUESTS: Final = tuple(sorted(Plane().data.handlers))
FRAME_BYTES_MAX: Final = 1_000_000


class RightsByChance(Authorizer):
    """Allows about half of what is asked, another half each time."""

    is_enabled = True

    def __init__(self, random: Random) -> None:
        self._random = random

    def allows(
        self,
        _token: ReplyToken,
        _operation: AclOperation,
        _resource_type: ResourceType,
        _name: str,
        /,
        *,
        logs_refusal: bool = True,
    ) -> bool:
        return self._random.random() < RIGHTS_SHARE


@pytest.mark.parametrize("rights", ["allowed", "by chance", "by ACLs"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_asked_is_answered_in_words_that_can_be_written(seed: int, rights: str) -> None:
    """`Plane` writes each answer in the version that was asked."""
    random = Random(seed)
    plane = Plane()
    plane.given("t", 2)
    if rights != "allowed":
        by_acls = AclAuthorizer(frozenset({ANONYMOUS}))
        plane.authorizer = RightsByChance(random) if rights == "by chance" else by_acls
        plane.restart()
    frames = Frames(random, DATA_PLANE_REQUESTS)
    frames.extreme = random.choice((0.1, 0.3, 0.5))
    frames.topic_ids.append(plane.topic_id("t").bytes)
    for _ in range(STEPS):
        frame = frames.next()
        if len(frame) > FRAME_BYTES_MAX:
            continue
        try:
            header, request = decode_request(frame, 0, len(frame))
        except Malformed:
            continue
        token = ReplyToken(header.api_version, header.client_id, "/127.0.0.1")
        try:
            plane.data.handlers[header.api_key](request, token, plane.now)
            if token not in plane.answers and token not in plane.closed_connections:
                plane.advance(WAIT_MS)
            assert (token in plane.answers) != (token in plane.closed_connections)
        except Exception as error:
            error.add_note(f"{header.api_key.name} v{header.api_version} {repr(request)[:500]}")
            raise


def test_the_data_plane_has_the_apis_of_no_other_core() -> None:
    others = {*COORDINATOR_REQUESTS, *CONSUMER_GROUP_REQUESTS, ApiKey.API_VERSIONS}

    assert not others & set(DATA_PLANE_REQUESTS)
