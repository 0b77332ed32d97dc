"""Admin port: what a person or a scraper asks a running daemon, over HTTP."""
