"""Client errors: why a cluster cannot be asked, or refuses. Each is an operator error."""

from protocol.names import ErrorCode
from seams.operator_error import OperationFailed, WrongInput


class ClusterFault(WrongInput):
    """A cluster cannot be reached, or does not speak as it should."""


class BadClientProperties(WrongInput):
    """A file of client properties cannot be used; the message names the property."""


class BadRequest(WrongInput):
    """A name or a number does not fit into a request."""


class NotThere(WrongInput):
    """The cluster knows no such group, topic or partition."""


class RequestRefused(OperationFailed):
    """The cluster refuses, and says why."""

    def __init__(self, what: str, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{what}: {message or error_code.name}")
        self.error_code = error_code
