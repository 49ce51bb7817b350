"""Rollouts (RC-20): attempts planned, summarised without chain of thought, selected, synthesised. Pure."""
