"""Kafka's wire: bytes to typed messages and back. Knows nothing of groups, sockets or disks."""
