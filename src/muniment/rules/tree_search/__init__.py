"""Guided search of a space of states."""
