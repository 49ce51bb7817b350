"""Speed and size of the store, against another checkout and a bare FTS5 table."""
