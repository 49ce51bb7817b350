"""Learned memory: logs, folds, plans, hints, reuse."""
