"""Certificate: its distinguished name as Java writes it, its alternative names and its end.

Kafka's counterpart: `X500Principal.getName` (RFC 2253) and `SslFactory.CertificateEntries`.
"""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from cryptography import x509

# Java's RFC 2253 names; any other type is written as its number and the value's bytes.
_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED: Final = frozenset(',+"\\<>;')
_LONG_FORM: Final = 0x80


class CertificateFacts(Struct, frozen=True):
    """Of a certificate of ours. `ends_at_s` is in seconds since the epoch."""

    distinguished_name: str
    alternative_names: frozenset[str]
    ends_at_s: float


def certificate_facts(pem: bytes) -> CertificateFacts:
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(pem)
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = frozenset(f"{type(name).__name__}:{name.value}" for name in extension.value)
    except (x509.ExtensionNotFound, ValueError):
        names = frozenset()
    return CertificateFacts(
        _rfc2253(certificate.subject), names, certificate.not_valid_after_utc.timestamp()
    )


def distinguished_name(der: bytes) -> str:
    """Of a client's certificate, the last attribute first: CN=bob,O=Bar. Raises ValueError."""
    from cryptography import x509

    return _rfc2253(x509.load_der_x509_certificate(der).subject)


def _rfc2253(name: "x509.Name") -> str:
    return ",".join(
        "+".join(_attribute(attribute) for attribute in part) for part in reversed(name.rdns)
    )


def _attribute(attribute: "x509.NameAttribute[str | bytes]") -> str:
    number, value = attribute.oid.dotted_string, attribute.value
    if number in _NAMES and isinstance(value, str):
        return f"{_NAMES[number]}={_escaped(value)}"
    content = value if isinstance(value, bytes) else value.encode()
    return f"{number}=#{_der(attribute._type.value, content).hex()}"


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < _LONG_FORM:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, _LONG_FORM | len(length))) + length + content


def _escaped(value: str) -> str:
    """Java escapes each space at the beginning and at the end, and a # at the beginning."""
    body = value.strip(" ")
    leading = len(value) - len(value.lstrip(" "))
    trailing = len(value) - len(body) - leading if body else 0
    text = "".join(f"\\{char}" if char in _ESCAPED else char for char in body)
    if body.startswith("#") and not leading:
        text = "\\" + text
    return "\\ " * leading + text + "\\ " * trailing
