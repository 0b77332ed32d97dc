"""Transaction coordinator: what state is each transactional id in? (`__transaction_state`)."""
