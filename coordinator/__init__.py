"""The group coordinator: no I/O, no clock, no event loop. Driven by turns; see shard.py."""
