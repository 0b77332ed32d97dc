"""Audit log: refused and administrative actions, and failed authentications."""
