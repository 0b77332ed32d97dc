"""Background work: log cleaner, snapshots, and the worker process that does both."""
