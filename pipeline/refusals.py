"""Refusals: why a job cannot run. Each is a one-line message for the user."""


class Refusal(Exception):
    """What was found does not allow it; the message names what."""


class NothingThere(Refusal):
    """The place that was given holds nothing to work on, or nobody answers there."""
