"""Reply token: identifies a request in flight: its client and its API version.

The core keeps a token while an answer waits for members or for the disk, and hands it back with the
answer. Each token is answered exactly once.
"""

from mypy_extensions import mypyc_attr

from seams.principal import ANONYMOUS, Principal


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplyToken:
    """One request in flight. The shell subclasses it with what it needs to send an answer.

    `client_host` is Java's `InetAddress.toString()`: a slash and the address, as tools print it.
    `principal` is who asks, as the listener has authenticated the connection.
    """

    __slots__ = ("api_version", "client_host", "client_id", "principal")

    def __init__(
        self,
        api_version: int,
        client_id: str,
        client_host: str,
        principal: Principal = ANONYMOUS,
    ) -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = client_host
        self.principal = principal

    @property
    def named_principal(self) -> str | None:
        """As the history and the log name it; None of a client without authentication."""
        return None if self.principal == ANONYMOUS else str(self.principal)
