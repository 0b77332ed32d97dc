"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup (before KIP-848)."""
