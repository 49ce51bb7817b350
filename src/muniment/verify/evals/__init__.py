"""Evals of a memory: `questions` (the file), `measures` (what an arm gave, and its worth), `report` (one run, against
the one before), `run` (asks the store). All but `run` are pure: the same inputs give the same bytes.
"""
