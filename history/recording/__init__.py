"""Recording: which history events follow from what the coordinator decided."""
