"""Refusals: why a transfer cannot start. Each is a one-line message for the user."""


class Unusable(Exception):
    """A place, a pattern or a combination that cannot be used like this: a fault of usage."""


class NoOffsets(Unusable):
    """There is nothing to read."""


class BadPattern(Unusable):
    """Not a regular expression."""


class ClusterFault(Unusable):
    """A cluster cannot be reached, or does not speak as it should."""


class BadText(Exception):
    """A file is not what it should be; the message names the place."""
