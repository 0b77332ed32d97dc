"""A decision that raised: the request fails, and nothing else, for nothing was changed.

A bug of ours in a decision, before anything was appended or written into a group, leaves its shard
as it was. `Shard` says so with this exception; the facade answers UNKNOWN_SERVER_ERROR and hands
the failure to the shell, which counts and logs it. Once something was changed it is the shard that
fails.
A request over many groups may have its answer still to come: some of its parts wait for the disk.
Then it is `AnswerFollows`, and nobody gives another answer meanwhile.
Kafka's counterpart: the catch of `CoordinatorRuntime.CoordinatorWriteEvent.run`.
"""


class Undecided(Exception):
    """`failure` is what the decision raised."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(repr(failure))
        self.failure = failure


class AnswerFollows(Exception):
    """As `Undecided`, to the shell: the token is not answered yet, but will be."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(repr(failure))
        self.failure = failure
