"""What /metrics shows: a file for each subject, `scrape.py` for the order, `family.py` the form."""
