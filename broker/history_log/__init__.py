"""History log: writes and reads `__group_history`."""
