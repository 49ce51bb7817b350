"""The ledger, the items derived from it, and what is done with whole stores."""
