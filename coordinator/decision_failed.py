"""Failed decisions: a decision raised before anything was changed, so only its request fails.

A bug in a decision leaves its shard as it was, because nothing was appended or applied yet. `Shard`
raises `DecisionFailed`; `GroupCoordinator` answers UNKNOWN_SERVER_ERROR and raises the failure
itself, which the broker counts and logs. A failure after something was changed ends the shard.
Kafka's counterpart: the catch of `CoordinatorRuntime.CoordinatorWriteEvent.run`.
"""


class DecisionFailed(Exception):
    """`failure` is what the decision raised."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(repr(failure))
        self.failure = failure


class AnswerPending(Exception):
    """A decision failed for a part of a request over many groups; its answer is still to come.

    Other parts wait for the disk, so nobody else may answer the token meanwhile.
    """

    def __init__(self, failure: Exception) -> None:
        super().__init__(repr(failure))
        self.failure = failure
