"""Procedures and insights."""
