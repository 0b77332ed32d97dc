"""Drills: failover drills of a consumer group, with real clients, and what they measured."""
