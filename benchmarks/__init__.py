"""Benchmarks: ratios against a reference in the same run, results as JSON. Never part of the tests."""
