"""The use cases, one file each: they order the steps, fetch the time and ids, and own the transactions."""
