"""Token keys: the public keys that sign OAUTHBEARER tokens, from a JWKS file or URL.

A thread reads them: a URL every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, a file when it has
changed. The event loop only looks keys up. A token with an unknown key id asks for an early read,
at most one in EARLY_READ_PAUSE_S, and is refused meanwhile: its client tries again. What cannot be
read or is no key set leaves the keys as they are. Kafka reads for each unknown key id, and does not
start if the URL cannot be read. Its counterparts: `RefreshingHttpsJwks`,
`JwksFileVerificationKeyResolver`.
"""

import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping
from threading import Condition, Thread
from time import monotonic
from typing import Final
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from config.key_stores import BadStore
from config.security_keys import SecurityKeys

EARLY_READ_PAUSE_S: Final = 10.0
FILE_CHECK_S: Final = 1.0
KEY_ID_MAX: Final = 1_000
KEY_SET_MAX_BYTES: Final = 1 << 20
KEYS_MAX: Final = 100

_READ_TIMEOUT_S: Final = 10.0
_RSA_MIN_BYTES: Final = 256  # as Kafka's library demands
_RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}

TOKEN_ALGORITHMS: Final = frozenset((*_RSA_ALGORITHMS, *_CURVES.values()))
"""Only those whose signing key a server need not know."""

ReportKeys = Callable[[str, Mapping[str, object]], None]
"""A warning with its fields; called in the keys' thread."""


class BadKeySet(BadStore):
    """The message is one line; `key` has the URL."""

    def __init__(self, reason: str) -> None:
        super().__init__("sasl.oauthbearer.jwks.endpoint.url", reason)


class TokenKey:
    """A public key, for each algorithm that it may be used with."""

    __slots__ = ("by_algorithm", "key_id")

    def __init__(self, key_id: str | None, by_algorithm: Mapping[str, PyJWK]) -> None:
        self.key_id = key_id
        self.by_algorithm = by_algorithm


def parse_key_set(content: bytes) -> tuple[TokenKey, ...]:
    """The keys that can be used; others are left out. Raises BadKeySet."""
    try:
        document = json.loads(content)
        members = document["keys"]
        if not isinstance(members, list):
            raise TypeError  # noqa: TRY301 - as if it could not be iterated
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadKeySet("it is no JSON Web Key Set") from None
    keys = tuple(key for member in members[:KEYS_MAX] if (key := _key(member)) is not None)
    if not keys:
        raise BadKeySet("it has no public key that can be used")
    return keys


def _key(member: object) -> TokenKey | None:
    if not isinstance(member, dict) or member.get("use", "sig") != "sig" or "d" in member:
        return None
    try:
        by_algorithm = {name: PyJWK(member, name) for name in _algorithms(member)}
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    key_id = member.get("kid")
    if not by_algorithm or not isinstance(key_id, str | None):
        return None
    return TokenKey(key_id, by_algorithm)


def _algorithms(member: dict[str, object]) -> list[str]:
    """Raises ValueError, TypeError, KeyError."""
    if member["kty"] == "RSA":
        modulus = str(member["n"])
        if (
            len(urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4)).lstrip(b"\0"))
            < _RSA_MIN_BYTES
        ):
            return []
        possible = list(_RSA_ALGORITHMS)
    elif member["kty"] in ("EC", "OKP"):
        possible = [_CURVES[str(member["crv"])]]
    else:  # oct: a secret that signs
        return []
    named = member.get("alg")
    return possible if named is None else [name for name in possible if name == named]


