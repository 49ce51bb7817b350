"""Lists in pages: where items stand in them (`rows`), and reading on from a place (`seeking`)."""
