"""Clients: one program for each client library, which runs as a member of the drilled group."""
