"""Consumer group decisions: a pure function for each command."""
