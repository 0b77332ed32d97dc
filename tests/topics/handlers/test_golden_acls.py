"""Golden answers about ACLs: the same as a Kafka 4.3.1 gave to the same requests, one by one."""

from protocol.names import ErrorCode
from seams.principal import ANONYMOUS
from security.acls.authorizer import AclAuthorizer
from tests.topics.golden.make_acls import ANSWERS, CLOSED, GOLDEN, REQUESTS, VERSION, written
from tests.topics.plane import Plane


def test_kafka_answers_the_same() -> None:
    plane = Plane(authorizer=AclAuthorizer(frozenset({ANONYMOUS})))
    recorded = GOLDEN.read_text().splitlines()
    for request, expected in zip(REQUESTS, recorded, strict=True):
        token = plane.send(request, VERSION)
        answer = plane.answers.get(token)
        if answer is None:
            assert plane.closed_connections[-1] is token
            assert expected == CLOSED, request
        else:
            assert isinstance(answer, ANSWERS[type(request)])
            assert written(answer) == expected, request


def test_the_recording_has_refusals_and_closed_connections() -> None:
    recorded = GOLDEN.read_text()
    assert recorded.splitlines().count(CLOSED) >= 8
    assert f'"error_code":{ErrorCode.INVALID_REQUEST.value}' in recorded
    assert f'"error_code":{ErrorCode.UNKNOWN_SERVER_ERROR.value}' in recorded
