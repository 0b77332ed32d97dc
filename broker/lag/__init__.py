"""Lag: samples the lag of all groups, keeps it in `__group_lag`, and watches verdicts."""
