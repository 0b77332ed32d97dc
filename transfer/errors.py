"""Transfer errors: why an import or an export cannot start. Each is an operator error."""

from seams.operator_error import WrongInput


class Unusable(WrongInput):
    """A path or a combination of options that cannot be used like this."""


class NoOffsets(Unusable):
    """There is nothing to read."""


class BadPattern(Unusable):
    """Not a regular expression."""


class BadText(WrongInput):
    """A file is not what it should be; the message names the place."""
