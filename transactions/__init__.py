"""Transaction coordinator: the state of each transactional id, in `__transaction_state`."""
