"""Candidates: proposed facts and what became of them."""
