"""Secured programs: clients of secured_clients.py that are not Python libraries."""
