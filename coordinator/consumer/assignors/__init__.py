"""Assignors: which member of a consumer group reads which partitions."""
