"""Refusals: what forbids a job. Each has a message for people, in one line."""


class Refusal(Exception):
    """What was found does not allow it; the message names what."""


class NothingThere(Refusal):
    """The place that was given holds nothing to work on, or nobody answers there."""
