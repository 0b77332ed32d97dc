"""SCRAM credentials: what clients add, change and delete, what is kept, and what no log shows.

The refusals are compared with a real Kafka's in tests/compare (administration); here is what a
comparison does not see: durability, the disk's errors, limits, and that the password fits.
"""

import json
from hashlib import pbkdf2_hmac

import pytest

from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from protocol.names import ErrorCode
from security.sasl.scram_credential import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramCredential,
    format_credential,
    scram_credential,
)
from storage.api import NewerFormat
from tests.topics.plane import Plane
from topics.events import SaveFailed, ScramCredentialsChanged, ScramCredentialsLost
from topics.handlers import user_scram_credentials
from topics.scram_store import ScramCredentialsDamaged

SHA_256, SHA_512 = 1, 2
DONE = (ErrorCode.NONE, None)

# The salted password "secret", as a client computes it.
SALTED = bytes.fromhex("aa") * 32
PASSWORD = "secret"


def alter(
    plane: Plane,
    *changes: ScramCredentialDeletion | ScramCredentialUpsertion,
) -> dict[str, ErrorCode]:
    request = AlterUserScramCredentialsRequest(
        [each for each in changes if isinstance(each, ScramCredentialDeletion)],
        [each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    results = plane.ask(request, 0, AlterUserScramCredentialsResponse).results
    assert len({result.user for result in results}) == len(results)
    return {result.user: result.error_code for result in results}


def upsertion(
    name: str, mechanism: int = SHA_256, iterations: int = 4_096, salt: bytes = b"salt"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, salt, SALTED)


def described(plane: Plane, *names: str) -> dict[str, tuple[ErrorCode, list[CredentialInfo]]]:
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in names] or None)
    answer = plane.ask(request, 0, DescribeUserScramCredentialsResponse)
    assert answer.error_code is ErrorCode.NONE
    return {
        result.user: (result.error_code, list(result.credential_infos)) for result in answer.results
    }


def test_a_credential_is_there_when_it_is_answered_and_after_a_kill(plane: Plane) -> None:
    assert alter(plane, upsertion("amy"), upsertion("bob", SHA_512, 16_384)) == {
        "amy": ErrorCode.NONE,
        "bob": ErrorCode.NONE,
    }
    for _ in range(2):
        assert described(plane) == {
            "amy": (ErrorCode.NONE, [CredentialInfo(SHA_256, 4_096)]),
            "bob": (ErrorCode.NONE, [CredentialInfo(SHA_512, 16_384)]),
        }
        assert plane.scram.credential(SCRAM_SHA_256, "amy") is not None
        assert plane.scram.credential(SCRAM_SHA_512, "amy") is None
        plane.restart()


def test_the_stored_keys_fit_the_password(plane: Plane) -> None:
    salted = pbkdf2_hmac("sha512", PASSWORD.encode(), b"pepper", 5_000)
    alter(plane, ScramCredentialUpsertion("amy", SHA_512, 5_000, b"pepper", salted))
    expected = scram_credential(SCRAM_SHA_512, PASSWORD, b"pepper", 5_000)
    assert plane.scram.credential(SCRAM_SHA_512, "amy") == expected
    assert salted.hex() not in plane.scram_file.content.hex()


def test_a_second_mechanism_and_a_new_password_and_a_deletion(plane: Plane) -> None:
    alter(plane, upsertion("amy"))
    assert alter(plane, upsertion("amy", SHA_512)) == {"amy": ErrorCode.NONE}
    assert alter(plane, upsertion("amy", iterations=8_192)) == {"amy": ErrorCode.NONE}
    assert described(plane, "amy")["amy"][1] == [
        CredentialInfo(SHA_256, 8_192),
        CredentialInfo(SHA_512, 4_096),
    ]
    assert alter(plane, ScramCredentialDeletion("amy", SHA_256)) == {"amy": ErrorCode.NONE}
    assert alter(plane, ScramCredentialDeletion("amy", SHA_256)) == {
        "amy": ErrorCode.RESOURCE_NOT_FOUND
    }
    assert alter(plane, ScramCredentialDeletion("amy", SHA_512)) == {"amy": ErrorCode.NONE}
    assert described(plane) == {}
    plane.restart()
    assert described(plane) == {}


def test_a_user_that_is_named_twice_is_not_changed(plane: Plane) -> None:
    alter(plane, upsertion("amy"))
    twice = ErrorCode.DUPLICATE_RESOURCE
    pairs = (
        (upsertion("bob"), upsertion("bob", SHA_512)),
        (ScramCredentialDeletion("amy", SHA_256), upsertion("amy", SHA_512)),
        (ScramCredentialDeletion("amy", SHA_256), ScramCredentialDeletion("amy", SHA_256)),
    )
    for pair in pairs:
        assert alter(plane, *pair, upsertion("cleo")) == {pair[0].name: twice, "cleo": DONE[0]}
    assert described(plane).keys() == {"amy", "cleo"}
    # The first error counts.
    assert alter(plane, ScramCredentialDeletion("bob", SHA_256), upsertion("bob")) == {
        "bob": ErrorCode.RESOURCE_NOT_FOUND
    }


def test_one_error_does_not_hold_back_other_users(plane: Plane) -> None:
    answers = alter(plane, upsertion("amy", iterations=4_095), upsertion("bob"), upsertion("", 1))
    assert answers == {
        "amy": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "bob": ErrorCode.NONE,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }
    assert described(plane).keys() == {"bob"}
    assert alter(plane, upsertion("amy", 3), upsertion("cleo", SHA_256, 16_385)) == {
        "amy": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "cleo": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }


