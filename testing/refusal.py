"""Refusal: what a test asks of its daemon cannot be done; the message says why, in one line."""


class ControlRefusal(Exception):
    """`kind` is the exception in rollcall/testing/errors.py: "value" or "state"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def bad_value(message: str) -> ControlRefusal:
    """The question itself is wrong: an unknown name, a value out of range."""
    return ControlRefusal("value", message)


def not_now(message: str) -> ControlRefusal:
    """The question is right, and the daemon is not in the state for it."""
    return ControlRefusal("state", message)
