"""Lag: windows of samples, Burrow's rules over them, and their records."""
