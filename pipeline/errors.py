"""Refusals: why a job cannot run. Each is a one-line message for the user."""


class Refusal(Exception):
    """The job cannot run; the message names the reason."""


class NothingThere(Refusal):
    """The given place has nothing to read, or nobody answers there."""
