"""Regression tests of an agent's outputs."""
