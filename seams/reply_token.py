"""Reply token: identifies a request in flight: its client and its API version.

The core keeps a token while an answer waits for members or for the disk, and hands it back with the
answer. Each token is answered exactly once.
"""


class ReplyToken:
    """One request in flight. The shell subclasses it with what it needs to send an answer.

    `client_host` is Java's `InetAddress.toString()`: a slash and the address, as tools print it.
    """

    __slots__ = ("api_version", "client_host", "client_id")

    def __init__(self, api_version: int, client_id: str, client_host: str) -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = client_host
