"""Labelled stores and requests, and a score for any context that is handed to a model."""
