"""Log cleaner: which log to compact, and how, by Kafka's rules."""
