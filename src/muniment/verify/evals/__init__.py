"""Evals of a memory: `questions` (the file format), `measures` (scores of one arm), `report` (one run, compared with
the previous one), `run` (asks the store). All but `run` are pure: the same inputs give the same bytes.
"""
