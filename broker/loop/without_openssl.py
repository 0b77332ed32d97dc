"""Import without OpenSSL: asyncio and uvloop, for a process that makes TLS connections elsewhere.

Both import `ssl`, for connections that the loop itself would encrypt. Our TLS stands in front of
the loop (broker/net/tls/channel.py) and imports `ssl` where a listener has it. A daemon without TLS
saves 5 MB and a twentieth of its start. Who imports `ssl` afterwards gets the real one. See
docs/adr/0081.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Final

from rollcall.lean_imports import import_without

_SSL: Final = "ssl"


class NoTls(Exception):
    """In place of what `ssl` raises and makes: never raised, and no context is one."""


class _Placeholder(ModuleType):
    """What uvloop takes from `ssl` when it is imported; anything else is taken from `ssl`."""

    SSLContext = MemoryBIO = create_default_context = NoTls
    SSLError = SSLWantReadError = SSLSyscallError = SSLZeroReturnError = CertificateError = NoTls
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_SYSCALL = 5

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        del sys.modules[_SSL]
        found: object = getattr(import_module(_SSL), name)
        return found


def import_event_loop() -> None:
    """To be called before anything else imports one of them; otherwise it does nothing."""
    if not sys.modules.keys().isdisjoint({"asyncio", "uvloop", _SSL}):
        return
    import_without(_SSL, "asyncio")
    sys.modules[_SSL] = _Placeholder(_SSL)
    try:
        import_module("uvloop")
    finally:
        if isinstance(sys.modules[_SSL], _Placeholder):
            del sys.modules[_SSL]
