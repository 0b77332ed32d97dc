"""Written settings: one value as some source wrote it, and the error that names it.

An error never quotes a secret, nor what a config provider had.
"""

from msgspec import Struct

from config.keys import Origin
from config.listener_security import is_secret
from protocol.config_def import WrittenValue, convert_to_string
from protocol.java_text import trim
from protocol.printable import printable
from seams.operator_error import WrongInput


class ConfigError(WrongInput):
    """A configuration that the daemon will not start with; one line that names the key."""

    def __init__(self, line: str) -> None:
        # A value may hold any character: those that are not printable are escaped.
        super().__init__(printable(line))


class Setting(Struct, frozen=True):
    """One value as some source wrote it."""

    name: str
    written: WrittenValue
    origin: Origin


def sentence(setting: Setting, reason: str) -> str:
    """KEY = VALUE (where it was set): why not."""
    value = " ".join(written_text(setting.written).split())
    secret = is_secret(setting.name) or setting.origin.provider
    if setting.origin.provider:
        for part in (value, *value.split(",")):
            reason = reason.replace(part, "...") if part else reason
    shown = "..." if secret else value if len(value) <= 60 else f"{value[:57]}..."
    place = f" ({setting.origin})" if setting.origin.place else ""
    return f"{setting.name}{f' = {shown}' if value else ''}{place}: {reason}"


def written_text(written: WrittenValue) -> str:
    if isinstance(written, bool | int | float | str):
        return trim(convert_to_string(written))
    return ",".join(str(word) for word in written)
