"""Offsets on the move: out of a Kafka's files into ours, back again, and as CSV and JSON."""
