"""Loading in bulk: many events of many sessions, checked whole, written in large transactions, indexed afterwards.

What is written is what event by event would be: the same chains, rows and keys. Never indexes; see `memory.backlog`.
Read `records`, then `loading`, then `writing`.
"""
