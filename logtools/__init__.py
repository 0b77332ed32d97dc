"""What lies in the log files, read offline and shown, checked and counted for an operator."""
