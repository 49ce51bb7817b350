"""Items: every record derived from the ledger, as versions that are only ever added."""
