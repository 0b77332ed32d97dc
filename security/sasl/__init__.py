"""SASL mechanisms: how a client shows who it is. Pure."""
