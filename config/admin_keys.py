"""Admin keys: TLS and access of the admin port, each key with its default and meaning.

`config/keys.py` has them in its table, and the address, `rollcall.admin.listener`.
`admin_access.py` reads the values.
"""

from collections.abc import Mapping
from typing import ClassVar

from config.security_keys import SecurityKeys
from config.types import Definition, KeyTable, integer, password, string, valid_list

OPENABLE_PATHS = ("/livez", "/metrics", "/readyz")


class AdminKeys(SecurityKeys, frozen=True, metaclass=KeyTable):
    """Who may use the admin port. A base of `Config`, as the keys of the listeners are."""

    DEFINITIONS: ClassVar[Mapping[str, Definition]]

    rollcall_admin_ssl_certificate: str = string(
        "",
        "PEM file with the certificate chain of the admin port, which then speaks only TLS (1.2 "
        "or 1.3). It is read again when it changes.",
    )
    rollcall_admin_ssl_key: str = string(
        "", "PEM file with its private key. Default: the file of the certificate."
    )
    rollcall_admin_ssl_key_password: str = password("The password of that key.")
    rollcall_admin_token: str = password(
        "Bearer token that the admin port asks for, or several, separated by commas: a new one "
        "can be added before the old one is removed. In a browser it is the password of the user "
        "`token`."
    )
    rollcall_admin_users: str = password(
        "Users of the admin port (HTTP basic authentication): NAME:PASSWORD, separated by commas. "
        "With a token too, either of them is enough."
    )
    rollcall_admin_open_paths: tuple[str, ...] = valid_list(
        ("/livez", "/readyz"),
        "Pages that need no token or password. Others are open only if there are neither tokens "
        "nor users.",
        *OPENABLE_PATHS,
    )
    rollcall_admin_event_streams_max: int = integer(
        32,
        "Event streams (/api/events) that are open at a time: each browser window that shows the "
        "console has one. 0: none; the console then asks every ten seconds.",
        at_least=0,
        at_most=100,
    )
    rollcall_admin_allowed_hosts: tuple[str, ...] = valid_list(
        (),
        "Host names under which the admin port is reached, besides localhost, its own name, those "
        "of listeners and advertised.listeners, and the addresses of this machine. A request to "
        "another name is refused: a web page could have made it (DNS rebinding).",
    )
