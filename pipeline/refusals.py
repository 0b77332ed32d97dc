"""What forbids a job? One kind of exception, with a message for people."""


class Refusal(Exception):
    """What was found does not allow it; the message names what, in one line."""
