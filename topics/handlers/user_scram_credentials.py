"""SCRAM credentials: passwords of users, as hashes. They are not served yet: no user has any.

DescribeUserScramCredentials finds none. AlterUserScramCredentials checks its request as Kafka does;
a credential that could be stored is refused, because no client could log in with it.
Kafka's counterpart: `ScramImage.describe`, `ScramControlManager`.
"""

from collections import Counter
from typing import Final

from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from protocol.names import ErrorCode
from security.sasl.scram_credential import ITERATIONS_MAX, ITERATIONS_MIN
from topics.api_error import ApiError

_MECHANISMS: Final = frozenset((1, 2))  # SCRAM-SHA-256, SCRAM-SHA-512

_NO_NAME: Final = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_UNKNOWN_MECHANISM: Final = ApiError(
    ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
)
_TOO_FEW: Final = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY: Final = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_NOTHING_TO_DELETE: Final = ApiError(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
_NOT_SERVED: Final = ApiError(
    ErrorCode.UNSUPPORTED_VERSION,
    "SCRAM is not served, so no client could log in with this credential.",
)


def answer_describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """Without names all users are asked for: there are none."""
    times = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_described(name, is_repeated=count > 1) for name, count in times.items()]
    )


def _described(name: str, *, is_repeated: bool) -> DescribeUserScramCredentialsResult:
    if is_repeated:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: "
            f"{name}",
        )
    return DescribeUserScramCredentialsResult(
        name,
        ErrorCode.RESOURCE_NOT_FOUND,
        f"Attempt to describe a user credential that does not exist: {name}",
    )


def answer_alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse:
    """One result for each user: the first error counts."""
    errors: dict[str, ApiError] = {}
    for deletion in request.deletions:
        errors.setdefault(deletion.name, _deletion_error(deletion))
    for upsertion in request.upsertions:
        errors.setdefault(upsertion.name, _upsertion_error(upsertion))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(name, error.error_code, error.message)
            for name, error in errors.items()
        ]
    )


def _deletion_error(deletion: ScramCredentialDeletion) -> ApiError:
    return _name_error(deletion.name, deletion.mechanism) or _NOTHING_TO_DELETE


def _upsertion_error(upsertion: ScramCredentialUpsertion) -> ApiError:
    error = _name_error(upsertion.name, upsertion.mechanism)
    if error is not None:
        return error
    if upsertion.iterations < ITERATIONS_MIN:
        return _TOO_FEW
    return _TOO_MANY if upsertion.iterations > ITERATIONS_MAX else _NOT_SERVED


def _name_error(name: str, mechanism: int) -> ApiError | None:
    if not name:
        return _NO_NAME
    return None if mechanism in _MECHANISMS else _UNKNOWN_MECHANISM
