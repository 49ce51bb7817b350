"""What a server counts of itself, for Prometheus: no name of a tenant, a user or anything else of theirs is in it."""
