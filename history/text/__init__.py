"""Texts: history events and rebalances as lines for people and as JSON."""
