"""The embedded data plane: topics, produce, fetch, list offsets, producers."""
