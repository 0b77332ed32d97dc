"""Failed decisions: a decision raised before anything was changed, so only its request fails."""


class TransactionDecisionFailed(Exception):
    """`failure` is what the decision raised."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(repr(failure))
        self.failure = failure
