"""Upkeep of a store that several processes share: which pieces wait, who takes which, and what came of it.

Read `running` first, then `chores`. Nothing here knows how a piece is done: the rooms do.
"""
