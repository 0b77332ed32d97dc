"""Classic decisions: one file per request or command; a view in, an Outcome out, no writes."""