class TokenKeys:
    def __init__(self, values: SecurityKeys) -> None:
        """`values` are those of the mechanism OAUTHBEARER of a listener, with a URL."""
        self._url = values.sasl_oauthbearer_jwks_endpoint_url
        self._is_file = urlsplit(self._url).scheme.lower() == "file"
        self._refresh_s = values.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1_000
        self._backoff_s = values.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms / 1_000
        self._backoff_max_s = values.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms / 1_000
        self._report: ReportKeys = lambda _words, _fields: None
        self._keys: tuple[TokenKey, ...] = ()  # replaced as a whole
        self._stamp: tuple[int, int, int] | None = None  # of the file that was read
        self._failures = 0  # since the last read
        self._last_fault = ""
        self._read_at = float("-inf")
        self._wake = Condition()
        self._is_asked = False
        self._is_closed = False
        self._thread: Thread | None = None

    # On the event loop

    def find(self, key_id: str | None, algorithm: str) -> Iterator[PyJWK]:
        """The keys that may have signed a token: without an id, all of the algorithm."""
        for key in self._keys:
            found = key.by_algorithm.get(algorithm)
            if found is not None and key_id in (None, key.key_id):
                yield found

    def ask(self, key_id: str | None) -> None:
        """A token names a key that is not here: perhaps it is new."""
        if key_id is not None and len(key_id) > KEY_ID_MAX:
            return
        with self._wake:  # never held during a read
            if monotonic() - self._read_at >= EARLY_READ_PAUSE_S:
                self._is_asked = True
                self._wake.notify()

    # The thread

    def load(self) -> None:
        """Before the port is open: a client whose token is refused may give up.

        A file without keys raises BadKeySet; a URL that fails is tried again later.
        """
        if not self._is_file:
            self._refresh()
            return
        try:
            self._stamp = self._file_stamp()
            self._keys = parse_key_set(self._read_file())
        except (OSError, BadKeySet) as fault:
            said = fault.strerror if isinstance(fault, OSError) else fault
            raise BadKeySet(f"{self._shown_url}: {said}") from None

    def start(self, report: ReportKeys) -> None:
        """Keep the keys fresh."""
        self._report = report
        if self._failures:
            self._failures = 0
            self._failed(self._last_fault)
        self._thread = Thread(target=self._run, name="token keys", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Does not wait for a read."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._is_closed or self._is_asked, self._pause_s())
                if self._is_closed:
                    return
                self._is_asked = False
            self._refresh()

    def _pause_s(self) -> float:
        if self._is_file:
            return FILE_CHECK_S
        if not self._failures:
            return self._refresh_s
        doubled: float = self._backoff_s * 2.0 ** min(self._failures - 1, 30)
        return max(0.01, min(doubled, self._backoff_max_s, self._refresh_s))

    def _refresh(self) -> None:
        try:
            if self._is_file:
                stamp = self._file_stamp()
                if stamp == self._stamp:
                    return
                self._stamp = stamp
            keys = parse_key_set(self._read_file() if self._is_file else _read_url(self._url))
        except (OSError, ValueError, BadKeySet) as fault:
            self._failed(str(fault))
        else:
            if self._failures:
                words = "Read the keys of OAUTHBEARER tokens again"
                self._report(words, {"url": self._shown_url, "keys": len(keys)})
            self._failures = 0
            self._keys = keys
        finally:
            self._read_at = monotonic()

    def _failed(self, reason: str) -> None:
        self._last_fault = reason
        self._failures += 1
        if self._failures == 1:
            words = "Cannot read the keys of OAUTHBEARER tokens; those known so far count"
            fields = {"url": self._shown_url, "reason": reason, "keys": len(self._keys)}
            self._report(words, fields)

    def _file_stamp(self) -> tuple[int, int, int]:
        found = os.stat(self._path)  # noqa: PTH116
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read_file(self) -> bytes:
        with open(self._path, "rb") as file:  # noqa: PTH123
            return _limited(file.read(KEY_SET_MAX_BYTES + 1))

    @property
    def _shown_url(self) -> str:
        """Without what may be a secret."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def _path(self) -> str:
        return unquote(urlsplit(self._url).path)


class _SameScheme(HTTPRedirectHandler):
    """A redirect may not leave TLS, nor lead to a file."""

    def redirect_request(
        self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise URLError("redirected to another scheme")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]  # typed as object above


def _read_url(url: str) -> bytes:
    """Raises OSError, ValueError, BadKeySet."""
    deadline = monotonic() + _READ_TIMEOUT_S
    request = Request(url, headers={"Accept": "application/json"})
    content = b""
    with build_opener(_SameScheme).open(request, timeout=_READ_TIMEOUT_S) as response:
        while chunk := response.read1(KEY_SET_MAX_BYTES):
            content = _limited(content + chunk)
            if monotonic() > deadline:
                raise TimeoutError("the server is too slow")
    return content


def _limited(content: bytes) -> bytes:
    if len(content) > KEY_SET_MAX_BYTES:
        raise BadKeySet(f"it is larger than {KEY_SET_MAX_BYTES} bytes")
    return content