def test_sizes_and_the_number_of_users_are_limited(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ErrorCode.UNACCEPTABLE_CREDENTIAL
    longest = "a" * user_scram_credentials.USER_NAME_MAX
    assert alter(plane, upsertion(longest, salt=b"s" * 1_024))[longest] is ErrorCode.NONE
    assert alter(plane, upsertion(longest + "a"))[longest + "a"] is refused
    assert alter(plane, upsertion("amy", salt=b"s" * 1_025))["amy"] is refused
    empty = ScramCredentialUpsertion("amy", SHA_256, 4_096, b"salt", b"")
    assert alter(plane, empty)["amy"] is refused

    monkeypatch.setattr(user_scram_credentials, "SCRAM_USERS_MAX", 2)
    assert alter(plane, upsertion("amy"), upsertion("bob")) == {
        "amy": ErrorCode.NONE,
        "bob": refused,
    }
    assert alter(plane, upsertion("amy", SHA_512)) == {"amy": ErrorCode.NONE}


def test_a_disk_that_fails_changes_nothing(plane: Plane) -> None:
    alter(plane, upsertion("amy"))
    plane.scram_file.fail_next = OSError(28, "No space left on device")
    answers = alter(plane, upsertion("bob"), upsertion("", 1))
    assert answers == {
        "bob": ErrorCode.KAFKA_STORAGE_ERROR,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }
    assert described(plane).keys() == {"amy"}
    assert len(plane.events_of(SaveFailed)) == 1
    assert alter(plane, upsertion("bob")) == {"bob": ErrorCode.NONE}


def test_what_changes_nothing_is_not_saved(plane: Plane) -> None:
    alter(plane, upsertion("amy"))
    saves = plane.scram_file.saves
    alter(plane, upsertion("amy"))
    alter(plane, upsertion("bob", iterations=1))
    assert plane.scram_file.saves == saves


def test_salts_of_unknown_users_survive_a_restart(plane: Plane) -> None:
    alter(plane, upsertion("amy"))
    before = plane.scram.made_up(SCRAM_SHA_256, "nobody")
    plane.restart()
    assert plane.scram.made_up(SCRAM_SHA_256, "nobody") == before
    assert plane.scram.made_up(SCRAM_SHA_512, "nobody").salt != before.salt


def test_unknown_users_have_the_iterations_of_the_others(plane: Plane) -> None:
    alter(plane, upsertion("amy", iterations=9_000))
    assert plane.scram.made_up(SCRAM_SHA_256, "nobody").iterations == 9_000
    plane.restart()
    assert plane.scram.made_up(SCRAM_SHA_256, "nobody").iterations == 9_000
    assert plane.scram.made_up(SCRAM_SHA_512, "nobody").iterations == 4_096


CREDENTIAL = format_credential(scram_credential(SCRAM_SHA_256, PASSWORD, b"salt", 4_096))
DAMAGES = {
    "torn": b'{"format": 1, "users": {"amy',
    "a flipped bit": None,
    "no users": b'{"format": 1, "secret_of_salts": ""}',
    "a list": b"[]",
    "nested": b"[" * 100_000,
    "no credential": b'{"format": 1, "users": {"amy": {}}, "secret_of_salts": ""}',
    "an unknown mechanism": json.dumps(
        {"format": 1, "users": {"amy": {"SCRAM-MD5": CREDENTIAL}}, "secret_of_salts": ""}
    ).encode(),
    "no text": b'{"format": 1, "users": {"amy": {"SCRAM-SHA-256": 1}}, "secret_of_salts": ""}',
    "half a credential": json.dumps(
        {
            "format": 1,
            "users": {"amy": {SCRAM_SHA_256: CREDENTIAL[:60]}},
            "secret_of_salts": "",
        }
    ).encode(),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_prevents_the_start_and_is_kept_by_a_repair(
    plane: Plane, damage: str
) -> None:
    alter(plane, upsertion("amy"))
    flipped = plane.scram_file.content.replace(b"iterations=4096", b"iterations=4097")
    content = DAMAGES[damage] or flipped
    plane.scram_file.content = content
    with pytest.raises(ScramCredentialsDamaged) as damaged:
        plane.restart()
    assert "stored_key" not in str(damaged.value)
    assert "--repair" in str(damaged.value.remedy)
    plane.repair = True
    plane.restart()
    assert plane.scram.was_repaired
    assert plane.scram_file.kept == [content]
    assert len(plane.events_of(ScramCredentialsLost)) == 1
    plane.repair = False
    plane.restart()
    assert described(plane) == {}


def test_a_file_of_a_newer_version_is_left_alone(plane: Plane) -> None:
    plane.scram_file.content = b'{"format": 2}'
    plane.repair = True
    with pytest.raises(NewerFormat):
        plane.restart()


def test_a_change_is_an_event_without_keys(plane: Plane) -> None:
    alter(plane, upsertion("amy"), upsertion("bob", SHA_512, 16_384))
    alter(plane, ScramCredentialDeletion("bob", SHA_512))
    assert plane.events_of(ScramCredentialsChanged) == [
        ScramCredentialsChanged("amy", SCRAM_SHA_256, 4_096),
        ScramCredentialsChanged("bob", SCRAM_SHA_512, 16_384),
        ScramCredentialsChanged("bob", SCRAM_SHA_512, None),
    ]
    credential = plane.scram.credential(SCRAM_SHA_256, "amy")
    assert isinstance(credential, ScramCredential)
    assert "stored" not in repr(plane.events)
