"""Migration: groups between the classic and the consumer protocol, in both directions."""
