"""Paged lists: the order of items (`rows`), and reading on from a place (`seeking`)."""
