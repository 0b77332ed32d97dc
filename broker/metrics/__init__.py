"""Metrics: a file for each subject of /metrics, `scrape.py` for the order, `family.py` the form."""
