"""Log tools: log files read offline, and shown, checked and counted for an operator."""
