"""Which request is to be answered, who sent it, and in which version?

The core keeps a token while an answer waits for people or for the disk, hands it back with the
answer, and never looks behind it. One token is answered exactly once.
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
