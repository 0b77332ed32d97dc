"""TLS 1.3 records: made by hand, for what Python's `ssl` cannot send (KeyUpdate, tiny records)."""

import ssl
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

APPLICATION_DATA: Final = 23
HANDSHAKE: Final = 22
KEY_UPDATE_REQUESTED: Final = b"\x18\x00\x00\x01\x01"

_HASHES: Final = {
    "TLS_AES_128_GCM_SHA256": (SHA256(), 16),
    "TLS_AES_256_GCM_SHA384": (SHA384(), 32),
}


class RecordWriter:
    """A client's records after the handshake (RFC 8446); nothing else may write any."""

    def __init__(self, key_log: Path, tls: ssl.SSLObject) -> None:
        cipher = tls.cipher()
        assert cipher is not None
        self._hash: HashAlgorithm
        self._hash, self._key_bytes = _HASHES[cipher[0]]
        lines = [line.split() for line in key_log.read_text().splitlines()]
        (self._secret,) = (
            bytes.fromhex(line[2]) for line in lines if line[0] == "CLIENT_TRAFFIC_SECRET_0"
        )
        self._use_secret()

    def _expand(self, label: str, size: int) -> bytes:
        full = b"tls13 " + label.encode()
        info = size.to_bytes(2, "big") + bytes((len(full),)) + full + b"\0"
        return HKDFExpand(self._hash, size, info).derive(self._secret)

    def _use_secret(self) -> None:
        self._cipher = AESGCM(self._expand("key", self._key_bytes))
        self._nonce = int.from_bytes(self._expand("iv", 12), "big")
        self._number = 0

    def record(self, kind: int, content: bytes) -> bytes:
        nonce = (self._nonce ^ self._number).to_bytes(12, "big")
        self._number += 1
        head = b"\x17\x03\x03" + (len(content) + 17).to_bytes(2, "big")
        return head + self._cipher.encrypt(nonce, content + bytes((kind,)), head)

    def data(self, content: bytes) -> bytes:
        return self.record(APPLICATION_DATA, content)

    def key_update(self) -> bytes:
        """It asks the server for an update of its own key."""
        record = self.record(HANDSHAKE, KEY_UPDATE_REQUESTED)
        self._secret = self._expand("traffic upd", self._hash.digest_size)
        self._use_secret()
        return record
