"""Decoding: bytes of log segments to Arrow columns, many records at once."""
