"""Ranking: pure functions of a query, a scope's index and a policy. Nothing here reads a store, a clock or a model."""
