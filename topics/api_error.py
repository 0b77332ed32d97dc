"""API error: the error code and the message of a failed admin request.

Kafka's counterpart: `ApiError`, and the default messages of `Errors`.
"""

from typing import Final, NamedTuple

from protocol.names import ErrorCode


class ApiError(NamedTuple):
    error_code: ErrorCode
    message: str | None = None


DUPLICATE_TOPIC: Final = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
NO_SUCH_TOPIC: Final = ApiError(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
NO_SUCH_TOPIC_ID: Final = ApiError(
    ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
)
TOPIC_REFUSED: Final = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
GROUP_REFUSED: Final = ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
CLUSTER_REFUSED: Final = ApiError(
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
)
OVER_MUTATION_QUOTA: Final = ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
TOO_MANY_PARTITIONS: Final = ApiError(
    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
)
TOO_MANY_RECORDS: Final = ApiError(
    ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
)
MALFORMED_BY_CLIENT: Final = ApiError(
    ErrorCode.INVALID_REQUEST,
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details.",
)


def disk_error(fault: OSError) -> ApiError:
    """The error of a disk that failed, with the system's message."""
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"The disk refused: {fault.strerror or fault}")


def internal_topic_error(name: str, what: str) -> ApiError:
    """Kafka differs: it lets anybody who may do so delete or resize its own topics."""
    return ApiError(
        ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' is internal and cannot be {what}."
    )
