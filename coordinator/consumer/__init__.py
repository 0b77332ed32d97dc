"""Consumer groups: the group type of the consumer group protocol (KIP-848)."""
