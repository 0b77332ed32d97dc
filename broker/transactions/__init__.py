"""Transactions: connects their coordinator with the partitions, the disk and the clock."""
