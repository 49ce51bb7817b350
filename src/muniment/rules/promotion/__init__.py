"""Promotion (001 §4.6, RC-18): consolidation, tests, the gate, trials, promotion and rollback.

Pure. The only room that makes a rule active.
"""
