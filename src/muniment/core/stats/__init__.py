"""Bounds on rates from counts: Wilson, Beta, and sequential ones that hold however often one looks. Pure arithmetic.

It knows numbers alone: nothing of runs, rules or tactics.
"""
