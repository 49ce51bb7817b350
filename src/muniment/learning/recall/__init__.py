"""Recall of learned memory."""
