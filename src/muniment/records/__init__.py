"""The typed records of the four contracts and of the ledger, each once (X-01). No logic, no input or output."""
