"""Forgetting: content erased wherever it was derived to, with a receipt."""
