"""Security: who a client is, what it may do, and how much of the server it may use."""
