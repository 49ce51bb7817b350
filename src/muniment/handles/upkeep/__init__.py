"""Upkeep of a store that several processes share: pending pieces, their leases, and their results.

Read `running` first, then `chores`. The rooms know how to do a piece; nothing here does.
"""
