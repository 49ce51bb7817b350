"""Lessons that somebody proposes, a model or a person: what they are shown, what they answer, whether it holds. Pure.

Nothing here is kept and nobody is asked. Read `records`, then `prompts` (the question and its answer), `names` (what a
text names), `checks` (whether the evidence bears it) and `likes` (what says the same already, and the tactic it makes).
"""
