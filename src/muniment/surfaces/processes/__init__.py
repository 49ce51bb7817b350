"""Several processes, one server: what they share through the store, and what starts them on one socket."""
