"""Network: listeners, connections, framing of requests, dispatch and answers."""
