"""Group events and lag samples, kept as records."""
