"""Partition logs: segments, indexes, checkpoints and the folders that hold them."""
