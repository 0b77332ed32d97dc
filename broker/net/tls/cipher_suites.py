"""Cipher suites: `ssl.cipher.suites` in Java's names, as OpenSSL wants them.

Java names a suite TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, OpenSSL ECDHE-RSA-AES128-GCM-SHA256. Those
of TLS 1.3 cannot be chosen in Python's `ssl`: a list that names only some of them is refused, and
one that names none turns TLS 1.3 off, as in Java.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

TLS_1_3_SUITES: Final = frozenset(
    ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
)

_EXCHANGES: Final = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "RSA": "",
}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}


class BadSuites(ValueError):
    """A list that cannot be honoured."""


class ChosenSuites(Struct, frozen=True):
    """`older` is OpenSSL's list for TLS 1.2; empty: its default."""

    older: str
    allows_tls_1_3: bool
    allows_tls_1_2: bool


def choose_suites(names: Sequence[str]) -> ChosenSuites:
    """Raises BadSuites."""
    if not names:
        return ChosenSuites("", allows_tls_1_3=True, allows_tls_1_2=True)
    newer = TLS_1_3_SUITES.intersection(names)
    if newer and newer != TLS_1_3_SUITES:
        missing = ", ".join(sorted(TLS_1_3_SUITES - newer))
        raise BadSuites(
            "suites of TLS 1.3 cannot be chosen one by one: name all of them or none "
            f"(missing: {missing})"
        )
    older = [_openssl_name(name) for name in names if name not in TLS_1_3_SUITES]
    return ChosenSuites(":".join(older), allows_tls_1_3=bool(newer), allows_tls_1_2=bool(older))


def _openssl_name(name: str) -> str:
    if not name.startswith("TLS_"):
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if exchange not in _EXCHANGES or cipher not in _CIPHERS:
        raise BadSuites(f"{name} is not a cipher suite that OpenSSL has")
    return _EXCHANGES[exchange] + _CIPHERS[cipher]
