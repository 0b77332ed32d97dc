"""Import and export of offsets: Kafka's files, CSV and JSON."""
