"""SCRAM credentials of users: described, added, changed and deleted by clients.

A client that sets a password sends its salted hash; from that the stored keys are derived. Kafka
has no limits on names, salts and users; ours keep the file small. It fails an empty hash with
UNKNOWN_SERVER_ERROR. Who may ask is checked before (`cluster_rights.py`).
Kafka's counterparts: `ScramImage.describe`, `ScramControlManager.alterCredentials`.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from protocol.names import ErrorCode
from security.sasl.scram_credential import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SCRAM_MECHANISM_IDS,
    ScramCredential,
    credential_of_salted_password,
)
from topics.admin_queue import Steps
from topics.api_error import ApiError, disk_error
from topics.scram_store import SCRAM_USERS_MAX, ScramStore

USER_NAME_MAX: Final = 1_024
_BYTES_MAX: Final = 1_024  # of a salt, and of a salted password, which has 32 or 64

_DONE: Final = ApiError(ErrorCode.NONE, None)
_NO_NAME: Final = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_UNKNOWN_MECHANISM: Final = ApiError(
    ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
)
_TOO_FEW: Final = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY: Final = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_NOTHING_TO_DELETE: Final = ApiError(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
_TWICE: Final = ApiError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_TOO_LONG: Final = ApiError(
    ErrorCode.UNACCEPTABLE_CREDENTIAL,
    f"A user name has at most {USER_NAME_MAX} characters, a salt {_BYTES_MAX} bytes and a salted "
    f"password 1 to {_BYTES_MAX}",
)
_TOO_MANY_USERS: Final = ApiError(
    ErrorCode.UNACCEPTABLE_CREDENTIAL, f"There are {SCRAM_USERS_MAX} users already"
)

_Changes = dict[tuple[str, str], ScramCredential | None]


class UserScramCredentials:
    def __init__(self, store: ScramStore) -> None:
        self._store = store

    def describe(
        self, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        """Without names all users are asked for."""
        named = [user.name for user in request.users or ()]
        times = Counter(named or list(self._store.users))
        return DescribeUserScramCredentialsResponse(
            results=[self._described(name, is_repeated=count > 1) for name, count in times.items()]
        )

    def _described(self, name: str, *, is_repeated: bool) -> DescribeUserScramCredentialsResult:
        if is_repeated:
            return DescribeUserScramCredentialsResult(
                name,
                ErrorCode.DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{name}",
            )
        found = [
            CredentialInfo(number, credential.iterations)
            for number, mechanism in SCRAM_MECHANISM_IDS.items()
            if (credential := self._store.credential(mechanism, name)) is not None
        ]
        if not found:
            return DescribeUserScramCredentialsResult(
                name,
                ErrorCode.RESOURCE_NOT_FOUND,
                f"Attempt to describe a user credential that does not exist: {name}",
            )
        return DescribeUserScramCredentialsResult(name, ErrorCode.NONE, None, found)

    def alter(
        self, request: AlterUserScramCredentialsRequest
    ) -> Steps[AlterUserScramCredentialsResponse]:
        """One result for each user. A user that is named twice is not changed, as in Kafka."""
        results: dict[str, ApiError] = {}
        for deletion in request.deletions:
            self._check(results, deletion.name, self._deletion_error(deletion))
        for upsertion in request.upsertions:
            self._check(results, upsertion.name, self._upsertion_error(upsertion))
        self._limit_users(results, request.upsertions)
        changes = _changes(request, results)
        try:
            yield from self._store.change(changes)
        except OSError as fault:
            results |= {user: disk_error(fault) for user, _ in changes}
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(name, result.error_code, result.message)
                for name, result in results.items()
            ]
        )

    def _check(self, results: dict[str, ApiError], name: str, error: ApiError | None) -> None:
        """The first error of a user counts."""
        if name not in results:
            results[name] = error or _DONE
        elif results[name] is _DONE:
            results[name] = _TWICE

    def _deletion_error(self, deletion: ScramCredentialDeletion) -> ApiError | None:
        error = _name_error(deletion.name, deletion.mechanism)
        if error is not None:
            return error
        mechanism = SCRAM_MECHANISM_IDS[deletion.mechanism]
        is_there = self._store.credential(mechanism, deletion.name) is not None
        return None if is_there else _NOTHING_TO_DELETE

    def _upsertion_error(self, upsertion: ScramCredentialUpsertion) -> ApiError | None:
        error = _name_error(upsertion.name, upsertion.mechanism)
        if error is not None:
            return error
        if upsertion.iterations < ITERATIONS_MIN:
            return _TOO_FEW
        if upsertion.iterations > ITERATIONS_MAX:
            return _TOO_MANY
        fits = (
            len(upsertion.name) <= USER_NAME_MAX
            and len(upsertion.salt) <= _BYTES_MAX
            and 1 <= len(upsertion.salted_password) <= _BYTES_MAX
        )
        return None if fits else _TOO_LONG

    def _limit_users(
        self, results: dict[str, ApiError], upsertions: Iterable[ScramCredentialUpsertion]
    ) -> None:
        room = SCRAM_USERS_MAX - len(self._store.users)
        for upsertion in upsertions:
            if results[upsertion.name] is _DONE and upsertion.name not in self._store.users:
                if room <= 0:
                    results[upsertion.name] = _TOO_MANY_USERS
                room -= 1


def _name_error(name: str, mechanism: int) -> ApiError | None:
    if not name:
        return _NO_NAME
    return None if mechanism in SCRAM_MECHANISM_IDS else _UNKNOWN_MECHANISM


def _changes(request: AlterUserScramCredentialsRequest, results: dict[str, ApiError]) -> _Changes:
    """What is to be done for the users without an error."""
    changes: _Changes = {}
    for deletion in request.deletions:
        if results[deletion.name] is _DONE:
            changes[deletion.name, SCRAM_MECHANISM_IDS[deletion.mechanism]] = None
    for upsertion in request.upsertions:
        if results[upsertion.name] is _DONE:
            mechanism = SCRAM_MECHANISM_IDS[upsertion.mechanism]
            changes[upsertion.name, mechanism] = credential_of_salted_password(
                mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations
            )
    return changes
