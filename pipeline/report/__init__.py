"""Report: result tables as one HTML page with charts."""
