"""Random ids: of members, with the prefix that Kafka gives them, and the nonces of SCRAM.

Kafka's counterpart: `ClassicGroup.generateMemberId`, `Uuid.randomUuid`,
`ScramFormatter.secureRandomString`.
"""

from base64 import urlsafe_b64encode
from os import urandom
from uuid import uuid4

from protocol.names import MemberId
from security.sasl.scram_credential import SALT_BITS, base_36


def new_member_id(prefix: str) -> MemberId:
    """`prefix` is the client id, or the instance id of a static member.

    The text of a uuid4; its object would take longer than the text, and members join by the
    thousand.
    """
    digits = urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return MemberId(
        f"{prefix}-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
    )


def new_consumer_member_id() -> MemberId:
    """As Kafka prints its `Uuid`. None begins with "-", which tools take for an option."""
    while True:
        text = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return MemberId(text)


def new_scram_nonce() -> str:
    """The server's part of a nonce of SCRAM: 130 random bits to the base 36, as in Kafka.

    As bytes it also makes a salt.
    """
    size_bytes = -(-SALT_BITS // 8)
    return base_36(int.from_bytes(urandom(size_bytes)) >> (8 * size_bytes - SALT_BITS))


def new_secret() -> bytes:
    """32 random bytes: the key of a hash."""
    return urandom(32)
