"""Authorization: what each request is answered without one of the rights that it needs.

Every request of `authorization_cases.py` is sent in the version of its row, and in the oldest and
the newest one that are served.
"""

from collections.abc import Iterator

import msgspec
import pytest

from protocol.messages import Response
from protocol.names import ApiKey
from tests.topics.handlers.authorization_cases import ANY, CASES, Case, Codes, api_key, given
from tests.topics.plane import Plane
from tests.topics.rights import Right, Rights
from topics.handlers.cluster_rights import CLUSTER_RIGHTS

FREE: frozenset[ApiKey] = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        # These ask for a right on the user: test_authorized_tokens.py.
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
"""Requests that need no right on a topic, a group, a transactional id or the cluster."""

TRIED = [
    pytest.param(case, version, id=f"{case.name} v{version}")
    for case in CASES
    for version in case.tried
]
REFUSED = [
    pytest.param(case, version, missing, codes, id=f"{case.name} v{version} without {number}")
    for case in CASES
    for version in case.tried
    for number, (missing, codes) in enumerate(case.without.items())
]


def errors_in(value: object) -> Iterator[int]:
    """Every error code of an answer that is not 0, in its order."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            field = getattr(value, name)
            if name == "error_code" and field:
                yield int(field)
            yield from errors_in(field)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from errors_in(each)


def answer(case: Case, version: int, rights: Rights | None) -> Response:
    """What a client with these rights is answered; None: there is no authorizer."""
    plane = Plane()
    given(plane)
    request = case.build(plane)
    if rights is not None:
        plane.authorizer = rights
        plane.restart()
    response = plane.answers[plane.send(request, version)]
    assert response is not None
    return response


def errors(codes: Codes) -> list[int]:
    return [code for code in codes if code]


@pytest.mark.parametrize(("case", "version", "missing", "codes"), REFUSED)
def test_a_request_without_a_right_is_refused(
    case: Case, version: int, missing: Right | None, codes: Codes
) -> None:
    granted = [] if missing is ANY else [right for right in case.needs if right != missing]

    assert list(errors_in(answer(case, version, Rights(*granted)))) == errors(codes)


@pytest.mark.parametrize(("case", "version"), TRIED)
def test_the_rights_of_the_table_are_enough(case: Case, version: int) -> None:
    rights = Rights(*case.needs)

    assert list(errors_in(answer(case, version, rights))) == errors(case.allowed)


@pytest.mark.parametrize(("case", "version"), TRIED)
def test_with_all_rights_an_answer_is_that_of_a_broker_without_acls(
    case: Case, version: int
) -> None:
    rights = Rights()
    rights.grant_all()

    assert answer(case, version, rights) == answer(case, version, None)
    assert rights.logged == []


def test_every_request_of_the_data_plane_asks_for_a_right() -> None:
    asking = {api_key(case) for case in CASES}

    assert asking | FREE == set(Plane().data.handlers)
    assert set(CLUSTER_RIGHTS) <= asking
