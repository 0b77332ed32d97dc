"""Group history: history entries, lag windows and verdicts. Pure."""
