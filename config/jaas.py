"""JAAS configuration: the users of PLAIN, as `sasl.jaas.config` has them.

One line: `LOGIN-MODULE required user_NAME="PASSWORD" ...;`. A word may stand in double quotes, with
a backslash before a quote or a backslash. Messages never show a value.
Kafka's counterparts: `JaasConfig`, `PlainServerCallbackHandler`.
"""

from typing import Final

from msgspec import Struct

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"

_FLAGS: Final = frozenset(("required", "requisite", "sufficient", "optional"))
_USER: Final = "user_"


class _Word(Struct, frozen=True):
    text: str
    is_sign: bool = False
    """= or ; outside of quotation marks."""


_EQUALS: Final = _Word("=", is_sign=True)
_END: Final = _Word(";", is_sign=True)


class BadJaas(ValueError):
    """A text that is no JAAS configuration of PLAIN; the message shows nothing of it."""


def plain_users(text: str) -> dict[str, str]:
    """Passwords by user; none for an empty text. Raises BadJaas."""
    if not text.strip():
        return {}
    words = _words(text)
    if len(words) < 3 or words[-1] != _END:
        raise BadJaas('must be of the form MODULE required user_NAME="PASSWORD" ... ;')
    module, flag, *options = words[:-1]
    if module.text != PLAIN_MODULE:
        raise BadJaas(f"the login module must be {PLAIN_MODULE}")
    if flag.text.lower() not in _FLAGS:
        raise BadJaas("the word after the login module must be required")
    if len(options) % 3:
        raise BadJaas('each option must be NAME="VALUE"')
    users: dict[str, str] = {}
    for name, equals, value in zip(options[::3], options[1::3], options[2::3], strict=True):
        if equals != _EQUALS or name.is_sign or value.is_sign:
            raise BadJaas('each option must be NAME="VALUE"')
        if name.text.startswith(_USER):
            users[name.text.removeprefix(_USER)] = value.text
    return users


def _words(text: str) -> list[_Word]:
    """Words and the signs = and ;, without quotes."""
    words: list[_Word] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char in "=;":
            words.append(_Word(char, is_sign=True))
            at += 1
        elif char == '"':
            word, at = _quoted(text, at + 1)
            words.append(_Word(word))
        else:
            end = at
            while end < len(text) and not text[end].isspace() and text[end] not in '=;"':
                end += 1
            words.append(_Word(text[at:end]))
            at = end
    return words


def _quoted(text: str, at: int) -> tuple[str, int]:
    word: list[str] = []
    while at < len(text):
        char = text[at]
        if char == '"':
            return "".join(word), at + 1
        if char == "\\" and at + 1 < len(text):
            at += 1
            char = text[at]
        word.append(char)
        at += 1
    raise BadJaas("a quotation mark is missing")
