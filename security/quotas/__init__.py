"""Client quotas: how much of the server a user, a client id or an address may use. Pure."""
